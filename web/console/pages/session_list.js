// The conversations of a directory, a page at a time, with what was said in them.

import { post } from '../client.js';
import { t } from '../i18n/index.js';
import { folded, oneLine, visible } from '../text.js';
import { useAction, useLoad } from '../ui/hooks.js';
import { Button, Check, Chip, Empty, Loading, Path, Problem, Time } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';
import { Clear } from './session_clear.js';

const PAGE = 50;
const MESSAGES = 50;

export function SessionList({ scope, back }) {
  const [all, setAll] = useState(false);
  const [previewed, setPreviewed] = useState('');
  const [clearing, setClearing] = useState(null);
  const page = (cursor, signal) => {
    const asked = { workspace_scope: scope, limit: PAGE, all_workspaces: all, ...(cursor ? { cursor } : {}) };
    return post('/session/list', asked, { signal });
  };
  const list = useLoad((signal) => page(null, signal), [`${scope}/${all}`]);
  const { reload } = list;
  // Further pages belong to the first one that they follow; another first page has none yet.
  const [added, setAdded] = useState({ to: null });
  const further = list.data && added.to === list.data ? added : { sessions: [], cursor: list.data?.next_cursor };
  const rows = [...(list.data?.sessions ?? []), ...further.sessions];
  const more = useAction(async () => {
    const { sessions, next_cursor: cursor } = await page(further.cursor);
    setAdded({ to: list.data, sessions: [...further.sessions, ...sessions], cursor });
  });
  return html`<section aria-label=${oneLine(scope)} data-scope=${scope}>
    <p class="crumbs"><button type="button" class="link" onClick=${back}>${t('sessions.back')}</button></p>
    <div class="heading">
      <h2 tabindex="-1"><${Path} of=${scope} /></h2>
      <div class="actions">
        <${Button} press=${reload} busy=${list.loading}>${t('do.refresh')}<//>
        <${Button} kind="danger" off=${!rows.length && t('clear.none')} press=${() => setClearing([])} data-action="clear">${t('sessions.clear')}<//>
      </div>
    </div>
    <${Check} name="all-workspaces" label=${t('sessions.all')} checked=${all} change=${setAll} />
    <${Problem} failure=${list.failure} retry=${reload} />
    ${!list.data && !list.failure && html`<${Loading} />`}
    ${list.data && !rows.length && !list.failure && html`<${Empty} title=${t('sessions.none')}><p>${t('sessions.none.hint')}</p><//>`}
    <ul class="rows">
      ${rows.map(
        (of) =>
          html`<${Row}
            key=${keyOf(of)}
            of=${of}
            other=${of.workspace_scope !== scope}
            lost=${all && (!of.workspace_scope || of.health === 'scope_mismatch') && t('sessions.noScope')}
            open=${previewed === keyOf(of)}
            toggle=${() => setPreviewed(previewed === keyOf(of) ? '' : keyOf(of))}
            remove=${() => setClearing([of])}
          />`,
      )}
    </ul>
    <${Problem} failure=${more.failure} />
    ${further.cursor && html`<p><${Button} busy=${more.busy} press=${more.run}>${t('sessions.more')}<//></p>`}
    ${clearing &&
    html`<${Clear} scope=${all && clearing[0] ? clearing[0].workspace_scope : scope} only=${clearing} known=${rows} close=${() => setClearing(null)} done=${reload} />`}
  </section>`;
}

// Where all are listed nobody says where a file lies: one that is damaged does not say it itself, and one that says another
// directory than its own would name somebody else's conversation.

/** Two directories may have a conversation of the same id. */
const keyOf = (of) => `${of.workspace_scope}/${of.session_id}`;

const HEALTH = { ready: 'good', corrupt: 'bad', incompatible: 'warn', scope_mismatch: 'warn' };

function Row({ of, other, lost, open, toggle, remove }) {
  const title = of.first_prompt ? folded(of.first_prompt, 160) : t('sessions.noPrompt');
  return html`<li class="row" data-session=${of.session_id} data-health=${of.health}>
    <div class="row-main">
      <p><${Chip} tone=${HEALTH[of.health]}>${t(`health.${of.health}`)}<//> <strong><bdi>${title}</bdi></strong></p>
      <p class="hint">
        ${t('sessions.updated')} <${Time} at=${of.updated_at_ms} /> · ${t('sessions.messages', { count: of.message_count })}
        ${of.model && html` · ${oneLine(of.model)}`} · <${Path} of=${of.session_id} />
        ${other && of.workspace_scope && html` · <${Path} of=${of.workspace_scope} />`}
        ${lost && html` · ${lost}`}
      </p>
    </div>
    <div class="actions">
      <${Button} kind="small" off=${of.health === 'ready' ? false : t(`health.${of.health}`)} press=${toggle} aria-expanded=${open ? 'true' : 'false'} data-action="preview" aria-label=${`${t(open ? 'sessions.hide' : 'sessions.preview')}: ${title}`}>${t(open ? 'sessions.hide' : 'sessions.preview')}<//>
      <${Button} kind="small quiet" off=${lost} press=${remove} data-action="remove" aria-label=${`${t('sessions.remove')} ${title}`}>${t('sessions.remove')}<//>
    </div>
    ${open && html`<${Preview} of=${of} />`}
  </li>`;
}

function Preview({ of: { workspace_scope, session_id } }) {
  const [page, setPage] = useState(0);
  const asked = { workspace_scope, session_id, offset: page * MESSAGES, limit: MESSAGES };
  const preview = useLoad((signal) => post('/session/preview', asked, { signal }), [session_id, page]);
  if (preview.failure) return html`<${Problem} failure=${preview.failure} retry=${preview.reload} />`;
  if (!preview.data) return html`<${Loading} />`;
  const { messages, total, offset } = preview.data;
  return html`<div class="preview" data-preview=${session_id}>
    ${!messages.length && html`<p class="hint">${t('message.none')}</p>`}
    <ul class="log flat">
      ${messages.map(
        ({ role, text, truncated, tools }, at) =>
          html`<li key=${offset + at} class=${`entry ${role === 'user' ? 'user' : 'assistant'}`} data-role=${role}>
            <p class="who">${roleOf(role)}</p>
            ${text && html`<div class="said" dir="auto">${visible(text)}</div>`}
            ${truncated && html`<${Chip} tone="warn">${t('text.cut')}<//>`}
            ${tools?.length > 0 && html`<p class="hint">${t('message.tools', { tools: oneLine(tools.join(', ')) })}</p>`}
          </li>`,
      )}
    </ul>
    ${(total > MESSAGES || page > 0) &&
    html`<nav class="pager" aria-label=${t('pager.label')}>
      <${Button} kind="small" off=${page === 0} press=${() => setPage(page - 1)}>${t('pager.previous')}<//>
      <span role="status">${t('pager.range', { from: offset + 1, to: offset + messages.length, count: total })}</span>
      <${Button} kind="small" off=${offset + messages.length >= total} press=${() => setPage(page + 1)}>${t('pager.next')}<//>
    </nav>`}
  </div>`;
}

const ROLES = ['user', 'assistant', 'tool', 'system'];
const roleOf = (role) => (ROLES.includes(role) ? t(`message.${role}`) : oneLine(role));
