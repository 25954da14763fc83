// What a task's agent was told, said and did, as it happens; and the line by which it is told more.

import { call } from '../client.js';
import { has, language, t } from '../i18n/index.js';
import { answered, isActive, isOpen, useShared } from '../state.js';
import { beginning, moment, visible } from '../text.js';
import { reloadTranscript } from '../transcript.js';
import { clearIf, useAction, useDraft, useLoad } from '../ui/hooks.js';
import { Button, Chip, Empty, Loading, Notice, Problem, Time } from '../ui/parts.js';
import { Component, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { historyOf, rewindOf } from './history.js';
import { noteOf } from './notes.js';

/** How many entries are drawn at first, and with each wish for more. */
const SHOWN = 150;
/** How much of one entry is drawn before somebody wants all of it. */
const ENTRY = 6000;
/** How many things an agent said one after the other are drawn as one. */
const TOGETHER = 200;

export function Conversation({ task, files, description }) {
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
    ${entries && html`<${Entries} entries=${entries} truncated=${!task.legacy && live?.truncated} task=${task} description=${description} />`}
    <${Input} task=${task} missing=${files.data?.missing} />
  </section>`;
}

/** The old panel's log has a thought beside what was said: two entries here. */
const fromLegacy = (log) =>
  log.flatMap(({ seq, kind, time, text, think }, at) => [
    ...(think ? [{ seq: `${at}.${seq}t`, kind: 'thinking', time, text: think }] : []),
    ...(text || !think ? [{ seq: `${at}.${seq}`, kind, time, text }] : []),
  ]);

function Entries({ entries, truncated, task, description }) {
  const [most, setMost] = useState(SHOWN);
  const [behind, setBehind] = useState(false);
  const box = useRef();
  const follows = useRef(true);
  const hidden = Math.max(0, entries.length - most);
  const history = useMemo(() => historyOf(entries), [entries]);
  const shown = useMemo(() => together(hidden ? entries.slice(hidden) : entries, history), [entries, hidden, history]);
  useLayoutEffect(() => {
    if (follows.current) box.current?.scrollTo(0, box.current.scrollHeight);
    else setBehind(true);
  }, [entries]);
  // What scrolled may be gone by the time it is told.
  const scrolled = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
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
      ${shown.map(({ of, ...rest }) => html`<${Entry} key=${of[0].seq} of=${of} asked=${description} spoken=${language()} ...${rest} />`)}
    </div>
    ${behind && html`<${Button} kind="small newest" press=${toNewest}>${t('talk.newest')}<//>`}
  </div>`;
}

/** What is drawn, a thing each: what an agent said one after the other is one, of several entries. `gone` says that it was
 * taken back. */
function together(entries, { gone, turnOf }) {
  const things = [];
  for (const entry of entries) {
    const thing = { of: [entry], gone: gone.has(turnOf.get(entry.seq)) };
    const last = things.at(-1);
    const joins = entry.kind === 'assistant' && last?.of[0].kind === 'assistant' && last.gone === thing.gone;
    if (joins && last.of.length < TOGETHER) last.of.push(entry);
    else if (entry.kind !== 'note' || noteOf(entry.text)) things.push(thing);
  }
  return things;
}

const FOLDED = { prompt: 'talk.prompt', thinking: 'talk.thinking' };
const TURN = /^turn (\d+) (began|ended)(?:: ([a-z-]+)(?:: ([\s\S]*))?)?$/;

/** One thing that was said or done. But for what is said next, and for its being taken back, it never changes. */
class Entry extends Component {
  shouldComponentUpdate({ of, asked, gone, spoken }) {
    const { props } = this;
    return (
      of[0] !== props.of[0] ||
      of.length !== props.of.length ||
      gone !== props.gone ||
      spoken !== props.spoken ||
      (of[0].kind === 'prompt' && asked !== props.asked)
    );
  }

  render({ of, asked, gone }) {
    const [{ kind, time, text }] = of;
    const faded = gone ? ' gone' : '';
    if (kind === 'turn') return turn(text, time, gone);
    if (kind === 'note') return note(text);
    if (kind === 'tool') return html`<${Tool} text=${text} faded=${faded} />`;
    if (kind === 'thinking') return html`<${Folded} kind=${kind} text=${text} time=${time} faded=${faded} />`;
    if (kind === 'prompt') {
      // What the person asked for, and then all that the agent was told with it.
      return html`<div class=${`entry user${faded}`} data-entry-kind="prompt">
          <p class="who">${t('talk.user')} <${Time} at=${time} /></p>
          <${Said} text=${asked || text} />
        </div>
        ${text.trim() !== (asked || text).trim() && html`<${Folded} kind=${kind} named="told" text=${text} time=${time} faded=${faded} />`}`;
    }
    const who = has(`talk.${kind}`) ? t(`talk.${kind}`) : kind;
    return html`<div class=${`entry ${kind}${faded}`} data-entry-kind=${kind}>
      <p class="who">${who} <${Time} at=${time} /></p>
      ${of.map((entry) => html`<${Said} key=${entry.seq} text=${entry.text} />`)}
    </div>`;
  }
}

/** A text of which at first but the beginning is drawn: `[what is drawn, the button for the rest]`. */
function useBeginning(text) {
  const [all, setAll] = useState(false);
  if (all || text.length <= ENTRY) return [text, null];
  const more = html`<${Button} kind="small" press=${() => setAll(true)}>${t('text.more', { left: text.length - ENTRY })}<//>`;
  return [beginning(text, ENTRY), more];
}

function Said({ text }) {
  const [shown, more] = useBeginning(text);
  return html`<div class="said" dir="auto">${visible(shown)}</div>${more}`;
}

function Folded({ kind, text, time, faded, named = kind }) {
  const [shown, more] = useBeginning(text);
  return html`<details class=${`entry ${kind}${faded}`} data-entry-kind=${named}>
    <summary>${t(FOLDED[kind])} <${Time} at=${time} /></summary>
    <div class="said">${visible(shown)}</div>
    ${more}
  </details>`;
}

/** A tool that was called, or what came of it: its first line, and the rest folded. */
function Tool({ text, faded }) {
  const [shown, more] = useBeginning(text);
  const said = visible(shown);
  const end = said.indexOf('\n');
  const line = beginning(end < 0 ? said : said.slice(0, end), 200);
  const label = html`<span class="sr">${t('talk.tool')}: </span><code>${line}</code>`;
  if (end < 0 && line === said) return html`<p class=${`entry tool${faded}`} data-entry-kind="tool">${label}</p>`;
  return html`<details class=${`entry tool${faded}`} data-entry-kind="tool">
    <summary>${label}</summary>
    <pre class="text" tabindex="0">${said}</pre>
    ${more}
  </details>`;
}

/** What the host has to say: its beginning, and the rest folded. What was gone back to divides what was said. */
function note(text) {
  const { line, rest } = noteOf(text);
  const back = rewindOf(text);
  if (back) return html`<div class="entry turn back" data-entry-kind="note" data-rewind=${back.did}><span>${line}</span></div>`;
  if (!rest) return html`<p class="entry note" data-entry-kind="note"><bdi>${line}</bdi></p>`;
  return html`<details class="entry note" data-entry-kind="note">
    <summary><bdi>${line}</bdi></summary>
    <div class="said">${visible(rest)}</div>
  </details>`;
}

function turn(text, time, gone) {
  const [, number, what, reason, error] = TURN.exec(text) ?? [];
  const word = has(`reason.${reason}`) ? t(`reason.${reason}`) : (reason ?? '');
  const line = number
    ? what === 'began'
      ? t('talk.began', { turn: number })
      : t('talk.ended', { turn: number, reason: word })
    : visible(text);
  return html`<div class=${`entry turn${gone ? ' gone' : ''}`} data-entry-kind="turn">
    <span title=${moment(time)}>${line}${gone && what === 'began' && html` <${Chip} title=${t('turns.gone.hint')}>${t('turns.gone')}<//>`}</span>
    ${error && html`<div class="said">${visible(error)}</div>`}
  </div>`;
}

function Input({ task, missing }) {
  const [text, setText] = useDraft(`tell.${task.id}`, '');
  const stop = useAction(() => answered(call('cancelTask', { taskId: task.id })));
  const send = useAction(async () => {
    await answered(call('followUp', { taskId: task.id, text }, { own: true }));
    setText(clearIf(text));
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
      ? t(missing ? 'talk.cannot.missing' : 'talk.cannot')
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
