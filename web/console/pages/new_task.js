// The form for a new task.

import { call } from '../client.js';
import { t } from '../i18n/index.js';
import { refresh } from '../live.js';
import { go, link } from '../router.js';
import { answered, toast, useShared } from '../state.js';
import { oneLine } from '../text.js';
import { clearIf, useAction, useDraft, useHere } from '../ui/hooks.js';
import { Button, Field, Heading, Loading, Problem } from '../ui/parts.js';
import { html } from '../vendor/preact.js';
import { firstUsable, inOrder } from './presets.js';

export default function NewTaskPage() {
  const host = useShared((state) => state.host);
  const main = useShared((state) => state.main);
  const [description, setDescription] = useDraft('new.description', '');
  const [label, setLabel] = useDraft('new.label', '');
  const [subdir, setSubdir] = useDraft('new.subdir', '');
  const [presetId, setPresetId] = useDraft('new.preset', '');
  const here = useHere();
  const start = useAction(async () => {
    const args = { mainSessionId: main, description, subdir: subdir.trim() };
    if (label.trim()) args.label = label.trim();
    if (presetId || !host.config?.presetId) args.presetId = presetId || firstUsable(host.presetChoices);
    const { taskId, task } = await answered(call('startTask', args));
    toast(task.status === 'queued' ? t('new.queued', { place: task.queuedPosition }) : t('new.started'));
    setDescription(clearIf(description));
    setLabel(clearIf(label));
    // The next task goes elsewhere, unless somebody says so again.
    setSubdir(clearIf(subdir));
    if (here()) go('tasks', taskId);
    // The sandbox root may be there only now.
    refresh();
  });
  if (!host) return html`<${Heading}>${t('new.title')}<//><${Loading} />`;

  const presets = inOrder(host.presetChoices);
  const usual = host.config?.presetId ?? '';
  const chosen = presetId || usual || firstUsable(presets);
  const preset = presets.find((of) => of.id === chosen);
  const lacking = preset?.lacks ?? [];
  const unusable =
    (preset?.broken && t('new.broken', { name: oneLine(preset.name), why: oneLine(preset.why ?? '') })) ||
    (lacking.length > 0 && t('new.lacking', { name: oneLine(preset.name), tools: oneLine(lacking.join(', ')) }));
  const off =
    (host.core.code && t('new.noCore')) ||
    (!host.sandbox.set && t('new.noRoot')) ||
    (!chosen && t('new.noPreset')) ||
    unusable ||
    (!description.trim() && t('new.noDescription'));
  const submit = (event) => {
    event.preventDefault();
    if (!off) start.run();
  };
  const typed = (set) => (event) => set(event.currentTarget.value);
  const nameOf = (id) => oneLine(presets.find((preset) => preset.id === id)?.name ?? id);
  return html`<section aria-label=${t('new.title')} class="narrow">
    <${Heading}>${t('new.title')}<//>
    <form onSubmit=${submit}>
      <${Field} label=${t('new.description')} hint=${t(chosen === 'shell' ? 'new.description.shell' : 'new.description.hint')}>
        ${({ id, describedby }) =>
          html`<textarea id=${id} name="description" aria-describedby=${describedby} rows="8" required value=${description} onInput=${typed(setDescription)}></textarea>`}
      <//>
      <${Field} label=${t('new.preset')} hint=${html`${t('new.preset.hint')} <a href=${link('settings', 'presets')}>${t('new.preset.how')}</a>`}>
        ${({ id, describedby }) =>
          html`<select id=${id} name="preset" aria-describedby=${describedby} value=${usual ? presetId : chosen} onChange=${typed(setPresetId)}>
            ${usual && html`<option value="">${t('new.preset.default', { name: nameOf(usual) })}</option>`}
            ${presets.map(
              ({ id: of, name, broken }) =>
                html`<option key=${of} value=${of} disabled=${broken} selected=${of === (usual ? presetId : chosen)}>${broken ? t('new.preset.broken', { name: oneLine(name) }) : oneLine(name)}</option>`,
            )}
          </select>`}
      <//>
      <div class="columns">
        <${Field} label=${t('new.label')} hint=${t('new.label.hint')}>
          ${({ id, describedby }) =>
            html`<input id=${id} name="label" aria-describedby=${describedby} maxlength="120" value=${label} onInput=${typed(setLabel)} />`}
        <//>
        <${Field} label=${t('new.subdir')} hint=${t('new.subdir.hint')}>
          ${({ id, describedby }) =>
            html`<input id=${id} name="subdir" class="path" aria-describedby=${describedby} spellcheck="false" autocapitalize="off" value=${subdir} onInput=${typed(setSubdir)} />`}
        <//>
      </div>
      <${Problem} failure=${start.failure} />
      <div class="actions">
        <${Button} kind="primary" off=${off} busy=${start.busy} aria-describedby="why-not" data-action="start">${t('new.start')}<//>
        <a class="button quiet" href=${link('tasks')}>${t('do.cancel')}</a>
        <span class="hint" id="why-not" role="status">
          ${off || ''}${' '}
          ${(!host.sandbox.set || off === unusable) && off && html`<a href=${link('settings')}>${t('new.settings')}</a>`}
        </span>
      </div>
    </form>
  </section>`;
}
