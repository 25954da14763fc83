// Telling the main conversation what came of a task: a preview that can be changed, and only then a message.

import { call } from '../client.js';
import { t } from '../i18n/index.js';
import { toast, useShared } from '../state.js';
import { oneLine } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { clearIf, useAction, useDraft } from '../ui/hooks.js';
import { Button, Check, Empty, Field, Path, Problem } from '../ui/parts.js';
import { html, useRef, useState } from '../vendor/preact.js';

const FIRST = { status: true, conclusion: true, relPath: '', customText: '' };

export function ReturnToMain({ task, files }) {
  const mains = useShared((state) => state.mains);
  const main = useShared((state) => state.main);
  const [parts, setParts] = useDraft(`return.parts.${task.id}`, FIRST);
  const [text, setText] = useDraft(`return.text.${task.id}`, '');
  // The preview as it was made, and whom it was made for: that stays, whoever comes and goes.
  const [made, setMade] = useDraft(`return.made.${task.id}`, { text: '', to: '' });
  const [replacing, setReplacing] = useState(false);
  const isThere = (id) => mains.some((session) => session.id === id);
  // That it was started from, as long as somebody is there; else the one this page belongs to.
  const nearest = isThere(task.mainSessionId) ? task.mainSessionId : main;
  const mainSessionId = !text ? nearest : isThere(made.to) ? made.to : '';
  const [cut, setCut] = useState(false);
  const sent = useRef(null);
  const preview = useAction(async () => {
    const { status, conclusion, relPath, customText } = parts;
    const asked = { status, conclusion, customText, ...(relPath.trim() ? { file: { relPath: relPath.trim() } } : {}) };
    const fresh = await call('previewReturn', { taskId: task.id, parts: asked });
    setText((now) => (now === text ? fresh.text : now));
    setMade({ text: fresh.text, to: mainSessionId || nearest });
    setCut(fresh.truncated);
  });
  const send = useAction(async () => {
    // The same message sent again after a lost answer is one message; another text, or to somebody else, is another.
    if (sent.current?.text !== text || sent.current.mainSessionId !== mainSessionId) {
      sent.current = { mainSessionId, text, requestId: crypto.randomUUID?.() ?? String(Math.random()) };
    }
    const { truncated } = await call('returnToMain', sent.current);
    sent.current = null;
    toast(t(truncated ? 'return.sentCut' : 'return.sent'));
    setText(clearIf(text));
  });
  const make = (event) => {
    event.preventDefault();
    if (text && text !== made.text) setReplacing(true);
    else preview.run();
  };
  const submit = (event) => {
    event.preventDefault();
    if (mainSessionId && text.trim()) send.run();
  };
  const why = t(mains.length ? 'main.choose' : 'return.none');
  const paths = (files.data?.entries ?? []).filter((entry) => entry.type === 'file' && !entry.lossy).slice(0, 500);
  // What was written is still to be read when nobody is there any more.
  if (!nearest && !text) {
    const several = mains.length > 0;
    return html`<${Empty} title=${t(several ? 'return.which' : 'return.none')}>
      <p>${t(several ? 'return.which.hint' : 'main.none.hint')}</p>
      ${!several && html`<pre class="text">cofferdam main attach NAME</pre>`}
    <//>`;
  }
  return html`<section aria-label=${t('task.part.return')} class="narrow">
    <p class="hint">${t('return.hint')}</p>
    <form class="panel" onSubmit=${make}>
      <fieldset>
        <legend>${t('return.parts')}</legend>
        <${Check} name="return-status" label=${t('return.status')} checked=${parts.status} change=${(status) => setParts({ ...parts, status })} />
        <${Check} name="return-conclusion" label=${t('return.conclusion')} checked=${parts.conclusion} change=${(conclusion) => setParts({ ...parts, conclusion })} />
      </fieldset>
      <${Field} label=${t('return.file')} hint=${t('return.file.hint')}>
        ${({ id, describedby }) =>
          html`<input id=${id} name="return-file" class="path" list="return-files" aria-describedby=${describedby} spellcheck="false" autocomplete="off" value=${parts.relPath} onInput=${(event) => setParts({ ...parts, relPath: event.currentTarget.value })} />
            <datalist id="return-files">${paths.map(({ relPath }) => html`<option key=${relPath} value=${relPath}></option>`)}</datalist>`}
      <//>
      <${Field} label=${t('return.custom')} hint=${t('return.custom.hint')}>
        ${({ id, describedby }) =>
          html`<textarea id=${id} name="return-custom" rows="2" maxlength="1000" aria-describedby=${describedby} value=${parts.customText} onInput=${(event) => setParts({ ...parts, customText: event.currentTarget.value })}></textarea>`}
      <//>
      <${Problem} failure=${preview.failure} />
      <${Button} busy=${preview.busy} data-action="return-preview">${t('return.preview')}<//>
    </form>
    ${text &&
    html`<form class="panel" onSubmit=${submit}>
      <${Field} label=${t('return.text')} hint=${t('return.text.hint')}>
        ${({ id, describedby }) =>
          html`<textarea id=${id} name="return-text" rows="10" aria-describedby=${describedby} value=${text} onInput=${(event) => setText(event.currentTarget.value)}></textarea>`}
      <//>
      ${cut && html`<p class="hint">${t('return.truncated')}</p>`}
      ${mainSessionId
        ? html`<p>${t('return.to')} <${Path} of=${mainSessionId} /></p>`
        : mains.length > 0 &&
          html`<${Field} label=${t('return.gone')}>
            ${({ id }) =>
              html`<select id=${id} name="return-to" value="" onChange=${(event) => setMade({ ...made, to: event.currentTarget.value })}>
                <option value="">${t('main.choose')}</option>
                ${mains.map((session) => html`<option key=${session.id} value=${session.id}>${oneLine(session.id)}</option>`)}
              </select>`}
          <//>`}
      <${Problem} failure=${send.failure} />
      <div class="actions">
        <${Button} kind="primary" off=${!mainSessionId && why} busy=${send.busy} data-action="return-send">${t('return.send')}<//>
        ${!mainSessionId && html`<span class="hint">${why}</span>`}
      </div>
    </form>`}
    ${replacing &&
    html`<${Confirm} title=${t('return.replace.title')} act=${t('return.replace')} of="replace" work=${preview.run} close=${() => setReplacing(false)}>
      <p>${t('return.replace.what')}</p>
    <//>`}
  </section>`;
}
