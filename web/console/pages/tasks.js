// The board: a card for each task.

import { call } from '../client.js';
import { language, t } from '../i18n/index.js';
import { link } from '../router.js';
import { answered, isOpen, toast, useShared } from '../state.js';
import { duration, folded, oneLine, titleOf } from '../text.js';
import { useAction } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Empty, Heading, Loading, Problem, StatusChip, Time } from '../ui/parts.js';
import { Component, html, useEffect, useMemo, useState } from '../vendor/preact.js';
import { BulkCleanup } from './bulk_cleanup.js';
import { CleanUp } from './cleanup.js';

const PAGE = 24;
const FILTERS = {
  all: () => true,
  open: isOpen,
  good: (task) => task.status === 'completed',
  bad: (task) => ['failed', 'timeout', 'cancelled', 'interrupted'].includes(task.status),
};

export function TasksPage() {
  const tasks = useShared((state) => state.tasks);
  const known = useShared((state) => state.host !== null);
  const isReady = useShared((state) => state.host?.sandbox.set !== false);
  const failure = useShared((state) => state.failure);
  const [filter, setFilter] = useState('all');
  const [search, setSearch] = useState('');
  const [cleaning, setCleaning] = useState(null);
  const [bulk, setBulk] = useState(false);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const matches = (task) => !wanted || `${task.label}\n${task.id}\n${task.status}`.toLowerCase().includes(wanted);
    return tasks.filter((task) => FILTERS[filter](task) && matches(task));
  }, [tasks, filter, search]);
  const { rows, pager } = usePages(found, PAGE);
  const showAll = () => {
    setFilter('all');
    setSearch('');
  };

  const actions = html`
    ${tasks.length > 0 && html`<${Button} press=${() => setBulk(true)} data-action="bulk-cleanup">${t('tasks.cleanMany')}<//>`}
    ${tasks.length > 0 && html`<a class="button primary" href=${link('new')}>${t('tasks.new')}</a>`}
  `;
  return html`<section aria-label=${t('tasks.title')}>
    <${Heading} actions=${actions}>${t('tasks.title')}<//>
    ${tasks.length > 0 &&
    html`<div class="filters">
      <label>
        <span>${t('tasks.search')}</span>
        <input type="search" name="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} />
      </label>
      <label>
        <span>${t('tasks.filter')}</span>
        <select name="filter" value=${filter} onChange=${(event) => setFilter(event.currentTarget.value)}>
          ${Object.keys(FILTERS).map(
            (of) => html`<option key=${of} value=${of} selected=${of === filter}>${t(`tasks.filter.${of}`)}</option>`,
          )}
        </select>
      </label>
      <span class="hint" role="status">${t('tasks.count', { count: found.length })}</span>
    </div>`}
    ${!known && !failure && html`<${Loading} />`}
    ${known &&
    !tasks.length &&
    html`<${Empty} title=${t('tasks.none')}>
      <p>${t('tasks.none.hint')}</p>
      ${!isReady && html`<p>${t('tasks.none.root')}</p>`}
      <p><a class="button primary" href=${link(isReady ? 'new' : 'settings')}>${t(isReady ? 'tasks.new' : 'banner.noRoot.go')}</a></p>
    <//>`}
    ${tasks.length > 0 &&
    !found.length &&
    html`<${Empty} title=${t('tasks.noMatch')}>
      <p>${t('tasks.noMatch.hint')}</p>
      <p><${Button} press=${showAll}>${t('tasks.showAll')}<//></p>
    <//>`}
    <ul class="board">
      ${rows.map((task) => html`<${Card} key=${task.id} task=${task} language=${language()} clean=${setCleaning} />`)}
    </ul>
    ${pager}
    ${cleaning &&
    html`<${CleanUp} task=${tasks.find(({ id }) => id === cleaning.id) ?? cleaning} close=${() => setCleaning(null)} />`}
    ${bulk && html`<${BulkCleanup} tasks=${tasks} close=${() => setBulk(false)} />`}
  </section>`;
}

/** A task's card; drawn again only if the task has changed. */
class Card extends Component {
  shouldComponentUpdate({ task, language: spoken }) {
    return task !== this.props.task || spoken !== this.props.language;
  }

  render({ task, clean }) {
    const title = titleOf(task);
    return html`<li class="card" data-task=${task.id} data-status=${task.status}>
      <div class="card-head">
        <${StatusChip} status=${task.status} />
        <h2><a href=${link('tasks', task.id)} title=${oneLine(folded(task.description || task.label, 500))}><bdi>${title}</bdi></a></h2>
      </div>
      <dl class="brief">
        <div><dt>${t('tasks.created')}</dt><dd><${Time} at=${task.createdAt} /></dd></div>
        ${task.startedAt > 0 &&
        html`<div><dt>${t(task.turns > 1 ? 'tasks.took.last' : 'tasks.took')}</dt><dd><${Took} task=${task} /></dd></div>`}
        ${task.turns > 1 && html`<div><dt>${t('tasks.turns')}</dt><dd class="number">${task.turns}</dd></div>`}
        ${task.queuedPosition > 0 &&
        html`<div><dt>${t('tasks.queued')}</dt><dd class="number">${task.queuedPosition}</dd></div>`}
      </dl>
      ${task.error &&
      html`<p class="excerpt bad" data-testid="error"><span class="sr">${t('tasks.error')}: </span><bdi>${folded(task.error, 160)}</bdi></p>`}
      ${task.lastText &&
      html`<p class="excerpt" data-testid="said"><span class="sr">${t('tasks.said')}: </span><bdi>${folded(task.lastText, 240)}</bdi></p>`}
      <${CardActions} task=${task} title=${title} clean=${clean} />
    </li>`;
  }
}

function CardActions({ task, title, clean }) {
  const cancel = useAction(async () => {
    await answered(call('cancelTask', { taskId: task.id }));
    toast(t('tasks.cancelled', { label: title }));
  });
  return html`
    <${Problem} failure=${cancel.failure} />
    <div class="actions">
      <a class="button small" data-action="view" href=${link('tasks', task.id)} aria-label=${`${t('tasks.view')}: ${title}`}>${t('tasks.view')}</a>
      ${isOpen(task) &&
      html`<${Button} kind="small" busy=${cancel.busy} press=${cancel.run} data-action="cancel" aria-label=${`${t('tasks.cancel')}: ${title}`}>${t('tasks.cancel')}<//>`}
      <${Button} kind="small quiet" press=${() => clean(task)} data-action="cleanup" aria-label=${`${t('tasks.cleanUp')} ${title}`}>${t('tasks.cleanUp')}<//>
    </div>
  `;
}

/** How long a task took, or has taken so far: that grows by itself. */
export function Took({ task }) {
  const runs = isOpen(task) && task.startedAt > 0;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [runs]);
  const end = runs ? Math.max(now, task.startedAt) : task.endedAt;
  return html`<span class="number" data-testid="took">${end ? duration(end - task.startedAt) : '–'}</span>`;
}
