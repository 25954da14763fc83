// A directory's checkpoints, newest first: compare, roll back, undo, delete.

import { LONG, get, post } from '../client.js';
import { has, t } from '../i18n/index.js';
import { go, link } from '../router.js';
import { toast } from '../state.js';
import { folded, oneLine, visible } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { clearIf, useAction, useEvery, useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Chip, Empty, Field, Heading, Loading, Notice, Path, Problem, Time } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';
import { takeCheckpoint } from './checkpoints.js';
import { Rollback } from './rollback.js';
import { Trash } from './trash.js';
import { Undo, standInWords, standOf } from './undo.js';

const PAGE = 50;
export const LIVE = '@live';

export function TimelinePage({ workspace }) {
  const url = `/ckpt/workspaces/${encodeURIComponent(workspace)}`;
  const line = useLoad((signal) => get(`${url}/snapshots`, { signal }), [workspace]);
  const [message, setMessage] = useState('');
  const [rolling, setRolling] = useState(null);
  const [dropping, setDropping] = useState(null);
  const [undoing, setUndoing] = useState(false);
  const snapshots = [...(line.data?.snapshots ?? [])].reverse();
  const { rows, pager } = usePages(snapshots, PAGE);
  // A note is of many words: where it begins and ends is seen by quotes.
  const nameOf = (id) => {
    const note = folded(snapshots.find((snapshot) => snapshot.id === id)?.message, 80);
    return note ? t('line.quoted', { name: note }) : oneLine(id);
  };
  const newest = snapshots.find((snapshot) => !snapshot.missing)?.id;
  const since = useLoad(
    async (signal) => {
      if (!newest) return null;
      const diff = await post('/ckpt/diff', { workspace, from: newest, to: LIVE, limit: 1 }, { signal, patience: LONG });
      return { ...diff, at: Date.now() };
    },
    [`${workspace}/${newest}`],
  );
  const changed = async () => {
    await line.reload();
    await since.reload();
  };
  // No news tell of a directory: it is looked at, and not once more while that goes on.
  useEvery(5000, async () => {
    if (!since.loading) await changed();
  });
  // What is there now may be another directory than the one that was registered.
  const takeOver = useAction(async () => {
    await post('/ckpt/init', { path: line.data.path });
    toast(t('line.takenOver'));
    await changed();
  });
  const take = useAction(async () => {
    await takeCheckpoint(workspace, message);
    setMessage(clearIf(message));
    await changed();
  });
  const drop = async () => {
    await post('/ckpt/delete', { workspace, snapshot: dropping.id, force: dropping.pinned }, { patience: LONG });
    toast(t('drop.done', { name: oneLine(dropping.id) }));
    await changed();
  };
  if (line.failure && !line.data) {
    return html`<p class="crumbs"><a href=${link('checkpoints')}>${t('ckpt.all')}</a></p>
      <${Problem} failure=${line.failure} retry=${line.reload} />`;
  }
  if (!line.data) return html`<${Loading} />`;
  const submit = (event) => {
    event.preventDefault();
    take.run();
  };
  return html`<section aria-label=${t('line.title')} data-workspace=${line.data.id}>
    <p class="crumbs"><a href=${link('checkpoints')}>${t('ckpt.all')}</a></p>
    <${Heading} actions=${html`<${Button} press=${changed}>${t('do.refresh')}<//>`}><${Path} of=${line.data.path} /><//>
    <form class="panel inline-form" onSubmit=${submit} aria-label=${t('ckpt.take')}>
      <${Field} label=${t('ckpt.message')}>
        ${({ id }) =>
          html`<input id=${id} name="message" placeholder=${t('ckpt.message.hint')} value=${message} onInput=${(event) => setMessage(event.currentTarget.value)} />`}
      <//>
      <${Button} kind="primary" busy=${take.busy} data-action="checkpoint">${t('ckpt.take')}<//>
      <${Problem} failure=${take.failure} />
    </form>
    ${since.failure &&
    html`<${Problem} failure=${since.failure} retry=${since.reload} />
      ${since.failure.code === 'InvalidPath' &&
      html`<p>
        <${Button} busy=${takeOver.busy} press=${takeOver.run} data-action="init">${t('line.takeOver')}<//>
        <span class="hint"> ${t('line.takeOver.hint')}</span>
      </p>`}
      <${Problem} failure=${takeOver.failure} />`}
    ${line.data.last && html`<${LastRollback} of=${line.data.last} stand=${standOf(workspace, line.data.last)} nameOf=${nameOf} undo=${() => setUndoing(true)} />`}
    <ol class="timeline" reversed>
      <li class="now">
        <p><strong>${t('line.now')}</strong> <span class="hint">${t('line.now.hint')}</span></p>
        ${since.data &&
        html`<p class="hint" data-testid="since">
          ${since.data.total
            ? html`<a href=${link('checkpoints', workspace, 'diff', newest, LIVE)}>${t('line.changed', since.data)}</a>`
            : t('line.unchanged')}
          ${` · ${t('line.looked')} `}<${Time} at=${since.data.at} />
        </p>`}
      </li>
      ${rows.map(
        (of) =>
          html`<${Snapshot} key=${of.id} of=${of} workspace=${workspace} url=${url} roll=${() => setRolling(of)} drop=${() => setDropping(of)} />`,
      )}
    </ol>
    ${!snapshots.length && html`<${Empty} title=${t('line.none')}><p>${t('line.none.hint')}</p><//>`}
    ${pager}
    ${snapshots.length > 1 && html`<${Compare} snapshots=${snapshots} workspace=${workspace} />`}
    <${Trash} workspace=${workspace} path=${line.data.path} changed=${changed} />
    ${rolling &&
    html`<${Rollback} workspace=${workspace} path=${line.data.path} snapshot=${rolling} close=${() => setRolling(null)} done=${changed} />`}
    ${undoing &&
    html`<${Undo} workspace=${workspace} url=${url} path=${line.data.path} nameOf=${nameOf} close=${() => setUndoing(false)} done=${changed} />`}
    ${dropping &&
    html`<${Confirm} title=${t('drop.title', { name: dropping.message ? folded(dropping.message, 80) : oneLine(dropping.id) })} act=${t('drop.act')} of="delete" danger work=${drop} close=${() => setDropping(null)}>
      <p data-testid="plan"><${Path} of=${dropping.id} /> · <${Time} at=${dropping.created_at} /></p>
      <p>${t(dropping.pinned ? 'drop.pinned' : 'drop.what')}</p>
    <//>`}
  </section>`;
}

function LastRollback({ of, stand, nameOf, undo }) {
  return html`<${Notice} tone=${stand === 'undone' ? 'quiet' : 'good'} data-testid="last-rollback" data-stand=${stand}>
    <div>
      <p>${standInWords(stand, of, nameOf)}</p>
      ${of.warnings.length > 0 &&
      html`<details>
        <summary>${t('back.warnings', { count: of.warnings.length + of.omitted })}</summary>
        <${Warnings} of=${of.warnings} />
      </details>`}
    </div>
    <${Button} press=${undo} data-action="undo-rollback">${t(`line.undo.${stand}`)}<//>
  <//>`;
}

