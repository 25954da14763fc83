// Choosing a directory of the machine the daemon runs on: type its path, or walk to it.

import { post } from '../client.js';
import { t } from '../i18n/index.js';
import { oneLine } from '../text.js';
import { html, useEffect, useState } from '../vendor/preact.js';
import { Dialog } from './dialog.js';
import { useLoad } from './hooks.js';
import { usePages } from './pager.js';
import { Button, Field, Loading, Notice, Path, Problem } from './parts.js';

const PAGE = 100;

/** The input for a path with a button beside it that opens the dialog. `known` are paths to offer; `fresh` says that it may
 * be one that is yet to be made. */
export function DirectoryInput({ value, change, known = [], fresh = false, id, ...rest }) {
  const [choosing, setChoosing] = useState(false);
  const chosen = (path) => {
    change(path);
    setChoosing(false);
  };
  return html`<div class="with-button">
    <input
      id=${id}
      class="path"
      list=${`${id}-known`}
      spellcheck="false"
      autocapitalize="off"
      autocomplete="off"
      value=${value}
      onInput=${(event) => change(event.currentTarget.value)}
      ...${rest}
    />
    <datalist id=${`${id}-known`}>${known.map((path) => html`<option key=${path} value=${path}></option>`)}</datalist>
    <${Button} press=${() => setChoosing(true)} data-action="choose-directory">${t('do.choose')}<//>
    ${choosing && html`<${DirectoryDialog} from=${value} fresh=${fresh} choose=${chosen} close=${() => setChoosing(false)} />`}
  </div>`;
}

const above = (path) => path.replace(/\/+[^/]*\/*$/, '') || '/';

function DirectoryDialog({ from, fresh, choose, close }) {
  const [name, setName] = useState('');
  const [path, setPath] = useState(from.startsWith('/') ? from : '');
  const listed = useLoad((signal) => post('/directories', path ? { path } : {}, { signal }), [path]);
  useEffect(() => {
    // What was typed may not be there yet; what it is to be made in may be.
    if (listed.failure?.code === 'NotFound' && path.length > 1) setPath(above(path));
  }, [listed.failure]);
  const { rows, pager } = usePages(listed.data?.directories ?? [], PAGE);
  const here = listed.data?.path ?? path;
  // From one that may not be read there is a way back, too.
  const parent = listed.data ? listed.data.parent : listed.failure && path.length > 1 && above(path);
  const below = (of) => (here === '/' ? `/${of}` : `${here}/${of}`);
  const into = (of) => {
    setName('');
    setPath(below(of));
  };
  const made = name.trim();
  const bad = (made.includes('/') || made === '.' || made === '..') && t('directory.badName');
  const off = !listed.data || Boolean(listed.failure) || bad;
  return html`<${Dialog} title=${t('directory.title')} close=${close} data-testid="directories">
    <p><span class="term">${t('directory.path')}</span> <${Path} of=${here} /></p>
    ${listed.failure &&
    html`<${Problem} failure=${listed.failure} retry=${() => (path ? setPath('') : listed.reload())} />`}
    ${parent &&
    html`<p><${Button} kind="small" press=${() => setPath(parent)} data-action="up">↑ ${t('directory.up')}<//></p>`}
    ${listed.loading && html`<${Loading} />`}
    ${listed.data && !rows.length && html`<p class="hint">${t('directory.empty')}</p>`}
    <ul class="directories">
      ${rows.map(
        (of) =>
          html`<li key=${of}><button type="button" class="link" onClick=${() => into(of)}><bdi class="path">${oneLine(of)}</bdi></button></li>`,
      )}
    </ul>
    ${pager}
    ${listed.data?.truncated && html`<${Notice}><p>${t('directory.truncated')}</p><//>`}
    ${fresh &&
    html`<${Field} label=${t('directory.fresh')} hint=${bad || t('directory.fresh.hint')}>
      ${({ id, describedby }) =>
        html`<input id=${id} name="fresh" class="path" spellcheck="false" autocapitalize="off" autocomplete="off" aria-describedby=${describedby} value=${name} onInput=${(event) => setName(event.currentTarget.value)} />`}
    <//>`}
    <div class="actions end">
      <${Button} press=${close} data-action="dismiss">${t('do.cancel')}<//>
      <${Button} kind="primary" off=${off} press=${() => choose(made ? below(made) : here)} data-action="choose">${t(made ? 'directory.use.fresh' : 'directory.use')}<//>
    </div>
  <//>`;
}
