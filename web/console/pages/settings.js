// The settings. What is entered is kept until it is saved or discarded, whatever news come meanwhile.

import { call, post } from '../client.js';
import { learn, t } from '../i18n/index.js';
import words from '../i18n/words/settings.js';
import { refresh } from '../live.js';
import { link } from '../router.js';
import { change, state, toast, useShared } from '../state.js';
import { oneLine, visible } from '../text.js';
import { DirectoryInput } from '../ui/directory.js';
import { useAction, useDraft, useLoad } from '../ui/hooks.js';
import { Button, Check, Field, Heading, Loading, Notice, Path, Problem } from '../ui/parts.js';
import { html, useEffect, useState } from '../vendor/preact.js';
import { firstUsable, inOrder } from './presets.js';

learn(words);

const NUMBERS = ['timeoutSeconds', 'maxConcurrent'];
/** What is allowed until somebody chooses, and what the well-known agents need. */
const USUAL_TOOLS = ['bash', 'edit', 'glob', 'grep', 'pwsh', 'read', 'write'];

export default function SettingsPage({ at: [part] = [] }) {
  const host = useShared((shared) => shared.host);
  const [entered, setEdits] = useDraft('settings', {});
  const [messages, setMessages] = useState([]);
  const config = host?.config;
  const isThere = Boolean(config);
  useEffect(() => {
    if (part !== 'presets' || !isThere) return undefined;
    // By then the page has been taken to its beginning, as every page is.
    const frame = requestAnimationFrame(() => {
      const field = document.querySelector('[name=presetId]');
      field?.focus({ preventScroll: true });
      field?.closest('.field').scrollIntoView({ block: 'center' });
    });
    return () => cancelAnimationFrame(frame);
  }, [part, isThere]);
  const save = useAction(async () => {
    const sent = edits;
    const saved = await call('setConfig', { patch });
    change({ host: { ...state.host, config: saved.config } });
    // What was entered meanwhile is not saved yet.
    setEdits((now) => Object.fromEntries(Object.entries(now).filter(([key, entered]) => entered !== sent[key])));
    setMessages(saved.messages);
    if (saved.messages.length) {
      // What became of what was entered is said at the top.
      toast(t('settings.savedPartly'), 'bad');
      scrollTo(0, 0);
    } else {
      toast(t('settings.saved'));
    }
    await refresh();
  });
  if (!host) return html`<${Heading}>${t('settings.title')}<//><${Loading} />`;
  if (!config) return html`<${Heading}>${t('settings.title')}<//><${Notice} tone="warn"><p>${t('settings.unknown')}</p><//>`;

  // As long as nobody has chosen who does the tasks, it is who can.
  const offered = config.presetId || firstUsable(host.presetChoices);
  const edits = offered === config.presetId ? entered : { presetId: offered, ...entered };
  const value = (key) => (key in edits ? edits[key] : shownOf(key, config));
  const set = (key) => (fresh) => setEdits((now) => ({ ...now, [key]: fresh }));
  const typed = (key) => (event) => set(key)(event.currentTarget.value);
  const changed = Object.keys(edits).filter((key) => !isEqual(edits[key], shownOf(key, config)));
  // What is offered goes along with what somebody changed, and is no change of theirs.
  const own = changed.filter((key) => key in entered);
  const patch = Object.fromEntries(changed.map((key) => toWire(key, edits[key])));
  const off =
    (!value('allowedTools').length && t('settings.noTools')) ||
    (changed.some((key) => NUMBERS.includes(key) && !/^\d+$/.test(edits[key].trim())) && t('settings.badNumber')) ||
    (!own.length && t('settings.nothing'));
  const submit = (event) => {
    event.preventDefault();
    if (!off) save.run();
  };
  const flag = (key) =>
    html`<${Check} name=${key} label=${t(`settings.${key}`)} hint=${t(`settings.${key}.hint`)} checked=${value(key)} change=${set(key)} />`;
  const number = (key, word, min, max) =>
    html`<${Field} label=${t(`settings.${word}`)} hint=${t(`settings.${word}.hint`)}>
      ${({ id, describedby }) =>
        html`<input id=${id} name=${key} type="number" inputmode="numeric" min=${min} max=${max} aria-describedby=${describedby} value=${value(key)} onInput=${typed(key)} />`}
    <//>`;
  return html`<section aria-label=${t('settings.title')} class="narrow">
    <${Heading}>${t('settings.title')}<//>
    ${messages.length > 0 &&
    html`<${Notice} tone="warn" role="alert" data-testid="messages">
      <div>
        <p>${t('settings.messages')}</p>
        <ul>${messages.map((message) => html`<li key=${message}>${inWords(message)}</li>`)}</ul>
      </div>
    <//>`}
    <form onSubmit=${submit} noValidate>
      <section class="panel" aria-label=${t('settings.sandbox')}>
        <h2>${t('settings.sandbox')}</h2>
        <${Field} label=${t('settings.sandboxRoot')} hint=${t('settings.sandboxRoot.hint')}>
          ${({ id, describedby }) =>
            html`<${DirectoryInput} id=${id} name="sandboxRoot" fresh value=${value('sandboxRoot')} change=${set('sandboxRoot')} aria-describedby=${describedby} />`}
        <//>
        ${!value('sandboxRoot') && html`<${Suggestion} use=${set('sandboxRoot')} />`}
        ${flag('allowWrites')} ${flag('readContext')}
      </section>
      <section class="panel" aria-label=${t('settings.agent')}>
        <h2>${t('settings.agent')}</h2>
        <${Preset} choices=${inOrder(host.presetChoices)} value=${value('presetId')} typed=${typed('presetId')} />
        <${Needs} preset=${host.presetChoices.find((of) => of.id === value('presetId'))} tools=${value('allowedTools')} allow=${set('allowedTools')} />
        <${Tools} choices=${host.toolChoices} value=${value('allowedTools')} set=${set('allowedTools')} />
      </section>
      <section class="panel" aria-label=${t('settings.limits')}>
        <h2>${t('settings.limits')}</h2>
        <div class="columns">
          ${number('timeoutSeconds', 'timeout', 30, 7200)} ${number('maxConcurrent', 'maxConcurrent', 1, 8)}
        </div>
      </section>
      <section class="panel" aria-label=${t('settings.exports')}>
        <h2>${t('settings.exports')}</h2>
        ${flag('enableExport')} ${flag('allowRememberChoice')}
      </section>
      <${Problem} failure=${save.failure} />
      <div class="actions sticky">
        <${Button} kind="primary" off=${off} busy=${save.busy} data-action="save">${t('settings.save')}<//>
        ${Object.keys(entered).length > 0 && html`<${Button} press=${() => setEdits({})}>${t('settings.discard')}<//>`}
        <span class="hint" role="status">${off || t('settings.changed', { count: own.length })}</span>
        ${!own.length && host.sandbox.set && html`<a class="button quiet" href=${link('new')}>${t('settings.go')} →</a>`}
      </div>
    </form>
  </section>`;
}

/** A setting as it is entered. */
const shownOf = (key, config) => (key === 'timeoutSeconds' ? String(config.timeoutMs / 1000) : config[key]);

const isEqual = (one, other) =>
  Array.isArray(one) ? [...one].sort().join('\n') === [...other].sort().join('\n') : String(one) === String(other);

function toWire(key, value) {
  if (key === 'timeoutSeconds') return ['timeoutMs', Number(value) * 1000];
  if (key === 'maxConcurrent') return [key, Number(value)];
  return [key, typeof value === 'string' ? value.trim() : value];
}

/** What the fields are called, whose keys messages begin with. */
const LABELS = {
  sandboxRoot: 'settings.sandboxRoot',
  allowWrites: 'settings.allowWrites',
  readContext: 'settings.readContext',
  presetId: 'settings.presetId',
  allowedTools: 'settings.tools',
  timeoutMs: 'settings.timeout',
  maxConcurrent: 'settings.maxConcurrent',
  enableExport: 'settings.enableExport',
  allowRememberChoice: 'settings.allowRememberChoice',
};
const OUT_OF_RANGE = /^(\S+) is no integer from (\d+) to (\d+); (\d+) is used$/;

/** What became of a setting, by the name and in the unit of its field. */
function inWords(message) {
  const [, key, said] = /^(\w+): ([\s\S]*)$/.exec(message) ?? [];
  if (!Object.hasOwn(LABELS, key ?? '')) return visible(message);
  const label = t(LABELS[key]);
  const range = OUT_OF_RANGE.exec(said);
  if (!range) return t('settings.message', { label, what: visible(said.replace(/^(BAD_ROOT|ROOT_PROTECTED) /, '')) });
  const [asked, min, max, used] = range.slice(1).map((number) => (key === 'timeoutMs' ? Number(number) / 1000 : Number(number)));
  return t('settings.message.range', { label, asked, min, max, used });
}

/** Directories whose content does not stay. */
const PASSING = /^\/(tmp|var\/tmp|dev\/shm|run)(\/|$)/;

/** Somebody who has no directory in mind gets one offered. */
function Suggestion({ use }) {
  const home = useLoad((signal) => post('/directories', {}, { signal }), []);
  if (!home.data) return null;
  const path = `${home.data.path === '/' ? '' : home.data.path}/pods`;
  return html`<p><${Button} kind="small" press=${() => use(path)} data-action="suggest">${t('settings.suggest')} <${Path} of=${path} /><//></p>
    ${PASSING.test(path) && html`<p class="hint">${t('settings.suggest.passing')}</p>`}`;
}

function Preset({ choices, value, typed }) {
  // A preset that is no longer there stays what it is until another one is chosen.
  const known = choices.some((choice) => choice.id === value) || !value ? choices : [{ id: value, name: value, broken: true }, ...choices];
  const nameOf = ({ name, broken }) => (broken ? t('settings.presetId.broken', { name: oneLine(name) }) : oneLine(name));
  return html`<${Field} label=${t('settings.presetId')} hint=${t('settings.presetId.hint')}>
    ${({ id, describedby }) =>
      choices.length
        ? html`<select id=${id} name="presetId" aria-describedby=${describedby} value=${value} onChange=${typed}>
            ${!value && html`<option value="" selected>${t('settings.presetId.none')}</option>`}
            ${known.map((choice) => html`<option key=${choice.id} value=${choice.id} data-broken=${choice.broken ? 'true' : null} selected=${choice.id === value}>${nameOf(choice)}</option>`)}
          </select>`
        : html`<input id=${id} name="presetId" aria-describedby=${describedby} spellcheck="false" value=${value} onInput=${typed} />`}
  <//>`;
}

