// Directories with checkpoints, and taking the first of another one. Below that: a directory's timeline, and comparisons.

import { LONG, get, post } from '../client.js';
import { learn, t } from '../i18n/index.js';
import words from '../i18n/words/checkpoints.js';
import { go, link } from '../router.js';
import { toast } from '../state.js';
import { bytes, oneLine } from '../text.js';
import { DirectoryInput } from '../ui/directory.js';
import { clearIf, useAction, useDraft, useEvery, useHere, useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Chip, Empty, Field, Heading, Loading, Notice, Path, Problem, Time } from '../ui/parts.js';
import { html } from '../vendor/preact.js';
import { DiffPage } from './diff.js';
import { TimelinePage } from './timeline.js';

learn(words);

const PAGE = 30;

export default function CheckpointsPage({ at: [workspace, what, from, to] }) {
  if (!workspace) return html`<${Workspaces} />`;
  if (what === 'diff' && from && to) {
    return html`<${DiffPage} key=${[workspace, from, to].join('/')} workspace=${workspace} from=${from} to=${to} />`;
  }
  return html`<${TimelinePage} key=${workspace} workspace=${workspace} />`;
}

/** A name for a checkpoint that nobody gave one: the moment, as the pages show it, and finer than people are quick. */
function nameOfNow() {
  const now = new Date();
  const digits = (number, count = 2) => String(number).padStart(count, '0');
  const day = [now.getFullYear(), digits(now.getMonth() + 1), digits(now.getDate())].join('-');
  const clock = [now.getHours(), now.getMinutes(), now.getSeconds()].map((part) => digits(part)).join('');
  return `${day}-${clock}-${digits(now.getMilliseconds(), 3)}`;
}

/** Takes a checkpoint, and says what came of it. Resolves to its name; empty if nothing had changed. */
export async function takeCheckpoint(workspace, message) {
  const note = message.trim();
  const asked = { workspace, id: nameOfNow(), ...(note ? { message: note } : {}) };
  const { snapshot } = await post('/ckpt/checkpoint', asked, { patience: LONG });
  toast(snapshot ? t('ckpt.taken', { name: oneLine(snapshot) }) : t('ckpt.skipped'));
  return snapshot ?? '';
}

function Workspaces() {
  const workspaces = useLoad((signal) => get('/ckpt/workspaces', { signal }), []);
  useEvery(5000, workspaces.reload);
  const list = workspaces.data?.workspaces ?? [];
  const { rows, pager } = usePages(list, PAGE);
  const { over_limit: over, fs_used_bytes: used, fs_total_bytes: total } = workspaces.data ?? {};
  return html`<section aria-label=${t('ckpt.title')}>
    <${Heading} actions=${html`<${Button} press=${workspaces.reload}>${t('do.refresh')}<//>`}>${t('ckpt.title')}<//>
    <p class="hint">${t('ckpt.intro')}</p>
    <${Problem} failure=${workspaces.failure} retry=${workspaces.reload} />
    <${First} known=${list} />
    ${over > 0 && html`<${Notice} tone="warn"><p>${t('ckpt.over', { count: over })}</p><//>`}
    ${!workspaces.data && !workspaces.failure && html`<${Loading} />`}
    ${workspaces.data && !list.length && html`<${Empty} title=${t('ckpt.none')}><p>${t('ckpt.none.hint')}</p><//>`}
    <ul class="rows">
      ${rows.map(
        (of) =>
          html`<li key=${of.id} class="row" data-workspace=${of.id}>
            <div class="row-main">
              <p><a href=${link('checkpoints', of.id)}><${Path} of=${of.path} /></a></p>
              <p class="hint">
                ${t('ckpt.count', { count: of.snapshots })}${of.newest && html` · ${t('ckpt.newest')} <${Time} at=${of.newest} />`}
                ${of.missing > 0 && html` <${Chip} tone="bad">${t('ckpt.damaged', { count: of.missing })}<//>`}
              </p>
            </div>
            <a class="button small" href=${link('checkpoints', of.id)} aria-label=${`${t('do.view')}: ${oneLine(of.path)}`} data-action="view">${t('do.view')}</a>
          </li>`,
      )}
    </ul>
    ${pager}
    ${total > 0 && html`<p class="hint">${t('ckpt.disk', { used: bytes(used), total: bytes(total) })}</p>`}
  </section>`;
}

function First({ known }) {
  const [path, setPath] = useDraft('ckpt.path', '');
  const [message, setMessage] = useDraft('ckpt.message', '');
  const workspace = path.trim();
  const here = useHere();
  const take = useAction(async () => {
    await takeCheckpoint(workspace, message);
    const { workspaces } = await get('/ckpt/workspaces');
    const trimmed = workspace.length > 1 ? workspace.replace(/\/+$/, '') : workspace;
    setMessage(clearIf(message));
    setPath(clearIf(path));
    // A path with links in it is registered as what it leads to, which has a name of its own here.
    if (here()) go('checkpoints', workspaces.find((of) => of.path === trimmed)?.id ?? trimmed);
  });
  const off = !workspace.startsWith('/') && t('directory.absolute');
  const submit = (event) => {
    event.preventDefault();
    if (!off) take.run();
  };
  return html`<form class="panel" onSubmit=${submit} aria-label=${t('ckpt.new')}>
    <h2>${t('ckpt.new')}</h2>
    <${Field} label=${t('ckpt.directory')} hint=${t('ckpt.directory.hint')}>
      ${({ id, describedby }) =>
        html`<${DirectoryInput} id=${id} name="workspace" value=${path} change=${setPath} known=${known.map((of) => of.path)} aria-describedby=${describedby} />`}
    <//>
    <${Field} label=${t('ckpt.message')} hint=${t('ckpt.message.hint')}>
      ${({ id, describedby }) =>
        html`<input id=${id} name="message" aria-describedby=${describedby} value=${message} onInput=${(event) => setMessage(event.currentTarget.value)} />`}
    <//>
    <${Problem} failure=${take.failure} />
    <div class="actions">
      <${Button} kind="primary" off=${off} busy=${take.busy} data-action="checkpoint">${t('ckpt.take')}<//>
      ${off && path && html`<span class="hint">${off}</span>`}
    </div>
  </form>`;
}
