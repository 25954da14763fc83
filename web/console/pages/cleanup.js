// Removing a task: says what goes, and how much, before it does.

import { call } from '../client.js';
import { t } from '../i18n/index.js';
import { dropTask, isOpen, toast } from '../state.js';
import { bytes, folded } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { Path, Radios } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

/** Asks what of a task shall be removed, and removes it. `done` is called with the scope. */
export function CleanUp({ task, scope: first = 'all', close, done }) {
  const [scope, setScope] = useState(first);
  const files = useLoad((signal) => call('listFiles', { taskId: task.id }, { signal }), [task.id, task.status]);
  const counting = scope !== 'record' && files.loading && t('clean.counting');
  const label = folded(task.label || task.id, 60);
  const work = async () => {
    const { removedRecord } = await call('cleanup', { taskId: task.id, scope });
    if (removedRecord) dropTask(task.id);
    toast(t('clean.done', { label }));
    done?.(scope);
  };
  const choices = ['all', 'files', 'record'].map((of) => [of, t(`clean.${of}`), t(`clean.${of}.hint`)]);
  return html`<${Confirm} title=${t('clean.title', { label })} act=${t('clean.act')} danger of="cleanup" off=${counting} work=${work} close=${close}>
    <${Radios} legend=${t('clean.scope')} choices=${choices} value=${scope} change=${setScope} />
    <ul class="plan" data-testid="plan">
      ${isOpen(task) && html`<li>${t('clean.what.stops')}</li>`}
      ${scope !== 'record' && html`<li>${howMuch(files)} <${Path} of=${task.taskDir} /></li>`}
      ${scope !== 'record' && html`<li>${t('clean.what.checkpoints')}</li>`}
      ${scope !== 'files' && html`<li>${t('clean.what.record')}</li>`}
    </ul>
  <//>`;
}

function howMuch({ data, loading }) {
  if (loading) return t('clean.counting');
  if (!data) return t('clean.what.unknown');
  if (data.missing) return t('clean.what.missing');
  const size = bytes(data.entries.reduce((sum, entry) => sum + entry.size, 0));
  return t(data.truncated ? 'clean.what.atLeast' : 'clean.what.files', { count: data.entries.length, size });
}
