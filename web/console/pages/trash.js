// What was removed of a directory and is still kept.

import { LONG, get, post } from '../client.js';
import { t } from '../i18n/index.js';
import { toast } from '../state.js';
import { folded, oneLine } from '../text.js';
import { useAction, useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Chip, Problem, Time } from '../ui/parts.js';
import { html } from '../vendor/preact.js';

const PAGE = 20;

/** What the daemon calls the tree that was there before a roll back. */
const BEFORE = /^the tree before (?:the rollback to ([\s\S]+)|(an undo)|a rollback)$/;

/** The same in the words of this page; empty if it says something else. */
function treeOf(message) {
  const found = BEFORE.exec(message ?? '');
  if (!found) return '';
  const [, to, undo] = found;
  return to ? t('trash.tree.to', { name: oneLine(to) }) : t(undo ? 'trash.tree.undo' : 'trash.tree');
}

export function Trash({ workspace, path, changed }) {
  const trash = useLoad((signal) => get('/ckpt/trash', { signal }), [workspace]);
  const items = (trash.data?.items ?? []).filter((item) => item.path === path);
  const { rows, pager } = usePages(items, PAGE);
  const restore = useAction(async (item) => {
    const id = item.snapshot ?? `trash-${item.item}`;
    const as = (name) => post('/ckpt/trash/restore', { workspace, item: item.item, id: name }, { patience: LONG });
    const { snapshot } = await as(id).catch((failure) => {
      if (failure.code !== 'SnapshotAlreadyExists') throw failure;
      // Another one has its name by now.
      return as(`${id}-trash-${item.item}`);
    });
    toast(t('trash.restored', { name: oneLine(snapshot) }));
    await Promise.all([trash.reload(), changed()]);
  });
  return html`<details class="panel" data-testid="trash" onToggle=${(event) => event.currentTarget.open && trash.reload()}>
    <summary>${t('trash.title')}${items.length > 0 && ` (${items.length})`}</summary>
    <p class="hint">${t('trash.hint')}</p>
    <${Problem} failure=${trash.failure ?? restore.failure} retry=${trash.failure ? trash.reload : null} />
    ${trash.data && !items.length && html`<p>${t('trash.none')}</p>`}
    <ul class="rows">
      ${rows.map((item) => {
        const tree = item.snapshot ? '' : treeOf(item.message);
        const name = item.snapshot ? oneLine(item.snapshot) : tree || t('trash.tree');
        return html`<li key=${item.item} class="row" data-trashed=${item.item}>
          <div class="row-main">
            <p><strong><bdi>${name}</bdi></strong> ${!tree && html`<bdi>${folded(item.message, 160)}</bdi>`} ${item.missing && html`<${Chip} tone="bad">${t('line.missing')}<//>`}</p>
            <p class="hint"><${Time} at=${item.created_at} /> · ${t('trash.until')} <${Time} at=${item.until} /></p>
          </div>
          <${Button} kind="small" off=${item.missing && t('line.missing')} busy=${restore.busy} press=${() => restore.run(item)} data-action="restore" aria-label=${`${t('trash.restore')}: ${name}`}>${t('trash.restore')}<//>
        </li>`;
      })}
    </ul>
    ${pager}
  </details>`;
}
