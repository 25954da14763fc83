// Transcripts of the tasks that are open on this page: fetched once, then grown by events.

import { call } from './client.js';
import { change, state, taskOf } from './state.js';

/** How many entries of a task are kept; the daemon keeps fewer. */
const MOST = 2000;

/** Tasks that somebody looks at. */
const watched = new Set();
const asking = new Map();

/** Keeps a task's transcript up to date until the returned function is called, which forgets it. */
export function watch(taskId) {
  watched.add(taskId);
  fetchFrom(taskId, 0);
  return () => {
    watched.delete(taskId);
    const { [taskId]: _, ...transcripts } = state.transcripts;
    change({ transcripts });
  };
}

/** Something was said or done. */
export function entryCame(taskId, entry) {
  if (!watched.has(taskId)) return;
  const known = state.transcripts[taskId];
  if (!known?.entries || asking.has(taskId)) fetchFrom(taskId, 0);
  else if (entry.seq > known.next) fetchFrom(taskId, known.next);
  else if (entry.seq === known.next) {
    const entries = [...known.entries, entry].slice(-MOST);
    const truncated = known.truncated || entries.length === MOST;
    put(taskId, { ...known, entries, next: entry.seq + 1, truncated, failure: null });
  } else if (!known.entries.some((one) => isSame(one, entry))) {
    // Whoever holds the task now has begun to count anew: what is shown was counted by another.
    fetchFrom(taskId, 0);
  }
}

/** Fetches all that somebody looks at anew. */
export function reloadTranscripts() {
  for (const taskId of watched) fetchFrom(taskId, 0);
}

/** Fetches what has come since; all, where another may hold the task by now. */
export function continueTranscripts() {
  for (const taskId of watched) {
    const known = state.transcripts[taskId];
    fetchFrom(taskId, known?.entries && known.live === taskOf(taskId)?.live ? known.next : 0);
  }
}

/** Fetches one anew, if somebody looks at it. */
export async function reloadTranscript(taskId) {
  if (watched.has(taskId)) await fetchFrom(taskId, 0);
}

/** Fetches entries; a wish that comes while an answer is awaited is granted after it. */
async function fetchFrom(taskId, from) {
  if (asking.has(taskId)) {
    asking.set(taskId, true);
    return;
  }
  asking.set(taskId, false);
  try {
    const { live } = taskOf(taskId) ?? {};
    const { entries, next, truncated } = await call('getTranscript', { taskId, from }, { own: true });
    const known = state.transcripts[taskId];
    if (next < from) {
      // Counted anew, as above.
      asking.set(taskId, true);
    } else {
      // Where some in between are no longer kept, what is kept is all there is.
      const joins = from > 0 && known?.entries && !truncated;
      const whole = joins ? joined(known.entries, entries) : entries;
      const cut = truncated || Boolean(joins && known.truncated);
      put(taskId, { entries: unchanged(known?.entries ?? [], whole), next, truncated: cut, live, failure: null });
    }
  } catch (failure) {
    const known = state.transcripts[taskId] ?? { next: 1, truncated: false };
    // Of a task that nobody holds, and of which nothing is stored, that is the answer.
    const entries = known.entries ?? (failure.code === 'TASK_NOT_FOUND' ? [] : undefined);
    put(taskId, { ...known, entries, failure });
  }
  const again = asking.get(taskId);
  asking.delete(taskId);
  if (again && watched.has(taskId)) fetchFrom(taskId, 0);
}

function joined(old, fresh) {
  const from = fresh[0]?.seq ?? Infinity;
  return [...old.filter((entry) => entry.seq < from), ...fresh].slice(-MOST);
}

/** The new list with the old entries where they are the same, and the old list if all are: nothing is drawn twice. */
function unchanged(old, fresh) {
  const bySeq = new Map(old.map((entry) => [entry.seq, entry]));
  const list = fresh.map((entry) => (isSame(bySeq.get(entry.seq), entry) ? bySeq.get(entry.seq) : entry));
  return list.length === old.length && list.every((entry, at) => entry === old[at]) ? old : list;
}

const isSame = (one, other) =>
  one !== undefined &&
  one.seq === other.seq &&
  one.time === other.time &&
  one.kind === other.kind &&
  one.text === other.text;

function put(taskId, transcript) {
  if (!watched.has(taskId)) return;
  const known = state.transcripts[taskId];
  const same = known && Object.keys({ ...known, ...transcript }).every((key) => known[key] === transcript[key]);
  if (!same) change({ transcripts: { ...state.transcripts, [taskId]: transcript } });
}
