// What is known of a task beside what it said: chips, directory, sandbox, tools, notes.

import { call } from '../client.js';
import { has, t } from '../i18n/index.js';
import { useShared } from '../state.js';
import { duration, oneLine, visible } from '../text.js';
import { useLoad } from '../ui/hooks.js';
import { Chip, CopyButton, Facts, LongText, Path, StatusChip, Time } from '../ui/parts.js';
import { html } from '../vendor/preact.js';
import { rewindOf } from './history.js';
import { noteOf } from './notes.js';
import { Took } from './tasks.js';

const PROBES = {
  denied: ['good', 'chip.denied'],
  'skipped-no-parent': ['warn', 'chip.skipped'],
  allowed: ['bad', 'chip.allowed'],
  ambiguous: ['warn', 'chip.ambiguous'],
  failed: ['bad', 'chip.failed'],
};

/** How it stands, in a few words. */
export function TaskChips({ task }) {
  const [tone, probe] = PROBES[task.sandboxProbe] ?? (task.fsDenied ? PROBES.denied : []);
  const mode = oneLine(task.sandboxMode);
  // Those of the predecessor were confined by another.
  const holds = probe === 'chip.denied' && !task.legacy;
  const inWords = `mode.${mode}`;
  return html`<p class="chips" data-testid="chips">
    <${StatusChip} status=${task.status} />
    ${task.queuedPosition > 0 && html`<${Chip}>${t('chip.queued', { place: task.queuedPosition })}<//>`}
    ${task.sandboxMode &&
    html`<${Chip} title=${`${t('chip.mode', { mode })} ${has(`${inWords}.hint`) ? t(`${inWords}.hint`) : ''}`} data-mode=${task.sandboxMode}>${has(inWords) ? t(inWords) : t('chip.mode', { mode })}<//>`}
    ${probe && html`<${Chip} tone=${tone} title=${`${t(`sandbox.${task.sandboxProbe || 'denied'}`)}${holds ? ` ${t('sandbox.reach')}` : ''}`} data-probe=${task.sandboxProbe || 'denied'}>${t(probe)}<//>`}
    ${task.legacy && html`<${Chip} tone="warn">${t('chip.legacy')}<//>`}
  </p>`;
}

/** The rest, folded but for the directory. */
export function TaskFacts({ task, description }) {
  const notes = useShared((state) => state.transcripts[task.id]);
  const legacy = useLoad(
    async (signal) => (task.legacy ? (await call('getLegacyTask', { taskId: task.id }, { signal })).notes : null),
    [task.id],
  );
  const said = (notes?.entries ?? []).filter((entry) => entry.kind === 'note' && !rewindOf(entry.text)).slice(0, 5);
  const probe = `sandbox.${task.sandboxProbe || 'none'}`;
  const { provider, model } = task.model;
  return html`<div class="about">
    <p class="place"><span class="term">${t('fact.directory')}</span> <${Path} of=${task.taskDir} data-testid="task-dir" /> <${CopyButton} text=${task.taskDir} /></p>
    <details data-testid="about">
      <summary>${t('fact.about')}</summary>
      <${Facts}
        of=${[
          [t('fact.description'), html`<${LongText} of=${description} kind="plain" label=${t('fact.description')} />`],
          [t('fact.sandbox'), html`<span data-testid="sandbox-note">${t(has(probe) ? probe : 'sandbox.none')}</span>${task.sandboxProbe === 'denied' && !task.legacy && html` <span class="hint">${t('sandbox.reach')}</span>`}`],
          [t('fact.notes'), said.length > 0 && html`<ul class="notes" data-testid="notes">${said.map((entry) => html`<li key=${entry.seq}>${noteOf(entry.text) ? visible(entry.text) : t('note.noMain')}</li>`)}</ul>`],
          [t('fact.context'), legacy.data?.contextNote && html`<span data-testid="context-note">${visible(legacy.data.contextNote)}</span>`],
          [t('fact.setup'), legacy.data?.setupNote && html`<span data-testid="setup-note">${visible(legacy.data.setupNote)}</span>`],
          [t('fact.allowed'), html`<${Tools} of=${task.allow} testid="allowed" />`],
          [t('fact.available'), html`<${Available} task=${task} />`],
          [t('fact.preset'), oneLine(task.presetId)],
          [t('fact.model'), oneLine([provider, model].filter(Boolean).join(' / '))],
          [t('fact.created'), html`<${Time} at=${task.createdAt} />`],
          [t('fact.took'), task.startedAt > 0 && html`<${Took} task=${task} />`],
          [t('fact.turns'), task.turns],
          [t('fact.timeout'), duration(task.timeoutMs)],
          [t('fact.main'), task.mainSessionId ? html`<${Path} of=${task.mainSessionId} />` : t('fact.main.none')],
          [t('fact.id'), html`<${Path} of=${task.id} />`],
        ]}
      />
    </details>
  </div>`;
}

const Tools = ({ of, testid }) =>
  html`<span class="tools-list" data-testid=${testid}>${of.map((tool) => html`<code key=${tool}>${oneLine(tool)}</code>`)}</span>`;

/** What tools there really are, and how that differs from what is allowed. */
function Available({ task: { allow, availableTools } }) {
  if (!availableTools.length) return html`<span class="hint" data-testid="available">${t('fact.available.none')}</span>`;
  const missing = allow.filter((tool) => !availableTools.includes(tool));
  const refused = availableTools.filter((tool) => !allow.includes(tool));
  const list = (tools) => oneLine(tools.join(', '));
  return html`<div>
    <${Tools} of=${availableTools} testid="available" />
    ${missing.length > 0 && html`<p class="hint" data-testid="missing">${t('fact.missing', { tools: list(missing) })}</p>`}
    ${refused.length > 0 && html`<p class="hint" data-testid="refused">${t('fact.refused', { tools: list(refused) })}</p>`}
  </div>`;
}
