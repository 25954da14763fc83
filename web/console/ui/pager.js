// Long lists, a page at a time: only what is shown is drawn.

import { t } from '../i18n/index.js';
import { html, useState } from '../vendor/preact.js';
import { Button } from './parts.js';

/** A page of a list: `{rows, pager}`, where `pager` is what leafs through it, or nothing if one page is all. */
export function usePages(list, size) {
  const [wanted, setPage] = useState(0);
  const last = Math.max(0, Math.ceil(list.length / size) - 1);
  const page = Math.min(wanted, last);
  const from = page * size;
  const rows = list.slice(from, from + size);
  const values = { from: from + 1, to: from + rows.length, count: list.length };
  const pager =
    last > 0 &&
    html`<nav class="pager" aria-label=${t('pager.label')}>
      <${Button} kind="small" off=${page === 0} press=${() => setPage(page - 1)}>${t('pager.previous')}<//>
      <span role="status" class="number">${t('pager.range', values)}</span>
      <${Button} kind="small" off=${page === last} press=${() => setPage(page + 1)}>${t('pager.next')}<//>
    </nav>`;
  return { rows, pager };
}