function Snapshot({ of, workspace, url, roll, drop }) {
  const [open, setOpen] = useState(false);
  const name = oneLine(of.id);
  return html`<li data-snapshot=${of.id}>
    <div class="row-main">
      <p>
        <strong><bdi>${of.message ? folded(of.message, 200) : name}</bdi></strong>
        ${of.pinned && html` <${Chip}>${t('line.pinned')}<//>`}
        ${of.missing && html` <${Chip} tone="bad">${t('line.missing')}<//>`}
      </p>
      <p class="hint"><${Time} at=${of.created_at} />${of.message && html` · <${Path} of=${of.id} />`}</p>
    </div>
    <div class="actions">
      <a class="button small" href=${link('checkpoints', workspace, 'diff', of.id, LIVE)} data-action="diff" aria-label=${`${t('line.diff')}: ${name}`}>${t('line.diff')}</a>
      <${Button} kind="small" off=${of.missing && t('line.missing')} press=${roll} data-action="rollback" aria-label=${`${t('line.rollback')} ${name}`}>${t('line.rollback')}<//>
      ${of.warnings > 0 &&
      html`<${Button} kind="small quiet" press=${() => setOpen(!open)} aria-expanded=${open ? 'true' : 'false'} aria-label=${`${t('line.warnings', { count: of.warnings })}: ${name}`} data-action="warnings">${t('line.warnings', { count: of.warnings })}<//>`}
      <${Button} kind="small quiet" press=${drop} data-action="delete" aria-label=${`${t('line.delete')} ${name}`}>${t('line.delete')}<//>
    </div>
    ${open && html`<${LeftOut} url=${`${url}/snapshots/${encodeURIComponent(of.id)}/warnings`} />`}
  </li>`;
}

function LeftOut({ url }) {
  const warnings = useLoad((signal) => get(url, { signal }), [url]);
  if (warnings.failure) return html`<${Problem} failure=${warnings.failure} retry=${warnings.reload} />`;
  if (!warnings.data) return html`<${Loading} />`;
  return html`<${Warnings} of=${warnings.data.warnings} />`;
}

function Warnings({ of }) {
  const { rows, pager } = usePages(of, PAGE);
  return html`<ul class="items">
      ${rows.map((one) => html`<li key=${one.path}><${Path} of=${one.path} /> <span class="hint">${has(`warning.${one.kind}`) ? t(`warning.${one.kind}`) : visible(one.text)}</span></li>`)}
    </ul>
    ${pager}`;
}

function Compare({ snapshots, workspace }) {
  const [from, setFrom] = useState(snapshots[1].id);
  const [to, setTo] = useState(snapshots[0].id);
  const submit = (event) => {
    event.preventDefault();
    go('checkpoints', workspace, 'diff', from, to);
  };
  const select = (name, label, value, change, choices) =>
    html`<${Field} label=${label}>
      ${({ id }) =>
        html`<select id=${id} name=${name} value=${value} onChange=${(event) => change(event.currentTarget.value)}>
          ${choices.map(([of, text]) => html`<option key=${of} value=${of} selected=${of === value}>${text}</option>`)}
        </select>`}
    <//>`;
  // A drop-down of thousands helps nobody.
  const choices = snapshots
    .slice(0, 500)
    .map(({ id, message }) => [id, message ? `${oneLine(id)} · ${folded(message, 60)}` : oneLine(id)]);
  return html`<form class="panel inline-form" onSubmit=${submit} aria-label=${t('line.compare')}>
    <h2>${t('line.compare')}</h2>
    ${select('from', t('line.from'), from, setFrom, choices)}
    ${select('to', t('line.to'), to, setTo, [[LIVE, t('line.now')], ...choices])}
    <${Button} data-action="compare">${t('line.compare.act')}<//>
  </form>`;
}
