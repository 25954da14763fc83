// What a task's transcript says of its turns: which were taken back, and what was gone back to.

const TURN = /^turn (\d+) (began|ended)\b/;
const BACK = 'files and conversation were brought back to what they were';
/** What the host notes of a rewind, of its undo, and of the undo of that. */
const REWINDS = [
  ['rewound', new RegExp(`^${BACK} before turn (\\d+)$`)],
  ['undone', new RegExp(`^${BACK} just before the rewind to before turn (\\d+)$`)],
  ['again', new RegExp(`^${BACK} just before the rewind to before turn (\\d+) was undone$`)],
];

/** What a note says of a rewind: `{did, turn}`; `null` if it is about something else. */
export function rewindOf(text) {
  for (const [did, pattern] of text.startsWith(BACK) ? REWINDS : []) {
    const found = pattern.exec(text);
    if (found) return { did, turn: Number(found[1]) };
  }
  return null;
}

/** How many rewinds and undos a transcript has: another number is another state of the files. */
export const rewindsIn = (entries = []) =>
  entries.reduce((count, { kind, text }) => count + (kind === 'note' && rewindOf(text) ? 1 : 0), 0);

/** Goes through a transcript: `gone` has the numbers of turns that were taken back, `turnOf` has by `seq` the turn an entry
 * belongs to. */
export function historyOf(entries = []) {
  const before = new Map();
  const turnOf = new Map();
  let [now, kept, asked, turn] = [[], [], [], 0];
  for (const { seq, kind, text } of entries) {
    const [, number, what] = (kind === 'turn' && TURN.exec(text)) || [];
    if (what === 'began') {
      turn = Number(number);
      before.set(turn, now);
      now = [...now, turn];
      // What was asked comes before the turn that answers it.
      for (const of of asked) turnOf.set(of, turn);
      asked = [];
    }
    if (kind === 'user' || kind === 'prompt') asked.push(seq);
    const rewind = kind === 'note' && rewindOf(text);
    if (rewind?.did === 'rewound') {
      [kept, now] = [now, before.get(rewind.turn) ?? now.filter((of) => of < rewind.turn)];
    } else if (rewind) {
      [kept, now] = [now, kept];
    }
    if (turn) turnOf.set(seq, turn);
    if (what === 'ended') turn = 0;
  }
  return { gone: new Set([...before.keys()].filter((of) => !now.includes(of))), turnOf };
}
