// What the page knows, in one place: the host's state, tasks by id, transcripts of open tasks. Parts of it are never changed
// but replaced, so that whoever shows one sees by identity whether there is something to do.

import { useEffect, useReducer, useRef } from './vendor/preact.js';

export const state = {
  /** How news come: `connecting`, `live`, `polling`, `lost`. */
  link: 'connecting',
  /** The last answer of getState but for its tasks; `null` before the first. */
  host: null,
  /** Task rows, newest first. */
  tasks: [],
  /** Why the last getState failed; `null` if it did not. */
  failure: null,
  /** Main sessions with a client, as the status names them: `[{id, cwd}]`. */
  mains: [],
  /** The main session this page belongs to; empty: none. */
  main: '',
  /** By id of a task that is looked at: `{entries, next, truncated, live, failure}`; `entries` once there was an answer. */
  transcripts: {},
  /** By task id, while an export runs: `{exportId, done, total}`. */
  progress: {},
  /** `[{id, kind, text}]` */
  toasts: [],
  /** Which day it is: moments of today are written without. */
  day: new Date().toDateString(),
};

const listeners = new Set();
let told = true;

/** Changes some of it; whoever shows it is told once, soon. */
export function change(patch) {
  Object.assign(state, patch);
  if (!told) return;
  told = false;
  queueMicrotask(() => {
    told = true;
    for (const listener of [...listeners]) listener();
  });
}

/** A part of the state, for a component that is drawn again whenever that part is another. */
export function useShared(select) {
  const [, draw] = useReducer((count) => count + 1, 0);
  const shown = useRef();
  const chosen = useRef();
  chosen.current = select;
  shown.current = select(state);
  useEffect(() => {
    const listener = () => {
      if (!Object.is(chosen.current(state), shown.current)) draw();
    };
    listeners.add(listener);
    // What changed between drawing and listening.
    listener();
    return () => listeners.delete(listener);
  }, []);
  return shown.current;
}

/** The row of a task; undefined if there is none. */
export const taskOf = (id) => state.tasks.find((task) => task.id === id);

const ACTIVE = new Set(['starting', 'running']);
/** Whether a turn runs, or is about to. */
export const isActive = (task) => ACTIVE.has(task.status);
/** Whether it has not ended: it runs, or waits for its turn. */
export const isOpen = (task) => isActive(task) || task.status === 'queued';

/** When something was heard of a task last, in news so far: an answer may be older than news that overtook it. */
const heard = new Map();
let news = 0;
const hear = (id) => heard.set(id, (news += 1));
const isOlder = (id, since) => (heard.get(id) ?? 0) > since;
/** How much was heard so far; whoever asks for the state says so with the answer. */
export const heardSoFar = () => news;

/** Takes news of a task. */
export function putTask(task) {
  hear(task.id);
  place(task);
}

/** Takes the row in an answer, unless there were news of that task while it was awaited. Resolves to the answer. */
export async function answered(asking) {
  const since = news;
  const answer = await asking;
  if (!isOlder(answer.task.id, since)) place(answer.task);
  return answer;
}

function place(task) {
  const at = state.tasks.findIndex((one) => one.id === task.id);
  if (at < 0) change({ tasks: [task, ...state.tasks] });
  else change({ tasks: state.tasks.with(at, task) });
}

/** Forgets a task. */
export function dropTask(id) {
  hear(id);
  const { [id]: _, ...transcripts } = state.transcripts;
  change({ tasks: state.tasks.filter((task) => task.id !== id), transcripts });
}

/** Takes an answer of getState, which was asked for when that much was heard. Rows that are equal stay the same objects, so
 * that nothing is drawn twice. */
export function putState({ tasks, ...host }, since) {
  const known = new Map(state.tasks.map((task) => [task.id, task]));
  const listed = new Set(tasks.map((task) => task.id));
  const begun = state.tasks.filter((task) => !listed.has(task.id) && isOlder(task.id, since));
  const rows = tasks
    .filter((task) => known.has(task.id) || !isOlder(task.id, since))
    .map((task) => {
      const old = known.get(task.id);
      const stays = old && (isOlder(task.id, since) || JSON.stringify(old) === JSON.stringify(task));
      return stays ? old : task;
    });
  const all = [...begun, ...rows];
  const same = all.length === state.tasks.length && all.every((row, at) => row === state.tasks[at]);
  change({ host, tasks: same ? state.tasks : all, failure: null });
}

let toasts = 0;
const TOAST = 4500;

/** Says something for a moment: `kind` is `good` or `bad`. */
export function toast(text, kind = 'good') {
  const one = { id: (toasts += 1), kind, text };
  change({ toasts: [...state.toasts, one].slice(-3) });
  setTimeout(() => change({ toasts: state.toasts.filter((other) => other !== one) }), TOAST);
}
