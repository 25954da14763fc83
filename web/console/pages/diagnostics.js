// How daemon, core and store are, and what has gone wrong lately.

import { call, get, post } from '../client.js';
import { has, learn, t } from '../i18n/index.js';
import words from '../i18n/words/settings.js';
import { refresh } from '../live.js';
import { isActive, state, toast, useShared } from '../state.js';
import { bytes, duration, oneLine, visible } from '../text.js';
import { Confirm } from '../ui/dialog.js';
import { useAction, useEvery, useLoad } from '../ui/hooks.js';
import { Button, Chip, Facts, Heading, Loading, LongText, Notice, Path, Problem, Time } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

learn(words);

const CORE = { ready: 'good', starting: 'busy', mismatch: 'bad', down: 'bad' };
const LEVELS = { error: 'bad', warn: 'warn' };

export default function DiagnosticsPage() {
  const core = useShared((shared) => JSON.stringify(shared.host?.core));
  const stand = useShared((shared) => shared.tasks.map(({ status }) => status).join(' '));
  const diagnostics = useLoad((signal) => call('getDiagnostics', {}, { signal }), ['diagnostics', core, stand]);
  const store = useLoad((signal) => get('/ckpt/store', { signal }), []);
  const link = useShared((shared) => shared.link);
  const [restarting, setRestarting] = useState(false);
  const reload = () => Promise.all([diagnostics.reload(), store.reload()]);
  useEvery(5000, reload);
  const restart = async () => {
    await call('restartCore', {});
    toast(t('diag.restart.done'));
    await Promise.all([refresh(), reload()]);
  };
  const { data } = diagnostics;
  return html`<section aria-label=${t('diag.title')}>
    <${Heading} actions=${html`<${Button} press=${reload}>${t('do.refresh')}<//>`}>${t('diag.title')}<//>
    <${Problem} failure=${diagnostics.failure} retry=${diagnostics.reload} />
    ${!data && !diagnostics.failure && html`<${Loading} />`}
    ${data &&
    html`<div class="columns">
      <section class="panel" aria-label=${t('diag.host')}>
        <h2>${t('diag.host')}</h2>
        <${Facts}
          of=${[
            [t('diag.version'), html`<span data-testid="version">${oneLine(document.documentElement.dataset.version)}</span>`],
            [t('diag.contract'), oneLine(data.pluginVersion)],
            [t('diag.build'), data.build],
            [t('diag.link'), t(`link.${link}`)],
            [t('diag.agents'), String(data.liveAgents)],
            [t('diag.mains'), String(data.mainSessions)],
            [t('diag.store'), store.data && t('diag.store.of', { size: bytes(store.data.pack_bytes + store.data.index_bytes), packs: store.data.packs, objects: store.data.objects })],
          ]}
        />
        <${Check} />
      </section>
      <${Core} of=${data} restart=${() => setRestarting(true)} />
    </div>
    <${Messages} of=${data.diagnostics} />
    ${data.stderrTail.length > 0 &&
    html`<section class="panel"><h2>${t('diag.stderr')}</h2><${LongText} of=${data.stderrTail.join('\n')} label=${t('diag.stderr')} /></section>`}`}
    ${restarting &&
    html`<${Confirm} title=${t('diag.restart.title')} act=${t('diag.restart')} of="restart" danger work=${restart} close=${() => setRestarting(false)}>
      <p data-testid="plan">${t('diag.restart.what', { count: state.tasks.filter(isActive).length })}</p>
    <//>`}
  </section>`;
}

function Core({ of: { core, coreReport: report, corePath }, restart }) {
  return html`<section class="panel" aria-label=${t('diag.core')}>
    <div class="panel-head">
      <h2>${t('diag.core')}</h2>
      <${Button} kind="small" press=${restart} data-action="restart">${t('diag.restart')}<//>
    </div>
    <${Facts}
      of=${[
        [t('diag.status'), html`<${Chip} tone=${CORE[core.status]}>${t(`diag.status.${core.status}`)}<//>`],
        [t('diag.message'), core.message && visible(core.message)],
        [t('diag.contract'), oneLine(core.version)],
        [t('diag.where'), core.embedded ? t('diag.embedded') : t('diag.process', { pid: core.pid })],
        [t('diag.program'), corePath && html`<${Path} of=${corePath} />`],
        [t('diag.protocol'), `${core.protocol}, ${core.schemaVersion}`],
        [t('diag.starts'), String(core.starts)],
        [t('diag.uptime'), report && duration(report.uptimeMs)],
        [t('diag.queue'), report && t('diag.queue.of', report.queue)],
        [t('diag.tasks'), report && Object.entries(report.counts.tasks).filter(([, count]) => count > 0).map(([status, count]) => `${t(`status.${status}`)}: ${count}`).join(', ')],
        [t('diag.exports'), report && String(report.counts.exports)],
        [t('diag.database'), report && html`<${Path} of=${report.dbPath} /> <span class="hint">${bytes(report.dbSizeBytes)}</span>`],
        [t('diag.log'), report?.logPath && html`<${Path} of=${report.logPath} />`],
      ]}
    />
  </section>`;
}

function Messages({ of }) {
  return html`<section class="panel" aria-label=${t('diag.messages')}>
    <h2>${t('diag.messages')}</h2>
    ${!of.length && html`<p class="hint">${t('diag.messages.none')}</p>`}
    <ul class="items">
      ${[...of].reverse().map(
        ({ at, level, message }, key) =>
          html`<li key=${key}><${Chip} tone=${LEVELS[level] ?? 'quiet'}>${has(`diag.level.${level}`) ? t(`diag.level.${level}`) : oneLine(level)}<//> <span class="hint"><${Time} at=${at} /></span> ${visible(message)}</li>`,
      )}
    </ul>
  </section>`;
}

/** Verifies the checkpoints. */
function Check() {
  const [found, setFound] = useState(null);
  const check = useAction(async () => setFound(await post('/ckpt/check', { read_data: true }, { patience: 3600000 })));
  return html`<p><${Button} kind="small" busy=${check.busy} press=${check.run} data-action="check">${t('diag.check')}<//> <span class="hint">${t('diag.check.hint')}</span></p>
    <${Problem} failure=${check.failure} />
    ${found &&
    !found.damage.length &&
    html`<${Notice} tone="good" role="status"><p>${t('diag.check.sound', { ...found, size: bytes(found.bytes_read) })}</p><//>`}
    ${found?.damage.length > 0 &&
    html`<${Notice} tone="bad" role="alert">
      <div>
        <p>${t('diag.check.damage', { count: found.damage.length })}</p>
        <ul class="items">${found.damage.slice(0, 100).map((line) => html`<li key=${line}>${visible(line)}</li>`)}</ul>
      </div>
    <//>`}`;
}
