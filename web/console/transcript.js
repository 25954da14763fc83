// Transcripts of the tasks that are open on this page: fetched once, then grown by events.

import { call } from './client.js';
import { change, state } from './state.js';

/** How many entries of a task are kept; the daemon keeps fewer. */
const MOST = 2000;

/** Tasks that somebody looks at. */
const watched = new Set();
const asking = new Map();

/** Keeps a task's transcript up to date until the returned function is called. */
export function watch(taskId) {
  watched.add(taskId);
  fetchFrom(taskId, 0);
  return () => watched.delete(taskId);
}

/** Something was said or done. */
export function entryCame(taskId, entry) {
  if (!watched.has(taskId)) return;
  const known = state.transcripts[taskId];
  if (!known || asking.has(taskId) || entry.seq > known.next) fetchFrom(taskId, known?.next ?? 0);
  else if (entry.seq === known.next) {
    const entries = [...known.entries, entry].slice(-MOST);
    const truncated = known.truncated || entries.length === MOST;
    put(taskId, { entries, next: entry.seq + 1, truncated, failure: null });
  }
}

/** Fetches all that somebody looks at anew. */
export function reloadTranscripts() {
  for (const taskId of watched) fetchFrom(taskId, 0);
}

/** Fetches one anew. */
export const reloadTranscript = (taskId) => fetchFrom(taskId, 0);

/** Fetches entries; a wish that comes while an answer is awaited is granted after it. */
async function fetchFrom(taskId, from) {
  if (asking.has(taskId)) {
    asking.set(taskId, true);
    return;
  }
  asking.set(taskId, false);
  try {
    const known = state.transcripts[taskId];
    const { entries, next, truncated } = await call('getTranscript', { taskId, from }, { own: true });
    const whole = from > 0 && known ? joined(known.entries, entries) : entries;
    if (!known || known.failure || !isSame(known.entries, whole)) {
      put(taskId, { entries: whole, next, truncated: truncated || (from > 0 && known?.truncated), failure: null });
    }
  } catch (failure) {
    put(taskId, { ...(state.transcripts[taskId] ?? { entries: [], next: 1, truncated: false }), failure });
  }
  const again = asking.get(taskId);
  asking.delete(taskId);
  if (again && watched.has(taskId)) fetchFrom(taskId, 0);
}

function joined(old, fresh) {
  const from = fresh[0]?.seq ?? Infinity;
  return [...old.filter((entry) => entry.seq < from), ...fresh];
}

const isSame = (one, other) =>
  one.length === other.length &&
  one[0]?.time === other[0]?.time &&
  one.at(-1)?.seq === other.at(-1)?.seq &&
  one.at(-1)?.time === other.at(-1)?.time;

function put(taskId, transcript) {
  change({ transcripts: { ...state.transcripts, [taskId]: transcript } });
}
