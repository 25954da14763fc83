// Small parts that all pages are made of. Text is always a text node: nothing from agents or files can be markup.

import { has, t } from '../i18n/index.js';
import { bytes, head, moment, oneLine, stamp, visible } from '../text.js';
import { toast, useShared } from '../state.js';
import { html, useState } from '../vendor/preact.js';
import { useName } from './hooks.js';

/** A button. One that is `off` can be reached and read, and does nothing; `off` may be the reason. */
export function Button({ off = false, busy = false, kind = '', press, children, ...rest }) {
  const still = Boolean(off) || busy;
  const pressed = (event) => {
    if (still) {
      event.preventDefault();
      return;
    }
    press?.(event);
  };
  return html`<button
    type=${press ? 'button' : 'submit'}
    class=${`button ${kind}`}
    aria-disabled=${still ? 'true' : null}
    aria-busy=${busy ? 'true' : null}
    title=${typeof off === 'string' ? off : null}
    onClick=${pressed}
    ...${rest}
  >
    ${children}${busy && html`<span aria-hidden="true"> …</span>`}
  </button>`;
}

const TONES = {
  completed: 'good',
  failed: 'bad',
  timeout: 'warn',
  cancelled: 'warn',
  interrupted: 'warn',
  running: 'busy',
  starting: 'busy',
  queued: 'quiet',
};

/** A word that stands for a state; `tone` is good, bad, warn, busy or quiet. */
export const Chip = ({ tone = 'quiet', children, ...rest }) =>
  html`<span class=${`chip ${tone}`} ...${rest}>${children}</span>`;

/** The status of a task. */
export const StatusChip = ({ status }) =>
  html`<${Chip} tone=${TONES[status] ?? 'quiet'} data-testid="status" data-status=${status}
    >${has(`status.${status}`) ? t(`status.${status}`) : oneLine(status)}<//
  >`;

/** A path or a name, as it is, and nothing it could hide. */
export const Path = ({ of, ...rest }) => html`<bdi class="path" ...${rest}>${oneLine(of)}</bdi>`;

/** A moment; yesterday's has a date, also if it was today's when it was drawn. */
export function Time({ at }) {
  useShared((shared) => shared.day);
  return html`<time datetime=${stamp(at)}>${moment(at)}</time>`;
}

/** A size in bytes; the exact number is its title. */
export const Bytes = ({ count }) => html`<span class="number" title=${`${count} B`}>${bytes(count)}</span>`;

/** A field of a form: a label, what it is for, and the input, which gets `id` and `describedby`. */
export function Field({ label, hint, children }) {
  const id = useName('field');
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, describedby: hint ? `${id}-hint` : null })}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`;
}

/** A box to tick. */
export const Check = ({ label, hint, checked, change, ...rest }) =>
  html`<label class="check">
    <input type="checkbox" checked=${checked} onChange=${(event) => change(event.currentTarget.checked)} ...${rest} />
    <span>${label}${hint && html`<small class="hint">${hint}</small>`}</span>
  </label>`;

/** One of a few: `choices` is `[[value, label, hint]]`. */
export function Radios({ legend, choices, value, change, name: given }) {
  const own = useName('choice');
  const name = given ?? own;
  return html`<fieldset class="radios">
    <legend>${legend}</legend>
    ${choices.map(
      ([of, label, hint]) =>
        html`<label class="check" key=${of}>
          <input type="radio" name=${name} value=${of} checked=${of === value} onChange=${() => change(of)} />
          <span>${label}${hint && html`<small class="hint">${hint}</small>`}</span>
        </label>`,
    )}
  </fieldset>`;
}

/** Codes of what the disk refuses: whether that was for want of a right, the system says, not the code. */
const OF_DISK = ['INTERNAL', 'BAD_ROOT', 'IoError', 'io'];
const isDenied = ({ code, message, data }) =>
  OF_DISK.includes(code) && /permission denied/i.test(`${data?.os ?? ''} ${message ?? ''}`);

/** Why something did not work: what happened, its code, and the way out. */
export function Problem({ failure, retry, action = t('do.retry') }) {
  if (!failure) return null;
  const code = failure.code ?? 'INTERNAL';
  // The control API writes `NotFound` where the contract writes `NOT_FOUND`.
  const upper = code.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  const special = [failure.data?.sharedWith && `${code}.shared`, failure.data?.late && `${code}.late`, isDenied(failure) && 'PERMISSION_DENIED'].filter(Boolean);
  const way = [...special, code, upper].map((of) => `error.${of}`).find(has);
  return html`<div class="notice bad" role="alert" data-code=${code}>
    <div>
      <p><strong>${t('error.title')}</strong> <code class="code">${oneLine(code)}</code></p>
      ${failure.message && html`<p class="said">${visible(failure.message)}</p>`}
      <p>${t(way ?? 'error.unknown')}</p>
      ${failure.data?.hint && html`<p>${visible(failure.data.hint)}</p>`}
    </div>
    ${retry && html`<${Button} press=${retry}>${action}<//>`}
  </div>`;
}

/** Something to know: `tone` is good, warn, bad or quiet. */
export const Notice = ({ tone = 'quiet', children, ...rest }) =>
  html`<div class=${`notice ${tone}`} ...${rest}>${children}</div>`;

/** What is said where there is nothing yet, and what to do next. */
export const Empty = ({ title, children }) =>
  html`<div class="empty" data-testid="empty"><h2>${title}</h2>${children}</div>`;

/** While something is fetched. */
export const Loading = () => html`<p class="loading" role="status">${t('app.loading')}</p>`;

/** Terms and what they are: `[[term, value]]`; those without a value are left out. */
export const Facts = ({ of }) =>
  html`<dl class="facts">
    ${of
      .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
      .map(([term, value]) => html`<div key=${term}><dt>${term}</dt><dd>${value}</dd></div>`)}
  </dl>`;

/** The heading of a page, with what can be done there. */
export const Heading = ({ children, actions }) =>
  html`<div class="heading">
    <h1 tabindex="-1">${children}</h1>
    ${actions && html`<div class="actions">${actions}</div>`}
  </div>`;

const STEP = 20000;

/** A text of any length, of which at most as much is drawn as was asked for. */
export function LongText({ of, kind = '', label }) {
  const [most, setMost] = useState(STEP);
  const left = of.length - most;
  return html`<div class="long">
    <pre class=${`text ${kind}`} tabindex="0" aria-label=${label}>${visible(head(of, most))}</pre>
    ${left > 0 &&
    html`<${Button} kind="small" press=${() => setMost(most + 5 * STEP)}>${t('text.more', { left })}<//>`}
  </div>`;
}

/** Copies a text. */
export function CopyButton({ text }) {
  const copy = async () => {
    try {
      // It is there only for pages that browsers trust, and may be refused.
      await navigator.clipboard.writeText(text);
      toast(t('done.copied'));
    } catch {
      toast(t('done.notCopied'), 'bad');
    }
  };
  return html`<${Button} kind="small" press=${copy}>${t('do.copy')}<//>`;
}
