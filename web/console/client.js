// How the page asks the daemon: the token and the ladder by which it is found again (spec §9), and the transport's codes.
//
// The ladder: the row `__DSH_IPP__` of this page, `/isolation-pod/bootstrap`, this page fetched anew, one guarded reload.

const API = '/isolation-pod/api';
const OWN = '/api/v1';
const BOOTSTRAP = '/isolation-pod/bootstrap';
const HEADER = 'x-ipp-token';
const ROW = /__DSH_IPP__\s*=\s*(\{[^<]*?\})\s*;/;
/** Where the time of the last reload is kept, so that a page never reloads again and again. */
const RELOADED = 'cofferdam.reloaded';
const RELOAD_GUARD = 5000;
/** A daemon that says nothing for this long is not there. */
const PATIENCE = 60000;
/** The same where there may be much to do: whatever copies, compares or removes trees and lists of any size. */
export const LONG = 600000;

/** The codes of this side; they never cross the wire. */
export const TRANSPORT = ['TOKEN_MISSING', 'TOKEN_STALE', 'NETWORK', 'INVALID_RESPONSE', 'ABORTED'];

/** Why something was not done: a code, and a text for people. */
export class Failure extends Error {
  constructor(code, message, data = {}) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

let token = '';
let finding = null;

/** Asks a method of the contract, or one of ours (`own`), which the contract's path does not know. */
export function call(method, args = {}, options = {}) {
  return options.own
    ? ask(`${OWN}/pod/${method}`, { ...options, body: args })
    : ask(API, { ...options, body: { method, args } });
}

/** Asks the control API. */
export const get = (path, options = {}) => ask(OWN + path, { ...options, method: 'GET' });
export const post = (path, body = {}, options = {}) => ask(OWN + path, { ...options, body });

/** What the daemon says of itself to anybody. */
export const status = (options = {}) => answer('/isolation-pod/status', { ...options, method: 'GET' }, '');

async function ask(path, options) {
  const shown = token || (await find(false));
  try {
    return await answer(path, options, shown);
  } catch (failure) {
    if (!isRefused(failure)) throw failure;
  }
  // The daemon was started again, or the token is another's: it is looked for once more, and asked with once.
  if (token === shown) token = '';
  const fresh = token || (await find(true));
  try {
    return await answer(path, options, fresh);
  } catch (failure) {
    if (!isRefused(failure)) throw failure;
    token = '';
    throw new Failure('TOKEN_STALE', failure.message, { code: failure.code });
  }
}

/** Whether the token was refused. The control API says so with 401 alone: its `Forbidden` is about what was asked for, and
 * no other token changes it. */
const isRefused = ({ code, data }) => data?.status === 401 || (data?.status === 403 && code === 'FORBIDDEN');

/** One request and its answer, which may be nothing where that is `nullable`; whatever goes wrong has a code. */
async function answer(path, { method = 'POST', body, signal, patience = PATIENCE, nullable = false }, shown) {
  const limit = AbortSignal.timeout(patience);
  const headers = { accept: 'application/json' };
  if (shown) headers[HEADER] = shown;
  if (method === 'POST') headers['content-type'] = 'application/json';
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: method === 'POST' ? JSON.stringify(body ?? {}) : undefined,
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
    });
    text = await response.text();
  } catch {
    if (signal?.aborted) throw new Failure('ABORTED', '');
    if (limit.aborted) throw new Failure('NETWORK', '', { late: true });
    // What browsers say of it says nothing more, each in its own words.
    throw new Failure('NETWORK', '');
  }
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    document = null;
  }
  if (nullable && response.ok && text.trim() === 'null') return null;
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    const { status: of } = response;
    if (of === 401 || of === 403) throw new Failure('FORBIDDEN', '', { status: of });
    throw new Failure('INVALID_RESPONSE', `HTTP ${response.status}`);
  }
  if (response.ok && document.ok !== false) return document;
  const data = { ...document.data, status: response.status };
  throw new Failure(document.code ?? 'INVALID_RESPONSE', document.message ?? `HTTP ${response.status}`, data);
}

/** Climbs the ladder; one climb at a time, whoever asks. */
function find(again) {
  finding ??= climb(again).finally(() => {
    finding = null;
  });
  return finding;
}

async function climb(again) {
  if (!again) {
    const row = globalThis.__DSH_IPP__?.token;
    if (isToken(row)) return remember(row);
  }
  let unreachable = null;
  let signedOut = false;
  for (const rung of [fromBootstrap, fromPage]) {
    try {
      const found = await rung();
      if (isToken(found)) return remember(found);
    } catch (failure) {
      if (failure.code === 'NETWORK') unreachable = failure;
      signedOut = rung === fromPage && failure.code === 'UNAUTHORIZED';
    }
  }
  // A daemon that is not there gives no page either: reloading would lose this one.
  if (unreachable) throw unreachable;
  // Nor is there one for whoever is signed out: what is typed here would be lost for a page that says no more than this.
  if (!signedOut && mayReload()) {
    location.reload();
    return new Promise(() => {});
  }
  throw new Failure('TOKEN_MISSING', '');
}

async function fromBootstrap() {
  return (await answer(BOOTSTRAP, { method: 'GET', patience: 10000 }, '')).token;
}

async function fromPage() {
  let response;
  try {
    const signal = AbortSignal.timeout(10000);
    response = await fetch(location.pathname, { cache: 'no-store', credentials: 'same-origin', signal });
  } catch {
    throw new Failure('NETWORK', '');
  }
  if (response.status === 401) throw new Failure('UNAUTHORIZED', '');
  const row = ROW.exec(await response.text());
  return row ? JSON.parse(row[1]).token : null;
}

const isToken = (text) => typeof text === 'string' && text !== '';

function remember(found) {
  token = found;
  return found;
}

function mayReload() {
  try {
    const last = Number(sessionStorage.getItem(RELOADED) ?? 0);
    const now = Date.now();
    if (now - last < RELOAD_GUARD && now >= last) return false;
    sessionStorage.setItem(RELOADED, String(now));
    return true;
  } catch {
    // Without a guard there is no reload.
    return false;
  }
}
