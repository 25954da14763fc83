// Rolling a directory back: what that will do, and to how much, before it is done.

import { LONG, post } from '../client.js';
import { t } from '../i18n/index.js';
import { toast } from '../state.js';
import { folded, oneLine } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { Chip, Path, Problem } from '../ui/parts.js';
import { html } from '../vendor/preact.js';

/** How many paths are named. */
const NAMED = 100;
const KINDS = ['added', 'deleted', 'modified', 'renamed'];
/** What becomes of what has changed since the checkpoint. */
const EFFECTS = { added: 'bad', deleted: 'good', modified: 'warn', renamed: 'quiet' };

export function Rollback({ workspace, path, snapshot, close, done }) {
  const plan = useLoad(
    (signal) => post('/ckpt/diff', { workspace, from: snapshot.id, to: '@live', limit: NAMED }, { signal, patience: LONG }),
    [workspace, snapshot.id],
  );
  const work = async () => {
    const report = await post('/ckpt/rollback', { workspace, to: snapshot.id }, { patience: LONG });
    toast(t('back.done', report));
    await done(report);
  };
  const name = snapshot.message ? folded(snapshot.message, 80) : oneLine(snapshot.id);
  return html`<${Confirm} title=${t('back.title', { name })} act=${t('back.act')} of="rollback" danger off=${!plan.data} work=${work} close=${close}>
    ${plan.failure && html`<${Problem} failure=${plan.failure} retry=${plan.reload} />`}
    ${plan.loading && html`<p role="status">${t('back.counting')}</p>`}
    ${plan.data && html`<${Plan} of=${plan.data} path=${path} />`}
  <//>`;
}

function Plan({ of, path }) {
  if (!of.total) return html`<p data-testid="plan">${t('back.none')}</p>`;
  return html`<p data-testid="plan"><strong>${t('back.changes', of)}</strong> <${Path} of=${path} /></p>
    <ul class="plan">
      ${KINDS.filter((kind) => of[kind] > 0).map((kind) => html`<li key=${kind}>${t(`back.${kind}`, { count: of[kind] })}</li>`)}
      <li>${t('back.kept')}</li>
    </ul>
    <details>
      <summary>${t('back.list')}</summary>
      <ul class="items">
        ${of.changes.map(
          (change) =>
            html`<li key=${change.path}><${Chip} tone=${EFFECTS[change.kind]}>${t(`back.effect.${change.kind}`)}<//> <${Path} of=${change.path} /></li>`,
        )}
      </ul>
      ${of.total > of.changes.length && html`<p class="hint">${t('back.more', { count: of.total - of.changes.length })}</p>`}
    </details>`;
}
