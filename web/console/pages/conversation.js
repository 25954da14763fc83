// What a task's agent was told, said and did, as it happens; and the line by which it is told more.

import { call } from '../client.js';
import { has, language, t } from '../i18n/index.js';
import { answered, isActive, isOpen, useShared } from '../state.js';
import { beginning, folded, moment, visible } from '../text.js';
import { reloadTranscript } from '../transcript.js';
import { useAction, useDraft, useLoad } from '../ui/hooks.js';
import { Button, Empty, Loading, Notice, Problem, Time } from '../ui/parts.js';
import { Component, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/preact.js';

/** How many entries are drawn at first, and with each wish for more. */
const SHOWN = 150;
/** How much of one entry is drawn before somebody wants all of it. */
const ENTRY = 6000;

export function Conversation({ task }) {
  const live = useShared((state) => state.transcripts[task.id]);
  const legacy = useLoad(
    async (signal) => (task.legacy ? (await call('getLegacyTask', { taskId: task.id }, { signal })).entries : null),
    [task.id],
  );
  const old = useMemo(() => (legacy.data ? fromLegacy(legacy.data) : null), [legacy.data]);
  const entries = old ?? live?.entries;
  const failure = task.legacy ? legacy.failure : live?.failure;
  const retry = () => (task.legacy ? legacy.reload() : reloadTranscript(task.id));
  return html`<section class="talk" aria-label=${t('talk.label')}>
    ${failure && failure.code !== 'TASK_NOT_FOUND' && html`<${Problem} failure=${failure} retry=${retry} />`}
    ${!entries && !failure && html`<${Loading} />`}
    ${entries && html`<${Entries} entries=${entries} truncated=${!task.legacy && live?.truncated} task=${task} />`}
    <${Input} task=${task} />
  </section>`;
}

/** The old panel's log has a thought beside what was said: two entries here. */
const fromLegacy = (log) =>
  log.flatMap(({ seq, kind, time, text, think }, at) => [
    ...(think ? [{ seq: `${at}.${seq}t`, kind: 'thinking', time, text: think }] : []),
    ...(text || !think ? [{ seq: `${at}.${seq}`, kind, time, text }] : []),
  ]);

function Entries({ entries, truncated, task }) {
  const [most, setMost] = useState(SHOWN);
  const [behind, setBehind] = useState(false);
  const box = useRef();
  const follows = useRef(true);
  const hidden = Math.max(0, entries.length - most);
  const shown = hidden ? entries.slice(hidden) : entries;
  useLayoutEffect(() => {
    if (follows.current) box.current?.scrollTo(0, box.current.scrollHeight);
    else setBehind(true);
  }, [entries]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    follows.current = scrollHeight - scrollTop - clientHeight < 40;
    if (follows.current) setBehind(false);
  };
  const toNewest = () => {
    follows.current = true;
    box.current.scrollTo(0, box.current.scrollHeight);
    setBehind(false);
  };
  if (!entries.length) {
    const when = task.status === 'queued' ? 'queued' : isOpen(task) ? 'soon' : 'ended';
    return html`<${Empty} title=${t('talk.none')}><p>${t(`talk.none.${when}`)}</p><//>`;
  }
  return html`<div class="log-frame">
    <div class=${task.presetId === 'shell' ? 'log printed' : 'log'} ref=${box} role="log" tabindex="0" aria-label=${t('talk.label')} onScroll=${scrolled}>
      ${truncated && html`<p class="hint center">${t('talk.truncated')}</p>`}
      ${hidden > 0 &&
      html`<p class="center"><${Button} kind="small" press=${() => setMost(most + SHOWN)}>${t('talk.earlier', { count: hidden })}<//></p>`}
      ${shown.map((entry) => html`<${Entry} key=${entry.seq} entry=${entry} spoken=${language()} />`)}
    </div>
    ${behind && html`<${Button} kind="small newest" press=${toNewest}>${t('talk.newest')}<//>`}
  </div>`;
}

const FOLDED = { prompt: 'talk.prompt', thinking: 'talk.thinking' };
const TURN = /^turn (\d+) (began|ended)(?:: ([a-z-]+)(?:: ([\s\S]*))?)?$/;

/** One thing that was said or done. It never changes. */
class Entry extends Component {
  shouldComponentUpdate({ entry, spoken }, state) {
    return entry !== this.props.entry || spoken !== this.props.spoken || state !== this.state;
  }

  render({ entry: { kind, time, text } }, { all }) {
    const shown = all || text.length <= ENTRY ? text : beginning(text, ENTRY);
    const more = shown !== text &&
      html`<${Button} kind="small" press=${() => this.setState({ all: true })}>${t('text.more', { left: text.length - ENTRY })}<//>`;
    if (kind === 'turn') return turn(text, time);
    if (kind in FOLDED) {
      return html`<details class=${`entry ${kind}`} data-entry-kind=${kind}>
        <summary>${t(FOLDED[kind])} <${Time} at=${time} /></summary>
        <div class="said">${visible(shown)}</div>
        ${more}
      </details>`;
    }
    if (kind === 'tool') return tool(shown, more);
    if (kind === 'note') return note(shown, more);
    const who = has(`talk.${kind}`) ? t(`talk.${kind}`) : kind;
    return html`<div class=${`entry ${kind}`} data-entry-kind=${kind}>
      <p class="who">${who} <${Time} at=${time} /></p>
      <div class="said" dir="auto">${visible(shown)}</div>
      ${more}
    </div>`;
  }
}

