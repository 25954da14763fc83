// Removing many tasks that have ended.

import { LONG, call } from '../client.js';
import { t } from '../i18n/index.js';
import { refresh } from '../live.js';
import { toast } from '../state.js';
import { oneLine, titleOf, visible } from '../text.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { usePages } from '../ui/pager.js';
import { Button, Check, Notice } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

const ENDED = ['completed', 'failed', 'timeout', 'cancelled', 'interrupted'];
const PAGE = 10;
/** How many the daemon removes at once. */
const AT_ONCE = 500;
const DAY = 86400000;
const AGES = { any: 0, day: DAY, week: 7 * DAY, month: 30 * DAY };

/** Asks which tasks, and removes them. */
export function BulkCleanup({ tasks, close }) {
  const [statuses, setStatuses] = useState(['completed']);
  const [age, setAge] = useState('any');
  const [deleteFiles, setDeleteFiles] = useState(false);
  const [failed, setFailed] = useState([]);
  // How many went, if that were not all.
  const [more, setMore] = useState(0);
  const before = Date.now() - AGES[age];
  const isOld = (task) => !AGES[age] || (task.endedAt || task.createdAt) < before;
  const found = tasks.filter((task) => statuses.includes(task.status) && isOld(task));
  const count = found.length;
  const { rows, pager } = usePages(found, PAGE);
  const work = async () => {
    // They are not named but described: only so those that share a directory go together.
    const args = { statuses, deleteFiles, ...(AGES[age] ? { olderThanMs: AGES[age] } : {}) };
    const { results, deleted, more: rest } = await call('bulkCleanup', args, { patience: LONG });
    const left = results.filter((row) => !row.ok);
    toast(t('bulk.done', { count: deleted }));
    await refresh();
    setMore(Boolean(rest) && deleted > 0 ? deleted : 0);
    if (left.length) setFailed(left.map((row) => ({ ...row, title: nameOf(tasks, row.taskId) })));
    else if (!rest) close();
  };
  const tick = (status, ticked) =>
    setStatuses(ENDED.filter((of) => (of === status ? ticked : statuses.includes(of))));
  const what = count === 0 ? 'bulk.what.none' : deleteFiles ? 'bulk.what.files' : 'bulk.what';
  if (failed.length) return html`<${Failed} rows=${failed} more=${more} close=${close} />`;
  return html`<${Confirm}
    title=${t('bulk.title')}
    act=${t('clean.act')}
    danger
    of="bulk-cleanup"
    off=${count === 0 && t('bulk.what.none')}
    work=${work}
    close=${close}
    stays
  >
    ${more > 0 &&
    html`<${Notice} tone="warn" role="status" data-testid="more"><p>${t('bulk.more', { count: more })}</p><//>`}
    <fieldset>
      <legend>${t('bulk.statuses')}</legend>
      ${ENDED.map(
        (of) => html`<${Check} key=${of} name="bulk-status" value=${of} label=${t(`status.${of}`)} checked=${statuses.includes(of)} change=${(ticked) => tick(of, ticked)} />`,
      )}
    </fieldset>
    <label class="field inline">
      <span>${t('bulk.older')}</span>
      <select name="bulk-older" value=${age} onChange=${(event) => setAge(event.currentTarget.value)}>
        ${Object.keys(AGES).map((of) => html`<option key=${of} value=${of}>${t(`bulk.older.${of}`)}</option>`)}
      </select>
    </label>
    <${Check} name="bulk-files" label=${t('bulk.files')} checked=${deleteFiles} change=${setDeleteFiles} />
    <p data-testid="plan"><strong>${t(what, { count: Math.min(count, AT_ONCE) })}</strong>${count > AT_ONCE && html` ${t('bulk.atOnce', { count: AT_ONCE, all: count })}`}</p>
    ${count > 0 &&
    html`<p class="hint">${t('bulk.filter')}</p>
      <ul class="items">
        ${rows.map((task) => html`<li key=${task.id} data-plan=${task.id}><bdi>${titleOf(task)}</bdi></li>`)}
      </ul>
      ${pager}`}
  <//>`;
}

const nameOf = (tasks, id) => titleOf(tasks.find((task) => task.id === id) ?? { id });

/** Which ones are still there, and why. */
function Failed({ rows: failed, more, close }) {
  const { rows, pager } = usePages(failed, PAGE);
  return html`<${Dialog} title=${t('bulk.title')} close=${close} data-testid="bulk-failed">
    <${Notice} tone="bad" role="alert">
      <div>
        <p>${t('bulk.failed', { count: failed.length })}</p>
        <ul class="items">
          ${rows.map(
            ({ taskId, title, code, message }) =>
              html`<li key=${taskId} data-failed=${taskId}><bdi>${title}</bdi>: <code>${oneLine(code)}</code> ${visible(message)}</li>`,
          )}
        </ul>
        ${pager}
        ${more > 0 && html`<p>${t('bulk.more', { count: more })}</p>`}
      </div>
    <//>
    <div class="actions end"><${Button} press=${close} data-action="dismiss">${t('do.close')}<//></div>
  <//>`;
}
