// A task: how it stands, its conversation, turns, files, and what can be done with them.

import { call } from '../client.js';
import { learn, t } from '../i18n/index.js';
import words from '../i18n/words/task.js';
import { go, link } from '../router.js';
import { answered, isActive, isOpen, state, taskOf, useShared } from '../state.js';
import { folded } from '../text.js';
import { watch } from '../transcript.js';
import { useAction, useLoad } from '../ui/hooks.js';
import { Button, Empty, Loading, Notice, Problem } from '../ui/parts.js';
import { html, useEffect, useState } from '../vendor/preact.js';
import { CleanUp } from './cleanup.js';
import { Conversation } from './conversation.js';
import { Files } from './files.js';
import { ReturnToMain } from './return.js';
import { TaskChips, TaskFacts } from './task_facts.js';
import { Turns } from './turns.js';

learn(words);

const PARTS = { conversation: Conversation, files: Files, turns: Turns, return: ReturnToMain };

export default function TaskPage({ id, part = 'conversation' }) {
  const task = useShared(() => taskOf(id));
  const known = useShared(() => state.host !== null);
  const [opened, setOpened] = useState({ resumeError: null, failure: null, description: null });
  const [cleaning, setCleaning] = useState(null);
  const cancel = useAction(() => answered(call('cancelTask', { taskId: id })));
  const files = useLoad((signal) => call('listFiles', { taskId: id }, { signal }), [id, task?.status, task?.turns]);
  const there = task !== undefined;
  useEffect(() => (there ? watch(id) : undefined), [id, there]);
  useEffect(() => {
    let here = true;
    answered(call('openTask', { taskId: id })).then(
      ({ task: row, resumeError }) => {
        if (here) setOpened({ resumeError, failure: null, description: row.description });
      },
      (failure) => here && setOpened({ resumeError: null, failure, description: null }),
    );
    return () => {
      here = false;
    };
  }, [id]);

  if (!task && (known || opened.failure)) {
    if (opened.failure && opened.failure.code !== 'TASK_NOT_FOUND') return html`<${Problem} failure=${opened.failure} />`;
    return html`<${Empty} title=${t('task.gone')}>
      <p>${t('task.gone.hint')}</p>
      <p><a class="button primary" href=${link('tasks')}>${t('app.toTasks')}</a></p>
    <//>`;
  }
  if (!task) return html`<${Loading} />`;

  const title = folded(task.label || task.description, 120);
  const Part = PARTS[part] ?? Conversation;
  const shown = part in PARTS ? part : 'conversation';
  const removed = (scope) => (scope === 'files' ? files.reload() : go('tasks'));
  return html`<article class="task" aria-label=${title} data-task=${id} data-status=${task.status}>
    <p class="crumbs"><a href=${link('tasks')}>${t('task.all')}</a></p>
    <div class="heading">
      <h1 tabindex="-1"><bdi>${title}</bdi></h1>
      <div class="actions">
        ${isOpen(task) &&
        !(isActive(task) && shown === 'conversation') &&
        html`<${Button} kind="danger" busy=${cancel.busy} press=${cancel.run} data-action=${isActive(task) ? 'stop' : 'cancel'}>${t(isActive(task) ? 'task.stop' : 'task.cancel')}<//>`}
        <${Button} kind="quiet" press=${() => setCleaning('files')} data-action="cleanup-files">${t('task.cleanFiles')}<//>
        <${Button} kind="quiet" press=${() => setCleaning('all')} data-action="cleanup-all">${t('task.cleanAll')}<//>
      </div>
    </div>
    <${TaskChips} task=${task} />
    <${Problem} failure=${cancel.failure} />
    ${task.error && html`<${Notice} tone="bad" data-testid="task-error"><p class="said">${folded(task.error, 2000)}</p><//>`}
    ${opened.resumeError &&
    html`<${Notice} tone="warn"><p>${t('task.resumeError')} ${folded(opened.resumeError, 1000)}</p><//>`}
    <${TaskFacts} task=${task} description=${opened.description ?? task.description} />
    <nav class="tabs" aria-label=${t('task.parts')}>
      ${Object.keys(PARTS).map(
        (of) =>
          html`<a key=${of} href=${link('tasks', id, of)} data-part=${of} aria-current=${of === shown ? 'page' : null}
            >${t(`task.part.${of}`)}${of === 'files' && files.data && ` (${files.data.entries.length}${files.data.truncated ? '+' : ''})`}</a
          >`,
      )}
    </nav>
    <${Part} key=${`${id}/${shown}`} task=${task} files=${files} />
    ${cleaning &&
    html`<${CleanUp} task=${task} scope=${cleaning} close=${() => setCleaning(null)} done=${removed} />`}
  </article>`;
}
