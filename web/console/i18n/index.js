// What is said, in English and Chinese. Each text stands beside its translation in `words/`, so neither can be forgotten.
//
// In a text `{name}` is replaced, and `{name|one|many}` is the first word if the number is 1, else the second.

import { keep, kept } from '../prefs.js';
import errors from './words/errors.js';
import shell from './words/shell.js';
import tasks from './words/tasks.js';

/** The languages there are, each in its own name, in the order of the texts. */
export const LANGUAGES = { en: 'English', zh: '中文' };
const ORDER = Object.keys(LANGUAGES);

const words = {};

/** Takes further texts; pages that are fetched later bring their own. */
export function learn(more) {
  Object.assign(words, more);
}

learn(shell);
learn(errors);
learn(tasks);

const preferred = () => (navigator.language?.toLowerCase().startsWith('zh') ? 'zh' : 'en');

let current = ORDER.includes(kept('language')) ? kept('language') : preferred();

/** The language things are said in. */
export const language = () => current;

/** Says things in another language from now on. */
export function chooseLanguage(chosen) {
  current = chosen;
  keep('language', chosen);
  applyLanguage();
}

/** Tells the browser which language the page is in. */
export function applyLanguage() {
  document.documentElement.lang = current;
}

/** Whether there is such a text. */
export const has = (key) => Object.hasOwn(words, key);

/** The text of a key; a key without one shows itself. */
export function t(key, values = {}) {
  const text = words[key]?.[ORDER.indexOf(current)] ?? key;
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, name, one, many) =>
    one === undefined ? String(values[name] ?? '') : Number(values[name]) === 1 ? one : many,
  );
}
