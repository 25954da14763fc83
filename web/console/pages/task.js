// A task: how it stands, its conversation, turns, files, and what can be done with them.

import { call } from '../client.js';
import { learn, t } from '../i18n/index.js';
import words from '../i18n/words/task.js';
import { refresh } from '../live.js';
import { go, link } from '../router.js';
import { answered, isActive, isOpen, state, taskOf, useShared } from '../state.js';
import { folded, titleOf } from '../text.js';
import { watch } from '../transcript.js';
import { dropDraft, useAction, useHere, useLoad, useReturn } from '../ui/hooks.js';
import { Button, Empty, Loading, Notice, Problem } from '../ui/parts.js';
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { CleanUp } from './cleanup.js';
import { Conversation } from './conversation.js';
import { countsOf } from './counts.js';
import { Files } from './files.js';
import { rewindsIn } from './history.js';
import { ReturnToMain } from './return.js';
import { TaskChips, TaskFacts } from './task_facts.js';
import { Turns } from './turns.js';

learn(words);

const PARTS = { conversation: Conversation, files: Files, turns: Turns, return: ReturnToMain };

export default function TaskPage({ id, part = 'conversation' }) {
  const task = useShared(() => taskOf(id));
  const known = useShared(() => state.host !== null);
  // Each is another state of the files, and of what the turns are.
  const rewinds = useShared(() => rewindsIn(state.transcripts[id]?.entries));
  const isHeard = useShared(() => state.transcripts[id]?.entries !== undefined);
  const opened = useLoad((signal) => answered(call('openTask', { taskId: id }, { signal })), [id]);
  const [cleaning, setCleaning] = useState(false);
  const cancel = useAction(() => answered(call('cancelTask', { taskId: id })));
  const shown = Object.hasOwn(PARTS, part) ? part : 'conversation';
  const files = useLoad(
    (signal) => call('listFiles', { taskId: id }, { signal }),
    [id, task?.status, task?.turns, rewinds, shown === 'files'],
  );
  useReturn(files.reload);
  const here = useHere();
  const before = useRef(null);
  if (isHeard && before.current !== rewinds) {
    // What was ticked was ticked among other files. The first transcript that comes is no news.
    if (before.current !== null) dropDraft(`files.${id}`);
    before.current = rewinds;
  }
  const there = task !== undefined;
  useEffect(() => (there ? watch(id) : undefined), [id, there]);

  if (!task && (known || opened.failure)) {
    if (opened.failure && opened.failure.code !== 'TASK_NOT_FOUND') return html`<${Problem} failure=${opened.failure} retry=${opened.reload} />`;
    return html`<${Empty} title=${t('task.gone')}>
      <p>${t('task.gone.hint')}</p>
      <p><a class="button primary" href=${link('tasks')}>${t('app.toTasks')}</a></p>
    <//>`;
  }
  if (!task) return html`<${Loading} />`;

  const title = titleOf(task);
  const description = opened.data?.task.description ?? task.description;
  const Part = PARTS[shown];
  const removed = (scope) => {
    dropDraft(`files.${id}`);
    if (scope === 'files') {
      files.reload();
      // Whether it can go on is another matter now.
      refresh();
    } else if (here()) go('tasks');
  };
  // Files that were gone back to are another list, with nothing ticked.
  const key = shown === 'files' ? `${id}/files/${rewinds}` : `${id}/${shown}`;
  return html`<article class="task" aria-label=${title} data-task=${id} data-status=${task.status}>
    <p class="crumbs"><a href=${link('tasks')}>${t('task.all')}</a></p>
    <div class="heading">
      <h1 tabindex="-1"><bdi>${title}</bdi></h1>
      <div class="actions">
        ${isOpen(task) &&
        html`<${Button} kind="danger" busy=${cancel.busy} press=${cancel.run} data-action=${isActive(task) ? 'stop' : 'cancel'}>${t(isActive(task) ? 'task.stop' : 'task.cancel')}<//>`}
        <${Button} press=${() => setCleaning(true)} data-action="cleanup">${t('task.cleanUp')}<//>
      </div>
    </div>
    <${TaskChips} task=${task} />
    <${Problem} failure=${cancel.failure} />
    <${Problem} failure=${opened.failure} retry=${opened.reload} />
    ${task.error && html`<${Notice} tone="bad" data-testid="task-error"><p class="said">${folded(task.error, 2000)}</p><//>`}
    ${opened.data?.resumeError &&
    html`<${Notice} tone="warn"><p>${t('task.resumeError')} ${folded(opened.data.resumeError, 1000)}</p><//>`}
    <${TaskFacts} task=${task} description=${description} />
    <nav class="tabs" aria-label=${t('task.parts')}>
      ${Object.keys(PARTS).map(
        (of) =>
          html`<a key=${of} href=${link('tasks', id, of)} data-part=${of} aria-current=${of === shown ? 'page' : null}
            >${t(`task.part.${of}`)}${of === 'files' && files.data && ` (${countsOf(files.data.entries).files}${files.data.truncated ? '+' : ''})`}</a
          >`,
      )}
    </nav>
    <${Part} key=${key} task=${task} files=${files} description=${description} rewinds=${rewinds} />
    ${cleaning && html`<${CleanUp} task=${task} close=${() => setCleaning(false)} done=${removed} />`}
  </article>`;
}
