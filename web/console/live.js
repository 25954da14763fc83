// News: server-sent events where they come, else a question every 2.5 seconds, one at a time.

import { call, status } from './client.js';
import { t } from './i18n/index.js';
import { keep, kept } from './prefs.js';
import { place } from './router.js';
import { change, dropTask, heardSoFar, isOpen, putState, putTask, state, taskOf, toast } from './state.js';
import { titleOf } from './text.js';
import { continueTranscripts, entryCame, reloadTranscript, reloadTranscripts } from './transcript.js';

const EVENTS = '/api/v1/events';
const POLL = 2500;
/** How long a page that nobody sees keeps its stream: browsers open only six connections to a server, for all its pages. */
const UNSEEN = 5000;
/** How often it is looked which main sessions there are: no event says so. */
const MAINS = 10000;
/** How long after a stream was refused it is asked for again. */
const AGAIN = 5000;

let source = null;
let asking = null;
let wanted = false;
let poll = 0;
let unseen = 0;

/** Begins. */
export function listen() {
  // One that is opened behind another may not be looked at for long.
  if (!document.hidden) open();
  setInterval(lookForMains, MAINS);
  document.addEventListener('visibilitychange', () => {
    clearTimeout(unseen);
    if (document.hidden) unseen = setTimeout(rest, UNSEEN);
    else if (!source) open();
  });
}

/** Hears nothing until somebody looks at the page again. */
function rest() {
  close();
  change({ link: 'connecting' });
}

/** Another main session is another state, since the sandbox root is judged by where that one works. */
async function lookForMains() {
  change({ day: new Date().toDateString() });
  if (document.hidden || asking || state.link !== 'live') return;
  const before = state.main;
  try {
    await findMain();
  } catch {
    // The stream says it, too, when the daemon is gone.
    return;
  }
  if (state.main !== before) refresh();
}

/** Asks for the state anew. While an answer is awaited, further wishes become one. */
export function refresh() {
  if (asking) {
    wanted = true;
    return asking;
  }
  asking = ask().finally(() => {
    asking = null;
    if (wanted) {
      wanted = false;
      refresh();
    }
  });
  return asking;
}

async function ask() {
  try {
    await findMain();
    const since = heardSoFar();
    putState(await call('getState', { mainSessionId: state.main }), since);
    if (state.link === 'lost' || state.link === 'connecting') change({ link: 'polling' });
  } catch (failure) {
    change({ failure, link: failure.code === 'NETWORK' && state.link !== 'live' ? 'lost' : state.link });
    // As long as the stream is there nobody else asks again.
    if (state.link === 'live' && failure.code !== 'TOKEN_MISSING') setTimeout(refresh, AGAIN);
  }
}

/** The main session that a person chose for this page; empty: none. */
let chosen = '';

/** Has the page belong to this main session; to none if empty. */
export function chooseMain(id) {
  chosen = id;
  keep('main', id);
  change({ main: id });
  refresh();
}

/** Which main session this page belongs to: the chosen one, and no other instead of it; else the one it had, else the only one. */
async function findMain() {
  const { sandbox } = await status();
  const mains = sandbox.liveSessions.filter((session) => session.origin === 'main');
  const has = (id) => mains.some((session) => session.id === id);
  if (!chosen && !has(state.main) && has(kept('main'))) chosen = kept('main');
  const other = has(state.main) ? state.main : mains.length === 1 ? mains[0].id : '';
  const main = chosen ? (has(chosen) ? chosen : '') : other;
  const same = JSON.stringify(mains) === JSON.stringify(state.mains);
  change({ mains: same ? state.mains : mains, main });
}

function open() {
  close();
  const mine = new EventSource(EVENTS);
  source = mine;
  mine.onopen = () => {
    stopPolling();
    change({ link: 'live' });
    // What happened before is not told again.
    refresh();
    reloadTranscripts();
  };
  mine.onerror = () => {
    if (source !== mine) return;
    if (state.link === 'live') change({ link: 'polling' });
    startPolling();
    if (mine.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(() => {
        if (!source && !document.hidden) open();
      }, AGAIN);
    }
  };
  for (const [kind, take] of Object.entries(NEWS)) {
    mine.addEventListener(kind, (event) => take(JSON.parse(event.data)));
  }
}

function close() {
  source?.close();
  source = null;
  stopPolling();
}

const NEWS = {
  'task.changed': ({ task }) => {
    const before = taskOf(task.id);
    putTask(task);
    // Who holds the task now may number what is said anew.
    if (before?.live !== task.live) reloadTranscript(task.id);
    if (before && isOpen(before) && !isOpen(task)) sayEnded(task);
    // The first task makes the sandbox root.
    if (before?.status !== task.status && state.host?.sandbox.exists === false) refresh();
  },
  'task.removed': ({ taskId }) => dropTask(taskId),
  'task.entry': ({ taskId, entry }) => entryCame(taskId, entry),
  'state.changed': refresh,
  'export.progress': ({ taskId, exportId, done, total }) =>
    change({ progress: { ...state.progress, [taskId]: { exportId, done, total } } }),
  'core.changed': ({ core }) => {
    if (state.host) change({ host: { ...state.host, core } });
    refresh();
    reloadTranscripts();
  },
  'events.lost': () => {
    refresh();
    reloadTranscripts();
  },
};

/** People who look elsewhere are told that a task has ended. */
function sayEnded(task) {
  const { id, status } = task;
  if (place().includes(id)) return;
  toast(t('tasks.ended', { label: titleOf(task, 60), status: t(`status.${status}`) }), status === 'failed' ? 'bad' : 'good');
}

function startPolling() {
  if (poll) return;
  poll = setInterval(() => {
    // One request at a time: a slow answer is waited for. Who is signed out has to do something first.
    if (asking || document.hidden || state.failure?.code === 'TOKEN_MISSING') return;
    refresh().then(continueTranscripts);
  }, POLL);
}

function stopPolling() {
  clearInterval(poll);
  poll = 0;
}
