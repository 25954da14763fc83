// The turns of a task: going back to before one of them, and undoing that.

import { call } from '../client.js';
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

export function Turns({ task }) {
  const turns = useLoad(
    (signal) => call('listTurns', { taskId: task.id }, { own: true, signal }),
    [task.id, task.turns, task.status],
  );
  const [back, setBack] = useState(null);
  const [undoing, setUndoing] = useState(false);
  const rows = turns.data?.turns ?? [];
  const newest = [...rows].reverse();
  const { rows: shown, pager } = usePages(newest, PAGE);
  const [notes, setNotes] = useState([]);
  const came = async (asking) => {
    const rewound = await answered(asking);
    setNotes(rewound.notes);
    toast(t(rewound.undid === 'rewind' ? 'turns.undone' : 'turns.done', rewound));
    await turns.reload();
    reloadTranscript(task.id);
  };
  const long = { own: true, patience: 600000 };
  const rewind = () => came(call('rewindTask', { taskId: task.id, turn: back.turn }, long));
  const undo = () => came(call('undoRewind', { taskId: task.id }, long));
  if (turns.failure) return html`<${Problem} failure=${turns.failure} retry=${turns.reload} />`;
  if (!turns.data) return html`<${Loading} />`;
  const gone = back ? rows.filter((row) => row.turn >= back.turn).map((row) => row.turn) : [];
  return html`<section aria-label=${t('task.part.turns')}>
    ${turns.data.undo &&
    html`<${Notice} tone="good">
      <p>${t(turns.data.undo.of === 'undo' ? 'turns.undo.undone' : 'turns.undo.rewound', turns.data.undo)}</p>
      <${Button} off=${isOpen(task) && t('turns.rewind.running')} press=${() => setUndoing(true)} data-action="undo-rewind">${t('turns.undo')}<//>
    <//>`}
    ${notes.length > 0 &&
    html`<${Notice} tone="warn" data-testid="notes"><ul>${notes.map((note) => html`<li key=${note}>${visible(note)}</li>`)}</ul><//>`}
    ${!rows.length && html`<${Empty} title=${t('turns.none')}><p>${t('turns.none.hint')}</p><//>`}
    <ol class="rows" reversed>
      ${shown.map(
        (row) =>
          html`<li key=${row.turn} class="row" data-turn=${row.turn}>
            <div class="row-main">
              <p><strong>${t('turns.turn')} ${row.turn}</strong> <${Time} at=${row.at} /> ${!row.checkpoint && html`<${Chip} tone="warn">${t('turns.checkpoint')}: ${t('turns.missing')}<//>`}</p>
              <p class="excerpt"><bdi>${folded(row.asked, 240)}</bdi></p>
              ${row.note && html`<p class="hint">${visible(row.note)}</p>`}
            </div>
            <${Button}
              kind="small"
              off=${(isOpen(task) && t('turns.rewind.running')) || (!row.checkpoint && t('turns.rewind.missing'))}
              press=${() => setBack(row)}
              data-action="rewind"
              >${t('turns.rewind', { turn: row.turn })}<//
            >
          </li>`,
      )}
    </ol>
    ${pager}
    ${back &&
    html`<${Confirm} title=${t('turns.title', { turn: back.turn })} act=${t('turns.act')} danger of="rewind" work=${rewind} close=${() => setBack(null)}>
      <ul class="plan" data-testid="plan">
        <li>${t('turns.what.files', { turn: back.turn })} <${Path} of=${task.taskDir} /></li>
        <li>${t('turns.what.talk', { count: gone.length, turns: gone.join(', ') })}</li>
        <li>${t('turns.what.outside')}</li>
        <li>${t('turns.what.undo')}</li>
      </ul>
    <//>`}
    ${undoing &&
    html`<${Confirm} title=${t('turns.undo.title')} act=${t('turns.undo')} of="undo-rewind" work=${undo} close=${() => setUndoing(false)}>
      <p>${t('turns.undo.what')}</p>
    <//>`}
  </section>`;
}