/** What the chosen preset needs, and why others cannot be used. */
function Needs({ preset, tools, allow }) {
  const lacking = (preset?.needs ?? []).filter((tool) => !tools.includes(tool));
  if (preset?.broken) return html`<${Notice} tone="bad" data-testid="why"><p>${visible(preset.why || t('settings.presetId.noWhy'))}</p><//>`;
  if (!lacking.length) return null;
  return html`<${Notice} tone="warn" data-testid="lacking">
    <p>${t('settings.lacking', { tools: oneLine(lacking.join(', ')) })}</p>
    <${Button} kind="small" press=${() => allow([...tools, ...lacking])} data-action="allow">${t('settings.lacking.allow')}<//>
  <//>`;
}

function Tools({ choices, value, set }) {
  const all = [...new Set([...choices, ...value])].sort();
  // What was ticked when the page was opened stays where it is, so that nothing moves under the pointer.
  const [shown] = useState(() => new Set([...USUAL_TOOLS, ...value]));
  const more = all.filter((tool) => !shown.has(tool));
  const tick = (tool, ticked) => set(ticked ? [...value, tool] : value.filter((of) => of !== tool));
  const box = (tool) =>
    html`<${Check} key=${tool} name="tool" value=${tool} label=${html`<code>${oneLine(tool)}</code>`} checked=${value.includes(tool)} change=${(ticked) => tick(tool, ticked)} />`;
  return html`<fieldset class="tool-choice">
    <legend>${t('settings.tools')}</legend>
    <p class="hint">${t('settings.tools.hint')}</p>
    <div class="grid">${all.filter((tool) => shown.has(tool)).map(box)}</div>
    ${more.length > 0 &&
    html`<details data-testid="more-tools">
      <summary>${t('settings.tools.more', { count: more.length, ticked: more.filter((tool) => value.includes(tool)).length })}</summary>
      <div class="grid">${more.map(box)}</div>
    </details>`}
  </fieldset>`;
}
