// Removing a task: says what goes, and how much, before it does.

import { LONG, call } from '../client.js';
import { t } from '../i18n/index.js';
import { link } from '../router.js';
import { dropTask, isOpen, toast, useShared } from '../state.js';
import { titleOf } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { Check, Notice, Path, Radios, StatusChip } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';
import { countsOf, howMany } from './counts.js';

/** Asks what of a task shall be removed, and removes it. `done` is called with the scope. */
export function CleanUp({ task, close, done }) {
  const [scope, setScope] = useState('all');
  const [together, setTogether] = useState(false);
  const files = useLoad((signal) => call('listFiles', { taskId: task.id }, { signal, patience: LONG }), [task.id, task.status]);
  const tasks = useShared((state) => state.tasks);
  // Its directory is also theirs, or around theirs: it can go only if they go.
  const within = tasks.filter((other) => other.id !== task.id && isWithin(other.taskDir, task.taskDir));
  const shared = scope !== 'record' && within.length > 0;
  const stops = [task, ...(shared ? within : [])].filter(isOpen).length;
  const off =
    (scope !== 'record' && files.loading && !files.data && t('clean.counting')) ||
    (shared && scope === 'files' && t('clean.shared.files')) ||
    (shared && !together && t('clean.shared.first'));
  const label = titleOf(task, 60);
  const work = async () => {
    // Theirs first: what stays would keep the directory.
    for (const other of shared ? within : []) {
      await call('cleanup', { taskId: other.id, scope: 'record' }, { patience: LONG });
      dropTask(other.id);
    }
    const { removedRecord } = await call('cleanup', { taskId: task.id, scope }, { patience: LONG });
    if (removedRecord) dropTask(task.id);
    toast(t(scope === 'files' ? 'clean.done.files' : 'clean.done', { label }));
    done?.(scope);
  };
  const choices = ['all', 'files', 'record'].map((of) => [of, t(`clean.${of}`), t(`clean.${of}.hint`)]);
  return html`<${Confirm} title=${t('clean.title', { label })} act=${t('clean.act')} danger of="cleanup" off=${off} work=${work} close=${close}>
    <${Radios} legend=${t('clean.scope')} name="scope" choices=${choices} value=${scope} change=${setScope} />
    ${shared &&
    html`<${Notice} tone="warn" data-testid="shared">
      <div>
        <p>${t('clean.shared', { count: within.length })}</p>
        <ul class="items">
          ${within.map(
            (other) =>
              html`<li key=${other.id} data-shared=${other.id}><a href=${link('tasks', other.id)}><bdi>${titleOf(other, 80)}</bdi></a> <${StatusChip} status=${other.status} /></li>`,
          )}
        </ul>
        ${scope === 'files'
          ? html`<p>${t('clean.shared.files')}</p>`
          : html`<${Check} name="together" label=${t('clean.shared.together', { count: within.length })} checked=${together} change=${setTogether} />`}
      </div>
    <//>`}
    <ul class="plan" data-testid="plan">
      ${stops > 0 && html`<li>${t('clean.what.stops', { count: stops })}</li>`}
      ${scope !== 'record' && html`<li>${howMuch(files)} <${Path} of=${task.taskDir} /></li>`}
      ${scope !== 'record' && html`<li>${t(files.data?.missing ? 'clean.what.checkpoints.left' : 'clean.what.checkpoints')}</li>`}
      ${scope !== 'files' && html`<li>${t('clean.what.record', { count: shared ? 1 + within.length : 1 })}</li>`}
    </ul>
  <//>`;
}

/** Whether a directory is another one, or below it. */
const isWithin = (directory, of) => Boolean(of) && (directory === of || directory.startsWith(`${of}/`));

function howMuch({ data, loading }) {
  if (!data) return t(loading ? 'clean.counting' : 'clean.what.unknown');
  if (data.missing) return t('clean.what.missing');
  return t(data.truncated ? 'clean.what.atLeast' : 'clean.what.files', { what: howMany(countsOf(data.entries)) });
}
