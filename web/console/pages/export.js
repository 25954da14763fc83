// Exporting files of a task: where to and how, then a second look at what will happen, then what came of it.

import { LONG, call } from '../client.js';
import { t } from '../i18n/index.js';
import { refresh } from '../live.js';
import { link } from '../router.js';
import { change, isOpen, state, useShared } from '../state.js';
import { bytes } from '../text.js';
import { DirectoryInput } from '../ui/directory.js';
import { useAction, useDraft } from '../ui/hooks.js';
import { Button, Check, Field, Notice, Path, Problem, Radios } from '../ui/parts.js';
import { html, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { howMany } from './counts.js';
import { ExportCard } from './exports.js';

/** What has the focus at each step. */
const FIRST = {
  closed: '[data-action="open-export"]',
  form: 'input[name=target]',
  confirm: 'h3',
  done: '.export-record',
};

/** `chosen` are entries of the list, `extent` how many files and bytes they are. */
export function Export({ task, chosen, extent, truncated, done }) {
  const config = useShared((shared) => shared.host?.config);
  const [step, setStep] = useState('closed');
  const [record, setRecord] = useState(null);
  const place = useRef();
  const opened = useRef(step);
  useLayoutEffect(() => {
    // What was pressed is gone. What came instead is looked at, also by those who cannot see it.
    if (opened.current === step) return;
    opened.current = step;
    const next = place.current?.querySelector(FIRST[step]);
    next?.focus({ preventScroll: true });
    (step === 'closed' ? next : place.current)?.scrollIntoView({ block: 'nearest' });
  }, [step]);
  if (!config) return null;
  if (isOpen(task)) return html`<${Notice} data-testid="export-running"><p>${t('export.running')}</p><//>`;
  if (!config.enableExport) {
    return html`<${Notice} tone="warn" data-testid="export-off">
      <p>${t('export.disabled')}</p>
      <a class="button" href=${link('settings')}>${t('export.disabled.go')}</a>
    <//>`;
  }
  const exported = async (made) => {
    setRecord(made);
    setStep('done');
    await done();
  };
  return html`<section class=${`panel export ${step}`} aria-label=${t('export.title')} ref=${place}>
    ${step !== 'done' &&
    html`<div class="panel-head">
      <p role="status">
        ${chosen.length ? t('files.selected', { what: howMany(extent) }) : t('files.selected.none')}
      </p>
      ${step === 'closed' &&
      html`<${Button} kind="primary" off=${!chosen.length && t('export.noEntries')} press=${() => setStep('form')} data-action="open-export">${t('export.open')}<//>`}
    </div>`}
    ${(step === 'form' || step === 'confirm') &&
    html`<${Form} ...${{ task, chosen, extent, truncated, config, step, setStep, exported }} />`}
    ${step === 'done' &&
    html`<${ExportCard} record=${record} changed=${setRecord} open />
      <p><${Button} press=${() => setStep('closed')}>${t('export.again')}<//></p>`}
  </section>`;
}

function Form({ task, chosen, extent, truncated, config, step, setStep, exported }) {
  const [target, setTarget] = useDraft(`export.${task.id}`, state.host.rememberedTarget || '');
  const [mode, setMode] = useState('copy');
  const [conflict, setConflict] = useState('overwrite');
  const [remember, setRemember] = useState(false);
  const progress = useShared((shared) => shared.progress[task.id]);
  const targetDir = target.trim();
  const send = useAction(async () => {
    const entries = chosen.map((entry) => entry.relPath);
    const asked = { taskId: task.id, entries, targetDir, mode, conflict, ...(config.allowRememberChoice ? { remember } : {}) };
    // How far another one came says nothing of this one.
    forgetProgress(task.id);
    let record;
    try {
      ({ export: record } = await call('exportEntries', asked, { patience: LONG }));
    } finally {
      forgetProgress(task.id);
    }
    refresh();
    await exported(record);
  });
  const off = (!chosen.length && t('export.noEntries')) || (!targetDir.startsWith('/') && t('export.noTarget'));
  const further = (event) => {
    event.preventDefault();
    if (!off) setStep('confirm');
  };
  const known = [...new Set(state.host.exports.map((record) => record.targetDir))].slice(0, 20);
  const back = () => {
    // Why it failed was of what is changed now.
    send.clear();
    setStep('form');
  };
  if (step === 'confirm') {
    return html`<${Second} ...${{ extent, truncated, mode, conflict, targetDir, send, progress, off, back }} />`;
  }
  const choices = (kinds) => kinds.map((of) => [of, t(`export.${of}`), t(`export.${of}.hint`)]);
  return html`<form onSubmit=${further}>
    <${Field} label=${t('export.target')} hint=${t('export.target.hint')}>
      ${({ id, describedby }) =>
        html`<${DirectoryInput} id=${id} name="target" fresh value=${target} change=${setTarget} known=${known} aria-describedby=${describedby} />`}
    <//>
    <div class="columns">
      <${Radios} legend=${t('export.mode')} name="mode" choices=${choices(['copy', 'move'])} value=${mode} change=${setMode} />
      <${Radios} legend=${t('export.conflict')} name="conflict" choices=${choices(['overwrite', 'skip', 'rename'])} value=${conflict} change=${setConflict} />
    </div>
    ${config.allowRememberChoice &&
    html`<${Check} name="remember" label=${t('export.remember')} hint=${t('export.remember.hint')} checked=${remember} change=${setRemember} />`}
    <div class="actions">
      <${Button} kind="primary" off=${off} data-action="export">${t('export.continue')}<//>
      <${Button} press=${() => setStep('closed')}>${t('do.cancel')}<//>
      ${off && html`<span class="hint">${off}</span>`}
    </div>
  </form>`;
}

function forgetProgress(taskId) {
  const { [taskId]: _, ...progress } = state.progress;
  change({ progress });
}

/** What will happen, in full, before it does. */
function Second({ extent, truncated, mode, conflict, targetDir, send, progress, off, back }) {
  const size = bytes(extent.size);
  return html`<div class="second" data-confirm="export" role="group" aria-labelledby="second-title">
    <h3 id="second-title" tabindex="-1">${t('export.confirm')}</h3>
    <ul class="plan" data-testid="plan">
      <li><strong>${t(`export.what.${mode}`, { count: extent.files, size })}</strong> <${Path} of=${targetDir} /></li>
      <li>${t(`export.what.${conflict}`)}</li>
      ${mode === 'move' && html`<li>${t('export.what.noUndo')}</li>`}
      ${truncated && html`<li>${t('export.what.atLeast')}</li>`}
    </ul>
    <${Problem} failure=${send.failure} />
    ${send.busy &&
    progress &&
    html`<p role="status"><progress max=${progress.total} value=${progress.done}></progress> ${t('export.progress', progress)}</p>`}
    <div class="actions">
      <${Button} kind="primary" off=${off} busy=${send.busy} press=${send.run} data-action="confirm">${t('export.now')}<//>
      <${Button} off=${send.busy} press=${back} data-action="dismiss">${t('export.back')}<//>
    </div>
  </div>`;
}
