// Dialogs that hold the page until they are answered: focus stays inside, Escape closes, and it returns to where it was.

import { t } from '../i18n/index.js';
import { html, useEffect, useRef } from '../vendor/preact.js';
import { REACHED, nearest, standing } from './focus.js';
import { useAction, useName } from './hooks.js';
import { Button, Problem } from './parts.js';

/** From the last thing in a dialog to its first, and back, where browsers would go to their own buttons in between. */
function goRound(event, dialog) {
  if (event.key !== 'Tab') return;
  const reached = [...dialog.querySelectorAll(REACHED)].filter((element) => element.checkVisibility());
  const [from, to] = event.shiftKey ? [reached[0], reached.at(-1)] : [reached.at(-1), reached[0]];
  // Of radios only the chosen one is reached, and it may be the first or the last.
  const at = document.activeElement;
  if (at !== from && !(at.type === 'radio' && at.name === from?.name)) return;
  event.preventDefault();
  to.focus();
}

/** A dialog; it is there as long as it is drawn. One that is `held` cannot be left. */
export function Dialog({ title, close, children, wide = false, held = false, ...rest }) {
  const element = useRef();
  const name = useName('dialog');
  useEffect(() => {
    const dialog = element.current;
    const before = standing(document.activeElement ?? document.body);
    dialog.showModal();
    // What is said at the edge of the page is to be seen above this, too.
    dispatchEvent(new Event('raise'));
    return () => {
      // As long as it is open nothing beside it can have the focus.
      dialog.close();
      nearest(before)?.focus();
    };
  }, []);
  const leave = () => held || close();
  const cancelled = (event) => {
    event.preventDefault();
    leave();
  };
  const closed = () => {
    // Browsers let nobody keep a dialog from a second Escape: it is shown again, as what it waits for goes on.
    if (held) element.current?.showModal();
    else if (element.current) close();
  };
  const clicked = (event) => {
    // Beside the dialog, which is its backdrop.
    if (event.target === element.current) leave();
  };
  return html`<dialog
    ref=${element}
    class=${wide ? 'wide' : ''}
    aria-labelledby=${name}
    onCancel=${cancelled}
    onClose=${closed}
    onClick=${clicked}
    onKeyDown=${(event) => goRound(event, element.current)}
    ...${rest}
  >
    <div class="dialog">
      <h2 id=${name}>${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** Asks before something is done. It is no form: Enter in one of its fields shall not do it. What it does, and to how much, is what is inside; `of` names it for tests. What
 * `stays` closes itself once it is done. While it is done nothing closes it, so that what came of it is seen. */
export function Confirm({ title, act, of = '', danger = false, work, close, children, off = false, stays = false }) {
  const action = useAction(async () => {
    await work();
    if (!stays) close();
  });
  return html`<${Dialog} title=${title} close=${close} held=${action.busy} data-confirm=${of}>
    <div class="confirm">
      <div class="said">${children}</div>
      <${Problem} failure=${action.failure} />
      <div class="actions end">
        <${Button} off=${action.busy} press=${close} data-action="dismiss">${t('do.cancel')}<//>
        <${Button} kind=${danger ? 'danger' : 'primary'} busy=${action.busy} off=${off} press=${action.run} data-action="confirm">${act}<//>
      </div>
    </div>
  <//>`;
}
