// The files of a task: looking at them, and choosing what shall be exported.

import { call } from '../client.js';
import { t } from '../i18n/index.js';
import { state } from '../state.js';
import { bytes, oneLine } from '../text.js';
import { useDraft, useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Bytes, Chip, Empty, Loading, LongText, Notice, Path, Problem, Time } from '../ui/parts.js';
import { html, useMemo, useState } from '../vendor/preact.js';
import { countsOf, howMany } from './counts.js';
import { Export } from './export.js';

const PAGE = 100;
const NONE = new Set();
const NOTHING = [];

export function Files({ task, files }) {
  const [search, setSearch] = useState('');
  const [selected, setSelected] = useDraft(`files.${task.id}`, NONE);
  const [previewed, setPreviewed] = useState('');
  const entries = files.data?.entries ?? NOTHING;
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return wanted ? entries.filter((entry) => entry.relPath.toLowerCase().includes(wanted)) : entries;
  }, [entries, search]);
  const { rows, pager } = usePages(found, PAGE);
  // What was selected may be gone by now.
  const chosen = useMemo(() => entries.filter((entry) => selected.has(entry.relPath)), [entries, selected]);
  const add = (paths) => setSelected(topmost(new Set([...selected, ...paths])));
  const tick = (path, ticked) => (ticked ? add([path]) : setSelected(without(path, selected, entries)));

  if (files.failure) return html`<${Problem} failure=${files.failure} retry=${files.reload} />`;
  if (!files.data) return html`<${Loading} />`;
  if (!entries.length) {
    const why = files.data.missing ? 'files.missing' : 'files.none';
    return html`<${Empty} title=${t(why)}>
      <p>${t(`${why}.hint`)}</p>
      <p><${Button} press=${files.reload}>${t('do.refresh')}<//></p>
    <//>`;
  }
  const shown = rows.filter((entry) => !entry.lossy).map((entry) => entry.relPath);
  const counts = countsOf(entries);
  return html`<section aria-label=${t('task.part.files')}>
    <p class="hint" data-testid="count">${howMany(counts)}</p>
    <div class="filters">
      <label>
        <span>${t('files.search')}</span>
        <input type="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} />
      </label>
      <${Button} kind="small" press=${() => add(shown)}>${t('files.all', { count: shown.length })}<//>
      <${Button} kind="small" off=${!chosen.length} press=${() => setSelected(NONE)}>${t('files.clear')}<//>
      <${Button} kind="small" press=${files.reload}>${t('do.refresh')}<//>
    </div>
    ${files.data.truncated && html`<${Notice} tone="warn"><p>${t('files.truncated', { count: entries.length })}</p><//>`}
    <${Export} task=${task} chosen=${chosen} extent=${extentOf(chosen, entries)} truncated=${files.data.truncated} done=${files.reload} />
    ${!found.length && html`<p class="hint">${t('files.noMatch')}</p>`}
    <ul class="rows files">
      ${rows.map(
        (entry) =>
          html`<${Row}
            key=${entry.relPath}
            entry=${entry}
            task=${task}
            ticked=${selected.has(entry.relPath) || holder(entry.relPath, selected) !== ''}
            tick=${(ticked) => tick(entry.relPath, ticked)}
            open=${previewed === entry.relPath}
            toggle=${() => setPreviewed(previewed === entry.relPath ? '' : entry.relPath)}
          />`,
      )}
    </ul>
    ${pager}
  </section>`;
}

/** The selected directory that a path lies in; empty if there is none. */
function holder(path, selected) {
  for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1)) {
    if (selected.has(path.slice(0, end))) return path.slice(0, end);
  }
  return '';
}

/** The same selection without what lies in a directory of it. */
const topmost = (selected) => new Set([...selected].filter((path) => !holder(path, selected)));

/** The selection without a path. If a directory around it was selected, what else is in that is. */
function without(path, selected, entries) {
  const around = holder(path, selected);
  const next = new Set(selected);
  next.delete(around || path);
  if (!around) return next;
  const others = entries.filter(
    ({ relPath, lossy }) =>
      !lossy &&
      relPath.startsWith(`${around}/`) &&
      relPath !== path &&
      !relPath.startsWith(`${path}/`) &&
      !path.startsWith(`${relPath}/`),
  );
  return topmost(new Set([...next, ...others.map((entry) => entry.relPath)]));
}

/** The same of what was chosen: a directory stands for what is in it. */
function extentOf(chosen, entries) {
  const paths = new Set(chosen.map((entry) => entry.relPath));
  return countsOf(entries.filter(({ relPath }) => paths.has(relPath) || holder(relPath, paths)));
}

function Row({ entry, task, ticked, tick, open, toggle }) {
  const { relPath, type, size, mtime, lossy } = entry;
  const name = oneLine(relPath);
  return html`<li class="row file" data-file=${relPath}>
    <input
      type="checkbox"
      aria-label=${t('files.select', { path: name })}
      disabled=${lossy}
      checked=${ticked && !lossy}
      onChange=${(event) => tick(event.currentTarget.checked)}
    />
    <div class="row-main"><${Path} of=${relPath} />${lossy && html` <${Chip} tone="warn">${t('files.lossy')}<//>`}</div>
    <span class="hint kind">${t(`files.type.${type}`)}${type === 'file' && html` · <${Bytes} count=${size} />`}</span>
    <span class="hint time"><${Time} at=${mtime} /></span>
    ${type === 'file' && !lossy
      ? html`<${Button}
          kind="small"
          press=${toggle}
          data-action="preview"
          aria-expanded=${open ? 'true' : 'false'}
          aria-label=${`${t(open ? 'files.hide' : 'files.preview')}: ${name}`}
          >${t(open ? 'files.hide' : 'files.preview')}<//
        >`
      : html`<span></span>`}
    ${open && html`<${Preview} task=${task} relPath=${relPath} />`}
  </li>`;
}

/** What is as it should be, although there is nothing to show. */
const UNSHOWN = { BINARY_FILE: 'files.binary', FILE_TOO_LARGE: 'files.large' };

function Preview({ task, relPath }) {
  const maxChars = state.host?.config?.previewChars ?? 20000;
  const text = useLoad((signal) => call('readSandboxFile', { taskId: task.id, relPath, maxChars }, { signal }), [relPath]);
  return html`<div class="preview">
    ${text.failure &&
    (text.failure.code in UNSHOWN
      ? html`<${Notice} data-code=${text.failure.code}><p>${t(UNSHOWN[text.failure.code])}</p><//>`
      : html`<${Problem} failure=${text.failure} retry=${text.reload} />`)}
    ${text.loading && html`<${Loading} />`}
    ${text.data &&
    html`<p class="hint" data-testid="preview-size">
        ${bytes(text.data.bytes)}${text.data.truncated && html` <${Chip} tone="warn" data-testid="cut">${t('text.cut')}<//>`}
      </p>
      <div data-preview=${relPath}><${LongText} of=${text.data.text} label=${t('files.preview.of', { path: oneLine(relPath) })} /></div>
      ${text.data.truncated &&
      html`<p class="hint">${t('files.preview.end', { chars: text.data.chars, size: bytes(text.data.bytes) })}</p>`}`}
  </div>`;
}
