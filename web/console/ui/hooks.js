// What pages do again and again: carry something out, fetch something, and keep what is typed while people look elsewhere.

import { useShared } from '../state.js';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';

/** How long after the daemon was not reached, though news come from it, something is asked for again. */
const AGAIN = 2500;

/** Carries something out once at a time: `{run, busy, failure, clear}`. `run` resolves to undefined if it failed. */
export function useAction(work) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(null);
  const running = useRef(false);
  const current = useRef(work);
  current.current = work;
  const run = useCallback(async (...args) => {
    if (running.current) return undefined;
    running.current = true;
    setBusy(true);
    setFailure(null);
    try {
      return await current.current(...args);
    } catch (error) {
      setFailure(error);
      return undefined;
    } finally {
      running.current = false;
      setBusy(false);
    }
  }, []);
  return { run, busy, failure, clear: () => setFailure(null) };
}

/** Fetches something, again whenever `on` changes, and when a daemon that was not reached is there again: `{data, failure,
 * loading, reload}`. What `on` begins with says what it is: as long as that stays, the old answer is shown until there is a
 * new one. An older answer never replaces a newer. */
export function useLoad(fetcher, on) {
  const [loaded, setLoaded] = useState({ data: null, failure: null, loading: true });
  const asked = useRef(null);
  const of = useRef(on[0]);
  const current = useRef(fetcher);
  current.current = fetcher;
  const reload = useCallback(async () => {
    asked.current?.abort();
    const abort = new AbortController();
    asked.current = abort;
    setLoaded((old) => ({ ...old, loading: true }));
    try {
      const data = await current.current(abort.signal);
      if (!abort.signal.aborted) setLoaded({ data, failure: null, loading: false });
    } catch (failure) {
      if (!abort.signal.aborted) setLoaded((old) => ({ ...old, failure, loading: false }));
    }
  }, []);
  useEffect(() => {
    if (of.current !== on[0]) setLoaded({ data: null, failure: null, loading: true });
    of.current = on[0];
    reload();
    return () => asked.current?.abort();
  }, on);
  useReached(loaded.failure, reload);
  return { ...loaded, reload };
}

/** Does something again that failed since the daemon was not reached, as soon as it is. */
export function useReached(failure, again) {
  const link = useShared((shared) => shared.link);
  const waits = failure?.code === 'NETWORK' && !failure.data?.late;
  const before = useRef(link);
  useEffect(() => {
    const came = before.current !== link;
    before.current = link;
    if (!waits || !['live', 'polling'].includes(link)) return undefined;
    const timer = setTimeout(again, came ? 0 : AGAIN);
    return () => clearTimeout(timer);
  }, [waits, link, failure]);
}

const drafts = new Map();
const shown = new Map();

/** A state that outlives its component: what somebody typed is there when they come back, until the page is left. It may be
 * set from what it is by then, and by a component that is no longer there. */
export function useDraft(name, first) {
  const begin = useRef(first);
  const [value, setValue] = useState(drafts.has(name) ? drafts.get(name) : first);
  useLayoutEffect(() => {
    shown.set(name, setValue);
    return () => shown.get(name) === setValue && shown.delete(name);
  }, [name]);
  const set = useCallback(
    (fresh) => {
      const now = drafts.has(name) ? drafts.get(name) : begin.current;
      const next = typeof fresh === 'function' ? fresh(now) : fresh;
      drafts.set(name, next);
      shown.get(name)?.(next);
    },
    [name],
  );
  return [value, set];
}

/** Forgets what was typed or chosen under this name: what it was about is not what it was. */
export const dropDraft = (name) => drafts.delete(name);

/** Does something again and again while somebody looks at this page, and when they come back to it. The longer it takes, the
 * seldomer: at most a twentieth of the time is spent on it. */
export function useEvery(milliseconds, work) {
  const current = useRef(work);
  current.current = work;
  useReturn(() => current.current());
  useEffect(() => {
    let timer = 0;
    const wait = (after) => {
      timer = setTimeout(look, after);
    };
    const look = async () => {
      const began = Date.now();
      if (!document.hidden) await current.current();
      if (timer) wait(Math.max(milliseconds, 20 * (Date.now() - began)));
    };
    wait(milliseconds);
    return () => {
      clearTimeout(timer);
      timer = 0;
    };
  }, [milliseconds]);
}

/** What sets a draft to nothing if it still is what was sent: what is typed while an answer is awaited stays. */
export const clearIf = (sent) => (now) => (now === sent ? '' : now);

/** Whether the component is still there: whoever has gone elsewhere meanwhile is not called back. */
export function useHere() {
  const here = useRef(true);
  useEffect(() => {
    here.current = true;
    return () => {
      here.current = false;
    };
  }, []);
  return () => here.current;
}

/** Does something when people come back to this page from elsewhere: what they did there may be seen here. */
export function useReturn(work) {
  const current = useRef(work);
  current.current = work;
  useEffect(() => {
    const back = () => current.current();
    addEventListener('focus', back);
    return () => removeEventListener('focus', back);
  }, []);
}

/** Names for elements that refer to each other; each component gets its own. */
let names = 0;
export function useName(prefix) {
  const name = useRef('');
  name.current ||= `${prefix}-${(names += 1)}`;
  return name.current;
}
