// How two checkpoints differ, or one and the directory as it is: paths a page at a time, content of a path when asked for.

import { LONG, post } from '../client.js';
import { t } from '../i18n/index.js';
import { link } from '../router.js';
import { bytes, exactLine, oneLine } from '../text.js';
import { useLoad } from '../ui/hooks.js';
import { Button, Chip, Empty, Heading, Loading, Path, Problem } from '../ui/parts.js';
import { html, useEffect, useState } from '../vendor/preact.js';

const PAGE = 100;
const TONES = { added: 'good', deleted: 'bad', modified: 'warn', renamed: 'quiet' };

export function DiffPage({ workspace, from, to }) {
  const [page, setPage] = useState(0);
  const [open, setOpen] = useState('');
  const asked = { workspace, from, to, limit: PAGE, offset: page * PAGE };
  const diff = useLoad(
    async (signal) => ({ ...(await post('/ckpt/diff', asked, { signal, patience: LONG })), from: asked.offset }),
    ['diff', page],
  );
  const named = (of) => (of === '@live' ? t('diff.now') : oneLine(of));
  const { data } = diff;
  const last = data ? Math.max(0, Math.ceil(data.total / PAGE) - 1) : page;
  useEffect(() => {
    // There may be less by now.
    if (page > last) setPage(last);
  }, [page, last]);
  const turn = (by) => {
    setOpen('');
    setPage(page + by);
  };
  return html`<section aria-label=${t('diff.title', { from: named(from), to: named(to) })}>
    <p class="crumbs"><a href=${link('checkpoints', workspace)}>${t('diff.back')}</a></p>
    <${Heading} actions=${html`<${Button} press=${diff.reload}>${t('do.refresh')}<//>`}><bdi>${t('diff.title', { from: named(from), to: named(to) })}</bdi><//>
    <${Problem} failure=${diff.failure} retry=${diff.reload} />
    ${!data && !diff.failure && html`<${Loading} />`}
    ${data && !data.total && html`<${Empty} title=${t('diff.none')}><p>${t('diff.none.hint')}</p><//>`}
    ${data?.total > 0 && html`<p data-testid="sum">${t('diff.sum', data)}</p>`}
    <ul class="rows files">
      ${(data?.changes ?? []).map(
        (change) =>
          html`<${Change}
            key=${change.path}
            change=${change}
            of=${{ workspace, from, to }}
            open=${open === change.path}
            toggle=${() => setOpen(open === change.path ? '' : change.path)}
          />`,
      )}
    </ul>
    ${data?.total > PAGE &&
    html`<nav class="pager" aria-label=${t('pager.label')}>
      <${Button} kind="small" off=${page === 0} press=${() => turn(-1)}>${t('pager.previous')}<//>
      <span role="status">${t('pager.range', { from: data.from + 1, to: data.from + data.changes.length, count: data.total })}</span>
      <${Button} kind="small" off=${page >= last} press=${() => turn(1)}>${t('pager.next')}<//>
    </nav>`}
  </section>`;
}

function Change({ change: { path, kind, detail, old_path: oldPath }, of, open, toggle }) {
  const name = oneLine(path);
  return html`<li class="row change" data-change=${path} data-kind=${kind}>
    <${Chip} tone=${TONES[kind]}>${t(`diff.${kind}`)}<//>
    <div class="row-main">${oldPath && html`<${Path} of=${oldPath} /> → `}<${Path} of=${path} /> ${detail && html`<span class="hint"><bdi>${oneLine(detail)}</bdi></span>`}</div>
    <${Button} kind="small" press=${toggle} aria-expanded=${open ? 'true' : 'false'} data-action="content" aria-label=${`${t(open ? 'diff.hide' : 'diff.show')}: ${name}`}>${t(open ? 'diff.hide' : 'diff.show')}<//>
    ${open && html`<${Content} of=${of} path=${path} oldPath=${oldPath} />`}
  </li>`;
}

function Content({ of, path, oldPath }) {
  const asked = { ...of, path, ...(oldPath ? { old_path: oldPath } : {}) };
  const content = useLoad((signal) => post('/ckpt/content', asked, { signal }), [path]);
  if (content.failure) return html`<${Problem} failure=${content.failure} retry=${content.reload} />`;
  if (!content.data) return html`<${Loading} />`;
  const { old, new: fresh, hunks, truncated } = content.data;
  const sides = [old, fresh].filter(Boolean);
  const files = sides.filter((side) => side.kind === 'file');
  const why = sides.some((side) => side.unreadable)
    ? 'diff.unreadable'
    : sides.some((side) => side.binary)
      ? 'diff.binary'
      : files.length && !hunks.length
        ? files.length === 1 && files[0].size === 0
          ? 'diff.empty'
          : oldPath
            ? 'diff.same.renamed'
            : 'diff.same'
        : '';
  return html`<div class="preview" data-hunks=${hunks.length} role="group" aria-label=${t('diff.content', { path: oneLine(path) })}>
    <p class="hint">${t('diff.before')}: <${Side} of=${old} /> · ${t('diff.after')}: <${Side} of=${fresh} /></p>
    ${why && html`<p>${t(why)}</p>`}
    ${hunks.length > 0 && html`<${Hunks} of=${hunks} />`}
    ${truncated && html`<p><${Chip} tone="warn">${t('text.cut')}<//> <span class="hint">${t('diff.truncated')}</span></p>`}
  </div>`;
}

function Side({ of }) {
  if (!of) return t('diff.absent');
  const kind = t(`diff.kind.${of.kind}`);
  if (of.kind === 'symlink') return html`<span>${t('diff.link')} <${Path} of=${of.target ?? ''} /></span>`;
  return of.kind === 'file' ? t('diff.side', { kind, size: bytes(of.size) }) : kind;
}

const TAGS = { '+': 'plus', '-': 'minus', ' ': 'same' };

function Hunks({ of }) {
  return html`<div class="hunks" tabindex="0">
    ${of.map(
      (hunk) =>
        html`<div key=${`${hunk.old_start}/${hunk.new_start}`} class="hunk">
          <p class="hint">${t('diff.lines', { old: hunk.old_start, new: hunk.new_start })}</p>
          <pre>${hunk.lines.map((line, at) => html`<span key=${at} class=${`line ${TAGS[line.tag]}`}>${`${line.tag} ${exactLine(line.text)}\n`}</span>`)}</pre>
        </div>`,
    )}
  </div>`;
}
