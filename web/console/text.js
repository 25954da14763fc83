// Text for people: makes hostile characters visible, cuts what is long, and writes numbers, sizes and times.

// Controls, bidirectional marks and overrides, invisible characters, tags, and halves of surrogate pairs.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu;
const LINE_BREAKS = /[\t\n]/g;

const named = (character) =>
  `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** Text of several lines: line breaks and tabs stay, what cannot be seen is named. */
export function visible(text) {
  return String(text ?? '')
    .replace(/\r\n/g, '\n')
    .replace(HIDDEN, named);
}

/** A name, a path, or another text of one line: nothing in it can break the line or turn it around. */
export function oneLine(text) {
  return visible(text).replace(LINE_BREAKS, named);
}

/** The beginning of a text, of at most `most` characters. */
export function beginning(text, most) {
  const all = String(text ?? '');
  if (all.length <= most) return all;
  // Half of a pair is no character.
  const end = /[\ud800-\udbff]/.test(all[most - 1]) ? most - 1 : most;
  return `${all.slice(0, end)}…`;
}

/** A text folded into one line, for cards: runs of white space are one blank. */
export function folded(text, most) {
  return oneLine(beginning(String(text ?? '').replace(/\s+/g, ' ').trim(), most));
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

/** A moment: milliseconds since the epoch, or a text of RFC 3339. 0 is never. */
export function moment(at, language) {
  const date = new Date(at);
  if (!at || Number.isNaN(date.getTime())) return '–';
  const today = new Date().toDateString() === date.toDateString();
  const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
  const day = { year: 'numeric', month: '2-digit', day: '2-digit' };
  return new Intl.DateTimeFormat(language, today ? clock : { ...day, ...clock }).format(date);
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
