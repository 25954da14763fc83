// Taking the newest roll back of a directory back, and taking that back: which of it it is, before it is done.

import { LONG, get, post } from '../client.js';
import { t } from '../i18n/index.js';
import { toast } from '../state.js';
import { moment } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { Path, Problem } from '../ui/parts.js';
import { html } from '../vendor/preact.js';

/** By workspace, what its newest undo came to, as far as this page saw what it undid: `{operation, stand}`. */
const seen = new Map();

/** How a directory stands after its newest roll back or undo: `rolled`, `undone`, rolled back `again`, or `unknown`, where an undo
 * was undone that this page has not seen. */
export function standOf(workspace, { rollback, undone }) {
  // One of before the daemon started does not say what it undid.
  if (!undone && rollback?.undo) return 'unknown';
  if (!undone) {
    seen.delete(workspace);
    return 'rolled';
  }
  const known = seen.get(workspace);
  if (known?.operation === undone.operation) return known.stand;
  const flipped = { undone: 'again', again: 'undone' }[known?.stand] ?? 'unknown';
  const stand = undone.undo ? flipped : 'undone';
  seen.set(workspace, { operation: undone.operation, stand });
  return stand;
}

/** Says so; `nameOf` is what people call a checkpoint. */
export function standInWords(stand, { rollback, snapshot, undone, changed }, nameOf) {
  const of = snapshot ?? undone?.snapshot;
  if (changed === null) {
    const which = stand !== 'rolled' ? 'old.undo' : of ? 'old' : 'old.unnamed';
    return t(`line.came.${which}`, { name: of ? nameOf(of) : '', at: moment(rollback.at) });
  }
  const which = stand === 'undone' && of ? 'undone.of' : stand;
  return t(`line.came.${which}`, { name: of ? nameOf(of) : '', changed });
}

/** Asks whether the newest one shall be taken back, which may have been made elsewhere a moment ago. */
export function Undo({ workspace, url, path, nameOf, close, done }) {
  const last = useLoad((signal) => get(`${url}/last-rollback`, { signal, nullable: true }), [workspace]);
  const none = !last.loading && !last.failure && !last.data;
  const stand = last.data ? standOf(workspace, last.data) : 'rolled';
  const work = async () => {
    // What is read here is what is taken back: if another came meanwhile, it is shown instead.
    const meant = { workspace, operation: last.data.rollback.operation };
    const undone = await post('/ckpt/undo', meant, { patience: LONG }).catch((failure) => {
      if (failure.code === 'ConfirmationRequired') last.reload();
      throw failure;
    });
    toast(t(stand === 'undone' ? 'line.redone' : 'line.undone', undone));
    await done();
  };
  return html`<${Confirm} title=${t(`line.undo.title.${stand}`)} act=${t(`line.undo.${stand}`)} of="undo-rollback" off=${!last.data} work=${work} close=${close}>
    ${last.loading && html`<p role="status">${t('line.undo.asking')}</p>`}
    ${none && html`<p data-testid="plan">${t('line.undo.nothing')}</p>`}
    <${Problem} failure=${last.failure} retry=${last.reload} />
    ${last.data &&
    html`<p data-testid="plan">${standInWords(stand, last.data, nameOf)}</p>
      <p>${t(`line.undo.what.${stand}`)}</p>`}
    <p><${Path} of=${path} /></p>
  <//>`;
}
