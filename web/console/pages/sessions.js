// Conversations on disk: which directories have some, those of one, and removing them.

import { post } from '../client.js';
import { learn, t } from '../i18n/index.js';
import words from '../i18n/words/sessions.js';
import { oneLine } from '../text.js';
import { DirectoryInput } from '../ui/directory.js';
import { useDraft, useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Empty, Field, Heading, Loading, Path, Problem, Time } from '../ui/parts.js';
import { html } from '../vendor/preact.js';
import { SessionList } from './session_list.js';

learn(words);

const PAGE = 30;

export default function SessionsPage() {
  const [path, setPath] = useDraft('sessions.path', '');
  const [scope, setScope] = useDraft('sessions.scope', '');
  const scopes = useLoad((signal) => post('/session/scopes', {}, { signal }), []);
  const list = scopes.data?.scopes ?? [];
  const { rows, pager } = usePages(list, PAGE);
  const choose = (chosen) => {
    setScope(chosen);
    setPath(chosen);
  };
  const submit = (event) => {
    event.preventDefault();
    if (path.trim().startsWith('/')) choose(path.trim());
  };
  const back = () => {
    choose('');
    scopes.reload();
  };
  return html`<section aria-label=${t('sessions.title')}>
    <${Heading}>${t('sessions.title')}<//>
    <p class="hint">${t('sessions.intro')}</p>
    <form class="panel" onSubmit=${submit} aria-label=${t('sessions.scope')}>
      <${Field} label=${t('sessions.scope')} hint=${t('sessions.scope.hint')}>
        ${({ id, describedby }) =>
          html`<${DirectoryInput} id=${id} name="scope" value=${path} change=${setPath} known=${list.map((of) => of.workspace_scope)} aria-describedby=${describedby} />`}
      <//>
      <${Button} off=${!path.trim().startsWith('/') && t('directory.absolute')} data-action="scope">${t('sessions.scope.act')}<//>
    </form>
    ${scope
      ? html`<${SessionList} key=${scope} scope=${scope} back=${back} />`
      : html`<h2>${t('sessions.scopes')}</h2>
          <${Problem} failure=${scopes.failure} retry=${scopes.reload} />
          ${!scopes.data && !scopes.failure && html`<${Loading} />`}
          ${scopes.data &&
          !list.length &&
          html`<${Empty} title=${t('sessions.scopes.none')}><p>${t('sessions.scopes.none.hint')}</p><//>`}
          <ul class="rows">
            ${rows.map(
              (of) =>
                html`<li key=${of.workspace_scope} class="row" data-scope=${of.workspace_scope}>
                  <div class="row-main">
                    <p>${of.workspace_scope ? html`<${Path} of=${of.workspace_scope} />` : t('sessions.scope.unknown')}</p>
                    <p class="hint">${t('sessions.count', { count: of.sessions })} · ${t('sessions.updated')} <${Time} at=${of.updated_at_ms} /></p>
                  </div>
                  <${Button} kind="small" off=${!of.workspace_scope && t('sessions.scope.unknown')} press=${() => choose(of.workspace_scope)} data-action="view" aria-label=${`${t('do.view')}: ${oneLine(of.workspace_scope)}`}>${t('do.view')}<//>
                </li>`,
            )}
          </ul>
          ${pager}
          ${scopes.data?.truncated && html`<p class="hint">${t('sessions.scopes.truncated')}</p>`}`}
  </section>`;
}
