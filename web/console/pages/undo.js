// Taking the newest roll back of a directory back: which one that is, before it is done.

import { get, post } from '../client.js';
import { t } from '../i18n/index.js';
import { toast } from '../state.js';
import { oneLine } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { Path, Problem } from '../ui/parts.js';
import { html } from '../vendor/preact.js';

/** Says which roll back, or which undo, is the newest. */
export function whichRollback({ snapshot, undone, changed }) {
  if (!undone) return t('line.undo.done.hint', { name: oneLine(snapshot), changed });
  if (!undone.snapshot) return t('line.undo.again.hint', { changed });
  return t('line.undo.of.hint', { name: oneLine(undone.snapshot), changed });
}

/** Asks whether the newest one shall be taken back, which may have been made elsewhere a moment ago. */
export function Undo({ workspace, url, path, close, done }) {
  const last = useLoad((signal) => get(`${url}/last-rollback`, { signal }), [workspace]);
  const none = last.failure?.code === 'SnapshotNotFound';
  const work = async () => {
    toast(t('line.undone', await post('/ckpt/undo', { workspace }, { patience: 600000 })));
    await done();
  };
  const title = t(last.data?.undone ? 'line.undo.again.title' : 'line.undo.title');
  return html`<${Confirm} title=${title} act=${t('line.undo')} of="undo-rollback" off=${!last.data} work=${work} close=${close}>
    ${last.loading && html`<p role="status">${t('line.undo.asking')}</p>`}
    ${none && html`<p data-testid="plan">${t('line.undo.nothing')}</p>`}
    ${!none && html`<${Problem} failure=${last.failure} retry=${last.reload} />`}
    ${last.data &&
    html`<p data-testid="plan">${whichRollback(last.data)}</p>
      <p>${t('line.undo.what')}</p>`}
    <p><${Path} of=${path} /></p>
  <//>`;
}
