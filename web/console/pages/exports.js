// The history of exports: what went where, and undoing it.

import { LONG, call } from '../client.js';
import { learn, t } from '../i18n/index.js';
import words from '../i18n/words/exports.js';
import { link } from '../router.js';
import { state, taskOf, toast, useShared } from '../state.js';
import { bytes, oneLine, titleOf, visible } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Bytes, Chip, Empty, Facts, Heading, Loading, Notice, Path, Problem, Time } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

learn(words);

const PAGE = 20;
const ITEMS = 50;

export default function ExportsPage() {
  // The host says that records have changed by giving its state anew.
  const told = useShared((shared) => shared.host?.exports);
  const newest = told && JSON.stringify(told.map(({ id, status, undoneAt }) => [id, status, undoneAt]));
  const exports = useLoad((signal) => call('listExports', {}, { signal }), ['exports', newest]);
  const { rows, pager } = usePages(exports.data?.exports ?? [], PAGE);
  return html`<section aria-label=${t('exports.title')}>
    <${Heading} actions=${html`<${Button} press=${exports.reload}>${t('do.refresh')}<//>`}>${t('exports.title')}<//>
    <${Problem} failure=${exports.failure} retry=${exports.reload} />
    ${!exports.data && !exports.failure && html`<${Loading} />`}
    ${exports.data &&
    !exports.data.exports.length &&
    html`<${Empty} title=${t('exports.none')}>
      <p>${t('exports.none.hint')}</p>
      <p><a class="button primary" href=${link('tasks')}>${t('app.toTasks')}</a></p>
    <//>`}
    ${rows.map((record) => html`<${ExportCard} key=${record.id} record=${record} changed=${exports.reload} />`)}
    ${pager}
    ${exports.data?.truncated && html`<p class="hint">${t('exports.truncated')}</p>`}
  </section>`;
}

const STATUS = { running: 'busy', completed: 'good', failed: 'bad', interrupted: 'warn' };

/** One export; `changed` is called with its record after an undo. */
export function ExportCard({ record, changed, open = false }) {
  const [undoing, setUndoing] = useState(false);
  const [conflicts, setConflicts] = useState([]);
  const counts = countsOf(record.items);
  const undo = async () => {
    const undone = await call('undoExport', { exportId: record.id }, { patience: LONG });
    toast(t('exports.undo.done', { removed: undone.removed.length, restored: undone.restored.length }));
    if (undone.conflicts.length) toast(t('exports.undo.conflicts', { count: undone.conflicts.length }), 'bad');
    setConflicts(undone.conflicts);
    changed?.(undone.export);
  };
  const target = oneLine(record.targetDir);
  const task = taskOf(record.taskId);
  const title = titleOf(task ?? { id: record.taskId, label: record.label });
  const canUndo = record.mode === 'copy' && !record.undoneAt;
  return html`<article class="panel export-record" data-export=${record.id} data-status=${record.status} data-mode=${record.mode} tabindex="-1" aria-label=${`${t('exports.title')}: ${title}`}>
    <div class="panel-head">
      <p class="chips">
        ${record.undoneAt > 0
          ? html`<${Chip} tone="warn" data-testid="undone">${t('exports.undone')}<//>`
          : html`<${Chip} tone=${STATUS[record.status]}>${t(`exports.status.${record.status}`)}<//>`}
        <${Chip}>${t(`exports.${record.mode}`)}<//>
        ${record.legacy && html`<${Chip}>${t('exports.legacy')}<//>`}
      </p>
      ${canUndo &&
      html`<${Button}
        kind="small"
        off=${record.status === 'running' && t('exports.noUndo.running')}
        press=${() => setUndoing(true)}
        data-action="undo"
        aria-label=${t('exports.undo.of', { target })}
        >${t('exports.undo')}<//
      >`}
    </div>
    <${Facts}
      of=${[
        [t('exports.of'), task ? html`<a href=${link('tasks', record.taskId)}><bdi>${title}</bdi></a>` : html`<bdi>${title}</bdi>`],
        [t('exports.at'), html`<${Time} at=${record.at} />`],
        [t('exports.to'), html`<${Path} of=${record.targetDir} />`],
        [t('exports.undone.at'), record.undoneAt > 0 && html`<${Time} at=${record.undoneAt} />`],
      ]}
    />
    ${record.mode === 'move' && html`<p class="hint" data-testid="no-undo">${t('exports.noUndo')}</p>`}
    ${conflicts.length > 0 &&
    html`<${Notice} tone="warn">
      <ul>${conflicts.map(({ path, message }) => html`<li key=${path}><${Path} of=${path} />: ${visible(message)}</li>`)}</ul>
    <//>`}
    <details open=${open || record.items.length <= 3}>
      <summary>${record.items.length ? t(record.undoneAt ? 'exports.counts.undone' : 'exports.counts', counts) : t('exports.noItems')}</summary>
      <${Items} of=${record.items} from=${task?.taskDir} />
    </details>
    ${undoing && html`<${Undo} record=${record} counts=${counts} undo=${undo} close=${() => setUndoing(false)} />`}
  </article>`;
}

function countsOf(items) {
  const good = items.filter((item) => ['OK', 'UNDO', 'UNDO_CONFLICT'].includes(item.status));
  const kept = items.filter((item) => item.status === 'UNDO_CONFLICT').length;
  return {
    kept,
    undone: good.length - kept,
    good: good.length,
    size: bytes(good.reduce((sum, item) => sum + item.bytes, 0)),
    skipped: items.filter((item) => item.status === 'SKIP').length,
    failed: items.filter((item) => item.status === 'FAIL').length,
  };
}

const ITEM = { OK: 'good', SKIP: 'quiet', FAIL: 'bad', UNDO: 'warn', UNDO_CONFLICT: 'bad' };

function Items({ of, from }) {
  // Whose they were is said above: what matters is where they lay there.
  const within = (path) => (from && path.startsWith(`${from}/`) ? path.slice(from.length + 1) : path);
  const { rows, pager } = usePages(of, ITEMS);
  return html`<ul class="items">
      ${rows.map(
        (item, at) =>
          html`<li key=${`${item.dst}/${at}`} data-item=${item.status}>
            <${Chip} tone=${ITEM[item.status]}>${t(`item.${item.status}`)}<//>
            <span><${Path} of=${within(item.src)} title=${oneLine(item.src)} /> <span aria-hidden="true">→</span><span class="sr">${t('exports.to')}</span> <${Path} of=${item.dst} /></span>
            ${item.bytes > 0 && html`<span class="hint"><${Bytes} count=${item.bytes} /></span>`}
            ${item.existed && item.backupPath && item.status !== 'UNDO' && html`<span class="hint">${t('exports.backup')}</span>`}
            ${item.message && html`<p class="hint">${visible(item.message)}</p>`}
          </li>`,
      )}
    </ul>
    ${pager}`;
}

function Undo({ record, counts, undo, close }) {
  const restores = record.items.filter((item) => item.status === 'OK' && item.backupPath).length;
  const verified = state.host?.config?.exportVerify && record.items.every((item) => item.status !== 'OK' || item.hash);
  return html`<${Confirm} title=${t('exports.undo.title')} act=${t('exports.undo.act')} of="undo" danger work=${undo} close=${close}>
    <ul class="plan" data-testid="plan">
      <li><strong>${t('exports.undo.what', { count: counts.good - restores })}</strong> <${Path} of=${record.targetDir} /></li>
      ${restores > 0 && html`<li>${t('exports.undo.restores', { count: restores })}</li>`}
      <li>${t(verified ? 'exports.undo.changed' : 'exports.undo.unverified')}</li>
    </ul>
  <//>`;
}
