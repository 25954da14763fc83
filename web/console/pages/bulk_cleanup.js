// Removing many tasks that have ended.

import { call } from '../client.js';
import { t } from '../i18n/index.js';
import { refresh } from '../live.js';
import { toast } from '../state.js';
import { Confirm } from '../ui/dialog.js';
import { Check } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

const ENDED = ['completed', 'failed', 'timeout', 'cancelled', 'interrupted'];
const DAY = 86400000;
const AGES = { any: 0, day: DAY, week: 7 * DAY, month: 30 * DAY };

/** Asks which tasks, and removes them. */
export function BulkCleanup({ tasks, close }) {
  const [statuses, setStatuses] = useState(['completed']);
  const [age, setAge] = useState('any');
  const [deleteFiles, setDeleteFiles] = useState(false);
  const before = Date.now() - AGES[age];
  const count = tasks.filter((task) => statuses.includes(task.status) && task.endedAt <= before).length;
  const work = async () => {
    const args = { statuses, deleteFiles, ...(AGES[age] ? { olderThanMs: AGES[age] } : {}) };
    const { results, deleted } = await call('bulkCleanup', args);
    const failed = results.filter((row) => !row.ok).length;
    toast(t('bulk.done', { count: deleted }));
    if (failed) toast(t('bulk.failed', { count: failed }), 'bad');
    await refresh();
  };
  const tick = (status, ticked) =>
    setStatuses(ENDED.filter((of) => (of === status ? ticked : statuses.includes(of))));
  const what = count === 0 ? 'bulk.what.none' : deleteFiles ? 'bulk.what.files' : 'bulk.what';
  return html`<${Confirm}
    title=${t('bulk.title')}
    act=${t('clean.act')}
    danger
    of="bulk-cleanup"
    off=${count === 0 && t('bulk.what.none')}
    work=${work}
    close=${close}
  >
    <fieldset>
      <legend>${t('bulk.statuses')}</legend>
      ${ENDED.map(
        (of) => html`<${Check} key=${of} label=${t(`status.${of}`)} checked=${statuses.includes(of)} change=${(ticked) => tick(of, ticked)} />`,
      )}
    </fieldset>
    <label class="field inline">
      <span>${t('bulk.older')}</span>
      <select value=${age} onChange=${(event) => setAge(event.currentTarget.value)}>
        ${Object.keys(AGES).map((of) => html`<option key=${of} value=${of}>${t(`bulk.older.${of}`)}</option>`)}
      </select>
    </label>
    <${Check} label=${t('bulk.files')} checked=${deleteFiles} change=${setDeleteFiles} />
    <p data-testid="plan"><strong>${t(what, { count })}</strong></p>
  <//>`;
}
