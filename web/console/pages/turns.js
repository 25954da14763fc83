// The turns of a task: going back to before one of them, undoing that, and going back again.

import { LONG, call } from '../client.js';
import { t } from '../i18n/index.js';
import { answered, isOpen, toast } from '../state.js';
import { folded, visible } from '../text.js';
import { reloadTranscript } from '../transcript.js';
import { Confirm } from '../ui/dialog.js';
import { useLoad } from '../ui/hooks.js';
import { usePages } from '../ui/pager.js';
import { Button, Chip, Empty, Loading, Notice, Path, Problem, Time } from '../ui/parts.js';
import { html, useState } from '../vendor/preact.js';

const PAGE = 50;
/** What is longer was cut by the daemon, which marks it by nothing. */
const ASKED = 199;

export function Turns({ task, rewinds }) {
  const turns = useLoad(
    (signal) => call('listTurns', { taskId: task.id }, { own: true, signal }),
    [task.id, task.turns, task.status, rewinds],
  );
  const [back, setBack] = useState(null);
  const [undoing, setUndoing] = useState(false);
  const rows = turns.data?.turns ?? [];
  const newest = [...rows].reverse();
  const { rows: shown, pager } = usePages(newest, PAGE);
  const [notes, setNotes] = useState([]);
  const carryOut = async (asking) => {
    const rewound = await answered(asking);
    setNotes(rewound.notes);
    toast(t(rewound.undid === 'rewind' ? 'turns.undone' : 'turns.done', rewound));
    await Promise.all([turns.reload(), reloadTranscript(task.id)]);
  };
  const long = { own: true, patience: LONG };
  const rewind = () => carryOut(call('rewindTask', { taskId: task.id, turn: back.turn }, long));
  const undo = () => carryOut(call('undoRewind', { taskId: task.id }, long));
  if (turns.failure) return html`<${Problem} failure=${turns.failure} retry=${turns.reload} />`;
  if (!turns.data) return html`<${Loading} />`;
  const last = turns.data.undo;
  const since = last?.at > 0 && rows.some((row) => row.at > last.at);
  const lost = back ? rows.filter((row) => row.stands && row.turn >= back.turn) : [];
  return html`<section aria-label=${t('task.part.turns')}>
    <p class="hint">${t('turns.intro')}</p>
    ${last &&
    html`<${Notice} tone=${last.of === 'undo' ? 'quiet' : 'good'} data-testid="rewound" data-rewound=${last.of}>
      <p>${t(`turns.came.${last.of}${since ? '.since' : ''}`, last)} ${last.at > 0 && html`<span class="hint"><${Time} at=${last.at} /></span>`}</p>
      <${Button} off=${isOpen(task) && t('turns.rewind.running')} press=${() => setUndoing(true)} data-action="undo-rewind">${t(`turns.undo.${last.of}`)}<//>
    <//>`}
    ${notes.length > 0 &&
    html`<${Notice} tone="warn" data-testid="notes"><ul>${notes.map((note) => html`<li key=${note}>${visible(note)}</li>`)}</ul><//>`}
    ${!rows.length && html`<${Empty} title=${t('turns.none')}><p>${t('turns.none.hint')}</p><//>`}
    <ol class="rows" reversed>
      ${shown.map((row) => html`<${Turn} key=${row.turn} of=${row} task=${task} rewind=${() => setBack(row)} />`)}
    </ol>
    ${pager}
    ${back &&
    html`<${Confirm} title=${t('turns.title', back)} act=${t('turns.act')} danger of="rewind" work=${rewind} close=${() => setBack(null)}>
      <ul class="plan" data-testid="plan">
        <li>${t('turns.what.files', back)} <${Path} of=${task.taskDir} /></li>
        <li>${lost.length ? t('turns.what.talk', named(lost.map((row) => row.turn))) : t('turns.what.talk.other', back)}</li>
        <li>${t('turns.what.outside')}</li>
        <li>${t('turns.what.undo')}</li>
      </ul>
      <${Incomplete} what=${back.incomplete} />
    <//>`}
    ${undoing && last && html`<${UndoRewind} of=${last} undo=${undo} close=${() => setUndoing(false)} />`}
  </section>`;
}

const named = (turns) => ({ count: turns.length, turns: turns.join(', ') });

function Turn({ of: row, task, rewind }) {
  const asked = row.asked.length < ASKED ? row.asked : `${row.asked}…`;
  return html`<li class=${`row${row.stands ? '' : ' gone'}`} data-turn=${row.turn} data-gone=${row.stands ? null : 'true'}>
    <div class="row-main">
      <p class="turn-head">
        <strong>${t('turns.turn', row)}</strong>
        <span class="hint"><${Time} at=${row.at} /></span>
        ${!row.stands && html`<${Chip} title=${t('turns.gone.hint')}>${t('turns.gone')}<//>`}
        ${!row.checkpoint && html`<${Chip} tone="warn" title=${t('turns.rewind.missing')}>${t('turns.missing')}<//>`}
        ${row.checkpoint && row.incomplete && html`<${Chip} tone="warn" data-testid="incomplete">${t('turns.incomplete')}<//>`}
      </p>
      <p class="excerpt"><bdi>${folded(asked, 240)}</bdi></p>
      ${(row.note || row.incomplete) && html`<p class="hint">${visible(row.note || row.incomplete)}</p>`}
    </div>
    <${Button}
      kind="small"
      off=${(isOpen(task) && t('turns.rewind.running')) || (!row.checkpoint && t('turns.rewind.missing'))}
      press=${rewind}
      data-action="rewind"
      >${t('turns.rewind', row)}<//
    >
  </li>`;
}

/** Asks before the newest rewind, or its undo, is undone: says which turns come back, and which are taken back. */
const UndoRewind = ({ of, undo, close }) =>
  html`<${Confirm} title=${t(`turns.undo.title.${of.of}`, of)} act=${t(`turns.undo.${of.of}`)} of="undo-rewind" work=${undo} close=${close}>
    <ul class="plan" data-testid="plan">
      <li>${t(`turns.undo.what.${of.of}`, of)}</li>
      ${of.brings.length > 0 && html`<li>${t('turns.undo.brings', named(of.brings))}</li>`}
      ${of.takes.length > 0 && html`<li>${t('turns.undo.takes', named(of.takes))}</li>`}
      <li>${t('turns.undo.kept')}</li>
    </ul>
    <${Incomplete} what=${of.incomplete} />
  <//>`;

/** What could not be kept. */
const Incomplete = ({ what }) =>
  what ? html`<${Notice} tone="warn" data-testid="incomplete"><p>${t('turns.undo.incomplete')} ${visible(what)}</p><//>` : null;
