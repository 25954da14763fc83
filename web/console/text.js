// Text for people: makes hostile characters visible, cuts what is long, and writes numbers, sizes and times.

// Controls, bidirectional marks and overrides, invisible characters, tags, and halves of surrogate pairs. Not line breaks and
// tabs, what joins or varies, of which more below, and signs of Arabic and its neighbours that are seen.
const HIDDEN =
  /(?![\t\n\u034f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\u{110bd}\u{110cd}\u{e0100}-\u{e01ef}])[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const LINE_BREAKS = /[\t\n]/g;
// What joins, varies or is blank: texts need it, but two names that differ by nothing else would look the same.
const UNSEEN = /[\u034f\u180b-\u180d\u180f\u200c\u200d\u2800\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|(?! )\p{Zs}/gu;
// Blanks that nobody sees, as nothing follows or precedes them.
const OUTER = /^ +| +$/g;
const TRAILING = /[ \t]+$/g;
// What joins or varies as above, but for what emojis and the scripts that vary are made of.
const STRAY =
  /[\u034f\u200c\u2800\ufe00-\ufe0e]|(?<!\p{Extended_Pictographic})\ufe0f|(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d|(?<!\p{Script=Mongolian})[\u180b-\u180d\u180f]|(?<!\p{Ideographic})[\u{e0100}-\u{e01ef}]/gu;

const named = (character) =>
  `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
const eachNamed = (characters) => [...characters].map(named).join('');

/** Text of several lines: line breaks and tabs stay, what cannot be seen is named. */
export function visible(text) {
  return String(text ?? '')
    .replace(/\r\n/g, '\n')
    .replace(HIDDEN, named);
}

/** A name, a path, or another text of one line: nothing in it can break the line, turn it around, or be unseen. */
export function oneLine(text) {
  return String(text ?? '')
    .replace(HIDDEN, named)
    .replace(LINE_BREAKS, named)
    .replace(UNSEEN, named)
    .replace(OUTER, eachNamed);
}

/** A line of a file, for comparison: two lines that differ are seen to. Tabs stay, but for those at its end. */
export function exactLine(text) {
  return String(text ?? '')
    .replace(HIDDEN, named)
    .replace(UNSEEN, named)
    .replace(TRAILING, eachNamed);
}

/** The beginning of a text, of at most `most` characters. */
export function beginning(text, most) {
  const all = String(text ?? '');
  if (all.length <= most) return all;
  return `${head(all, most)}…`;
}

/** The same without a mark. */
export function head(text, most) {
  // Half of a pair is no character.
  return text.slice(0, /[\ud800-\udbff]/.test(text[most - 1] ?? '') ? most - 1 : most);
}

/** A text folded into one line, for cards: runs of white space are one blank. */
export function folded(text, most) {
  return visible(beginning(String(text ?? '').replace(/\s+/g, ' ').trim(), most)).replace(STRAY, named);
}

/** What a task is called: its label, with a mark if it is but the beginning of the description. */
export function titleOf({ id, label, description }, most = 120) {
  const title = folded(label || description || id, most);
  const all = folded(description, title.length + 1);
  return label && !title.endsWith('…') && all.length > title.length && all.startsWith(title) ? `${title}…` : title;
}

/** The last segment of a path. */
export function leaf(path) {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

/** Bytes, as people write them. */
export function bytes(count) {
  if (!Number.isFinite(count)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let rest = count;
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${units[unit]}`;
}

const two = (number) => String(number).padStart(2, '0');

/** A moment of this machine's time: milliseconds since the epoch, or a text of RFC 3339. 0 is never. Today's has no date. */
export function moment(at) {
  const date = new Date(at);
  if (!at || Number.isNaN(date.getTime())) return '–';
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  if (new Date().toDateString() === date.toDateString()) return clock;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

/** The same for a machine, as the attribute `datetime` wants it. */
export function stamp(at) {
  const date = new Date(at);
  return !at || Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/** How long something took, from milliseconds. */
export function duration(milliseconds) {
  if (!(milliseconds >= 0)) return '–';
  const seconds = Math.floor(milliseconds / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return `${minutes} min ${rest} s`;
  return milliseconds < 10000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${rest} s`;
}
