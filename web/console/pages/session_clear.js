// Removing conversations: the plan first, which says exactly what goes.

import { LONG, post } from '../client.js';
import { t } from '../i18n/index.js';
import { toast } from '../state.js';
import { folded, visible } from '../text.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Notice, Path, Problem } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

/** The most ids of one request. */
const BATCH = 128;
const PAGE = 20;

/** `only` are the sessions to remove; empty: all of the scope. `known` are those whose first prompt is known. */
export function Clear({ scope, only, known, close, done }) {
  const plan = useLoad((signal) => (only.length ? onlyThese(scope, only, signal) : planOf(scope, signal)), [scope]);
  const [skipped, setSkipped] = useState(null);
  const [gone, setGone] = useState(new Set());
  const ids = (plan.data?.ids ?? []).filter((id) => !gone.has(id));
  const kept = plan.data?.kept ?? [];
  const { rows, pager } = usePages(ids, PAGE);
  const prompts = new Map(known.map((of) => [of.session_id, of.first_prompt]));
  const finish = () => {
    close();
    done();
  };
  const work = async () => {
    // What fails half-way has removed some, and goes on with the rest.
    const removed = new Set(gone);
    const refused = [];
    for (let at = 0; at < ids.length; at += BATCH) {
      const session_ids = ids.slice(at, at + BATCH);
      const cleared = await post('/session/clear', { workspace_scope: scope, session_ids, protected_session_ids: [] }, { patience: LONG });
      for (const id of cleared.deleted) removed.add(id);
      setGone(new Set(removed));
      refused.push(...cleared.skipped);
    }
    toast(t('clear.done', { count: removed.size }));
    if (refused.length) setSkipped(refused);
    else finish();
  };
  if (skipped) {
    return html`<${Dialog} title=${t('clear.result')} close=${finish}>
      <${Notice} tone="warn">
        <div>
          <p>${t('clear.skipped', { count: skipped.length })}</p>
          <ul class="items">
            ${skipped.slice(0, 100).map(
              ({ session_id, error }) =>
                html`<li key=${session_id}><${Path} of=${session_id} />: <code>${visible(error.code)}</code> ${visible(error.message)}</li>`,
            )}
          </ul>
        </div>
      <//>
      <div class="actions end"><${Button} press=${finish} data-action="dismiss">${t('do.close')}<//></div>
    <//>`;
  }
  return html`<${Confirm}
    title=${t(only.length ? 'clear.one' : 'clear.title')}
    act=${t('clear.act')}
    of="clear"
    danger
    off=${!ids.length && (plan.loading ? t('clear.planning') : only.length && kept.length ? t('clear.kept', { count: kept.length }) : t('clear.none'))}
    work=${work}
    close=${finish}
    stays
  >
    <${Problem} failure=${plan.failure} retry=${plan.reload} />
    ${plan.loading && html`<p role="status">${t('clear.planning')}</p>`}
    ${gone.size > 0 && html`<p data-testid="gone">${t('clear.done', { count: gone.size })}</p>`}
    ${plan.data && !ids.length && !gone.size && !(only.length && kept.length) && html`<p data-testid="plan">${t('clear.none')}</p>`}
    ${kept.length > 0 && html`<p class="hint" data-testid="kept">${t('clear.kept', { count: kept.length })}</p>`}
    ${ids.length > 0 &&
    html`<p data-testid="plan"><strong>${t('clear.what', { count: ids.length })}</strong> <${Path} of=${scope} /></p>
      <ul class="items">
        ${rows.map(
          (id) =>
            html`<li key=${id} data-plan=${id}>
              <bdi>${prompts.get(id) ? folded(prompts.get(id), 120) : ''}</bdi> <span class="hint"><${Path} of=${id} /></span>
            </li>`,
        )}
      </ul>
      ${pager}`}
  <//>`;
}

/** Those that were chosen, but for what a task goes on with. */
async function onlyThese(workspace_scope, sessions, signal) {
  const chosen = sessions.map((of) => of.session_id);
  // Where there is no plan it is refused when it is to go.
  const plan = await planOf(workspace_scope, signal).catch(() => ({ kept: [] }));
  const isKept = (id) => plan.kept.includes(id);
  return { ids: chosen.filter((id) => !isKept(id)), kept: chosen.filter(isKept) };
}

/** All ids of the plan, page by page; those that are kept have agents that go on with them. */
async function planOf(workspace_scope, signal) {
  const ids = [];
  const kept = [];
  let cursor = null;
  do {
    const asked = { workspace_scope, protected_session_ids: [], limit: 4096, ...(cursor ? { cursor } : {}) };
    const page = await post('/session/prepare-clear-all', asked, { signal });
    ids.push(...page.session_ids);
    kept.push(...page.protected_session_ids);
    cursor = page.next_cursor;
  } while (cursor);
  return { ids, kept };
}
