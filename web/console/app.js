// The frame around the pages: sections, connection, main conversation, language and theme, what is wrong, and the page.

import { Failure, status } from './client.js';
import { LANGUAGES, chooseLanguage, language, t } from './i18n/index.js';
import { chooseMain, refresh } from './live.js';
import { TasksPage } from './pages/tasks.js';
import { chooseTheme, onSystemTheme, theme } from './prefs.js';
import { link, place } from './router.js';
import { useShared } from './state.js';
import { beginning, leaf, oneLine } from './text.js';
import { useReached } from './ui/hooks.js';
import { Empty, Loading, Notice, Path, Problem } from './ui/parts.js';
import { SectionIcon } from './ui/icons.js';
import { Component, html, useEffect, useRef, useState } from './vendor/preact.js';

const SECTIONS = ['tasks', 'new', 'checkpoints', 'sessions', 'exports', 'settings', 'diagnostics'];

export function App() {
  const [at, setAt] = useState(place);
  const [spoken, setSpoken] = useState(language());
  const main = useRef();
  const visited = useRef(at.join('/'));
  const page = useRef(pageOf(at));

  useEffect(() => {
    const moved = () => setAt(place());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  useEffect(() => {
    document.title = `${t(`nav.${sectionOf(at)}`)} · Cofferdam`;
    if (visited.current === at.join('/')) return;
    visited.current = at.join('/');
    // Whoever cannot see the page is told where they are now; what was asked to have the focus keeps it.
    if (!main.current.contains(document.activeElement)) main.current.focus({ preventScroll: true });
    // Whoever looks at another part of a task stays where the parts are.
    if (page.current !== pageOf(at)) scrollTo(0, 0);
    page.current = pageOf(at);
  }, [at, spoken]);
  // All is drawn anew in the other language, and stays what it is: what runs goes on.
  const speak = (chosen) => {
    chooseLanguage(chosen);
    setSpoken(chosen);
  };
  const skip = (event) => {
    event.preventDefault();
    main.current.focus();
  };
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${skip}>${t('app.skip')}</a>
    <header class="top">
      <a class="brand" href=${link('tasks')}><${Mark} /><span>Cofferdam</span></a>
      <div class="tools">
        <${Connection} />
        <${MainSession} />
        <${Language} spoken=${spoken} speak=${speak} />
        <${Theme} />
      </div>
    </header>
    <nav class="sections" aria-label=${t('app.sections')}>
      ${SECTIONS.map(
        (section) =>
          html`<a
            key=${section}
            href=${link(section)}
            data-nav=${section}
            aria-current=${section === sectionOf(at) ? 'page' : null}
            ><${SectionIcon} of=${section} /><span>${t(`nav.${section}`)}</span></a
          >`,
      )}
    </nav>
    <main id="main" tabindex="-1" ref=${main} data-page=${at[0] === 'tasks' && at[1] ? 'task' : sectionOf(at)}>
      <${Banners} section=${sectionOf(at)} />
      <${Boundary} at=${at}><${Page} at=${at} /><//>
    </main>
    <${Toasts} />
  </div>`;
}

const sectionOf = ([first]) => (SECTIONS.includes(first) ? first : 'tasks');
const pageOf = ([first, second]) => `${first}/${first === 'tasks' ? second : ''}`;

function Page({ at: [section = 'tasks', ...rest] }) {
  if (section === 'tasks') {
    return rest.length ? html`<${Later} key=${rest[0]} page="task" id=${rest[0]} part=${rest[1]} />` : html`<${TasksPage} />`;
  }
  if (SECTIONS.includes(section)) return html`<${Later} key=${section} page=${section} at=${rest} />`;
  return html`<${Empty} title=${t('app.notFound')}>
    <p>${t('app.notFound.hint')}</p>
    <p><a class="button primary" href=${link('tasks')}>${t('app.toTasks')}</a></p>
  <//>`;
}

/** Pages that are fetched when somebody goes there: the board is to be there at once. */
const PAGES = {
  task: (mark) => import(`./pages/task.js${mark}`),
  new: (mark) => import(`./pages/new_task.js${mark}`),
  checkpoints: (mark) => import(`./pages/checkpoints.js${mark}`),
  sessions: (mark) => import(`./pages/sessions.js${mark}`),
  exports: (mark) => import(`./pages/exports.js${mark}`),
  settings: (mark) => import(`./pages/settings.js${mark}`),
  diagnostics: (mark) => import(`./pages/diagnostics.js${mark}`),
};
const fetched = new Map();
/** How often one did not come: browsers do not ask again for an address of which they got nothing. */
let missed = 0;

async function fetchPage(page) {
  for (const last of [false, true]) {
    try {
      fetched.set(page, (await PAGES[page](missed ? `?${missed}` : '')).default);
      return;
    } catch (error) {
      missed += 1;
      // Either the daemon is away, which this says, or it was, or it is of another release by now, which has other files.
      await status();
      if (last) throw new Failure('NOT_FOUND', String(error.message));
    }
  }
}

function Later({ page, ...rest }) {
  const [failure, setFailure] = useState(null);
  const load = () => fetchPage(page).then(() => setFailure(null), setFailure);
  const [, setThere] = useState(false);
  useEffect(() => {
    if (!fetched.has(page)) load().then(() => setThere(true));
  }, [page]);
  useReached(failure, load);
  if (failure) return html`<${Trouble} failure=${failure} again=${load} />`;
  return fetched.has(page) ? html`<${fetched.get(page)} ...${rest} />` : html`<${Loading} />`;
}

/** What is wrong with a page does not take the others with it. */
class Boundary extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  componentDidUpdate({ at }) {
    if (at !== this.props.at && this.state.error) this.setState({ error: null });
  }

  render({ children }, { error }) {
    return error ? html`<${Trouble} failure=${new Failure('INTERNAL', String(error?.message ?? error))} />` : children;
  }
}

const Mark = () =>
  html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
    <path d="M4 4v11a8 5 0 0 0 16 0V4" fill="none" stroke="currentColor" stroke-width="2.4" />
    <path d="M1.5 10q1.2-1.6 2.5 0M20 10q1.2-1.6 2.5 0M9 13h6M9 9h6" fill="none" stroke="currentColor" stroke-width="2" />
  </svg>`;

function Connection() {
  const link = useShared((state) => state.link);
  return html`<span class=${`connection ${link}`} role="status" aria-label=${t('link.label')} data-link=${link}>
    <span class="dot" aria-hidden="true"></span>${t(`link.${link}`)}
  </span>`;
}

function Choice({ label, choices, value, change, ...rest }) {
  return html`<label class="choice" ...${rest}>
    <span class="sr">${label}</span>
    <select value=${value} onChange=${(event) => change(event.currentTarget.value)}>
      ${choices.map(
        ([of, name]) => html`<option key=${of} value=${of} selected=${of === value}>${name}</option>`,
      )}
    </select>
  </label>`;
}

/** The other language, in its own name. */
function Language({ spoken, speak }) {
  const other = Object.keys(LANGUAGES).find((of) => of !== spoken);
  return html`<button
    type="button"
    class="icon"
    data-action="language"
    lang=${other}
    onClick=${() => speak(other)}
  >
    ${LANGUAGES[other]}
  </button>`;
}

/** Light or dark; until somebody chooses, as the system. */
function Theme() {
  const [shown, setShown] = useState(theme());
  useEffect(() => onSystemTheme(() => setShown(theme())), []);
  const other = shown === 'dark' ? 'light' : 'dark';
  const change = () => {
    chooseTheme(other);
    setShown(other);
  };
  const label = t(`theme.${other}`);
  return html`<button type="button" class="icon" data-action="theme" aria-label=${label} title=${label} onClick=${change}>
    <svg viewBox="0 0 24 24" aria-hidden="true">
      ${other === 'dark'
        ? html`<path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z" />`
        : html`<circle cx="12" cy="12" r="4.5" /><path d="M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2" />`}
    </svg>
  </button>`;
}

/** Nobody needs one; whoever wonders is told what it would be for. */
const NoMain = () =>
  html`<span class="session none" data-testid="main-session">
    <button type="button" class="icon" popovertarget="no-main"><span>${t('main.none')} ?</span></button>
    <div id="no-main" class="explained" popover><p>${t('main.none.hint')}</p><code>cofferdam main attach NAME</code></div>
  </span>`;

function MainSession() {
  const mains = useShared((state) => state.mains);
  const main = useShared((state) => state.main);
  const host = useShared((state) => state.host);
  if (!host) return null;
  if (!mains.length) return html`<${NoMain} />`;
  if (mains.length === 1 && main) {
    const name = `${t('main.label')}: ${oneLine(main)}`;
    return html`<span class="session" data-testid="main-session" title=${name} aria-label=${name}><${Path} of=${beginning(main, 16)} /></span>`;
  }
  const nameOf = ({ id, cwd }) => oneLine(`${beginning(id, 16)} · ${leaf(cwd ?? '')}`);
  const choices = [['', t('main.choose')], ...mains.map((session) => [session.id, nameOf(session)])];
  return html`<${Choice} data-testid="main-session" label=${t('main.label')} choices=${choices} value=${main} change=${chooseMain} />`;
}

/** Where it matters in which directory tasks work. */
const ABOUT_TASKS = ['tasks', 'new', 'settings'];

function Banners({ section }) {
  const failure = useShared((state) => state.failure);
  const core = useShared((state) => state.host?.core);
  const sandbox = useShared((state) => state.host?.sandbox);
  return html`<div class="banners">
    ${failure && html`<${Trouble} failure=${failure} />`}
    ${core &&
    core.status !== 'ready' &&
    html`<${Notice} tone="bad" role="alert"><p>${t(`core.${core.status}`)} ${oneLine(core.message)}</p><//>`}
    ${sandbox && ABOUT_TASKS.includes(section) && html`<${Root} of=${sandbox} section=${section} />`}
  </div>`;
}

/** Why there are no news, or no page. Without a daemon there is none to reload either: this one, and what is typed in it, would
 * be lost. */
const Trouble = ({ failure, again = refresh }) =>
  failure.code === 'NETWORK'
    ? html`<${Problem} failure=${failure} retry=${again} />`
    : html`<${Problem} failure=${failure} retry=${() => location.reload()} action=${t('app.reload')} />`;

/** How the sandbox root stands. */
function Root({ of, section }) {
  const isHere = section === 'settings';
  if (!of.set) {
    return html`<${Notice} tone="warn" data-testid="root" data-root="none">
      <p>${t('banner.noRoot')}</p>
      ${!isHere && html`<a class="button" href=${link('settings')}>${t('banner.noRoot.go')}</a>`}
    <//>`;
  }
  const [state, tone] = of.insideMainCwd
    ? ['inside', 'warn']
    : of.inTemp
      ? // Whoever chose it knows by now.
        ['temp', isHere ? 'warn' : 'quiet']
      : of.exists
        ? ['root', 'quiet']
        : ['willBeMade', 'quiet'];
  return html`<${Notice} tone=${tone} data-testid="root" data-root=${state}>
    <p>${t(`banner.${state}`)} <${Path} of=${of.root} /></p>
    ${tone === 'warn' && !isHere && html`<a class="button" href=${link('settings')}>${t('banner.change')}</a>`}
  <//>`;
}

/** What was done, for a while. A dialog lies above all but what was shown after it: so this is shown anew. */
function Toasts() {
  const toasts = useShared((state) => state.toasts);
  const box = useRef();
  useEffect(() => {
    const raise = () => {
      const isShown = box.current.matches(':popover-open');
      if (isShown && !document.querySelector('dialog[open]')) return;
      if (isShown) box.current.hidePopover();
      box.current.showPopover();
    };
    raise();
    addEventListener('raise', raise);
    return () => removeEventListener('raise', raise);
  }, [toasts]);
  return html`<div class="toasts" role="status" aria-live="polite" popover="manual" ref=${box}>
    ${toasts.map(({ id, kind, text }) => html`<p key=${id} class=${`toast ${kind}`} data-toast=${kind}>${text}</p>`)}
  </div>`;
}