/** A tool that was called, or what came of it: its first line, and the rest folded. */
function tool(text, more) {
  const said = visible(text);
  const end = said.indexOf('\n');
  const line = beginning(end < 0 ? said : said.slice(0, end), 200);
  const label = html`<span class="sr">${t('talk.tool')}: </span><code>${line}</code>`;
  if (end < 0 && line === said) return html`<p class="entry tool" data-entry-kind="tool">${label}</p>`;
  return html`<details class="entry tool" data-entry-kind="tool">
    <summary>${label}</summary>
    <pre class="text" tabindex="0">${said}</pre>
    ${more}
  </details>`;
}

/** What the host has to say: its beginning, and the rest folded. */
function note(text, more) {
  const line = folded(text, 90);
  if (line === text) return html`<p class="entry note" data-entry-kind="note">${t('talk.note')}: ${line}</p>`;
  return html`<details class="entry note" data-entry-kind="note">
    <summary>${t('talk.note')}: <bdi>${line}</bdi></summary>
    <div class="said">${visible(text)}</div>
    ${more}
  </details>`;
}

function turn(text, time) {
  const [, number, what, reason, error] = TURN.exec(text) ?? [];
  const word = has(`reason.${reason}`) ? t(`reason.${reason}`) : (reason ?? '');
  const line = number
    ? what === 'began'
      ? t('talk.began', { turn: number })
      : t('talk.ended', { turn: number, reason: word })
    : visible(text);
  return html`<div class="entry turn" data-entry-kind="turn">
    <span title=${moment(time)}>${line}</span>
    ${error && html`<div class="said">${visible(error)}</div>`}
  </div>`;
}

function Input({ task }) {
  const [text, setText] = useDraft(`tell.${task.id}`, '');
  const stop = useAction(() => answered(call('cancelTask', { taskId: task.id })));
  const send = useAction(async () => {
    await answered(call('followUp', { taskId: task.id, text }, { own: true }));
    setText('');
  });
  const box = useRef();
  useEffect(() => {
    // As high as what is in it, up to what the style sheet allows.
    box.current?.style.setProperty('height', 'auto');
    box.current?.style.setProperty('height', `${(box.current?.scrollHeight ?? 0) + 2}px`);
  }, [text]);
  const cannot = task.legacy
    ? t('talk.legacy')
    : !task.live && !task.canResume && !isOpen(task)
      ? t('talk.cannot')
      : '';
  if (cannot) return html`<${Notice}><p>${cannot}</p><//>`;
  const off = (isOpen(task) && (isActive(task) ? t('talk.running') : t('talk.none.queued'))) || (!text.trim() && t('talk.empty'));
  const submit = (event) => {
    event.preventDefault();
    if (!off) send.run();
  };
  const key = (event) => {
    // While a word is being composed, Enter chooses it.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    submit(event);
  };
  return html`<form class="tell" onSubmit=${submit}>
    <${Problem} failure=${send.failure ?? stop.failure} />
    <label class="sr" for="tell">${t('talk.input')}</label>
    <div class="tell-row">
      <textarea
        id="tell"
        name="followup"
        ref=${box}
        rows="2"
        placeholder=${t('talk.input')}
        aria-describedby="tell-hint"
        value=${text}
        onInput=${(event) => setText(event.currentTarget.value)}
        onKeyDown=${key}
      ></textarea>
      ${isActive(task)
        ? html`<${Button} kind="danger" busy=${stop.busy} press=${stop.run} data-action="stop">${t('task.stop')}<//>`
        : html`<${Button} kind="primary" off=${off} busy=${send.busy} data-action="send">${t('talk.send')}<//>`}
    </div>
    <p class="hint" id="tell-hint" role="status">${isOpen(task) && off ? off : t('talk.input.hint')}</p>
  </form>`;
}
