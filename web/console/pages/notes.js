// What the host noted of a task, in the words and the language of this page where it is known what it says.

import { t } from '../i18n/index.js';
import { folded } from '../text.js';
import { rewindOf } from './history.js';

/** How much of a note is shown before somebody wants all of it. */
const LINE = 110;
/** Tasks that were started from no main conversation are the rule: nothing is missing. */
const NO_MAIN = 'no context: the task was started from no main session';
const HOLDS = 'sandbox: every write outside was refused.';

/** A note as `{line, rest}`: what is shown, and all of it if that is more. `null` if there is nothing to tell. */
export function noteOf(text) {
  if (text === NO_MAIN) return null;
  const back = rewindOf(text);
  if (back) return { line: t(`note.${back.did}`, back) };
  if (text.startsWith(HOLDS)) return { line: t('note.holds'), rest: text };
  const line = folded(text, LINE);
  return line === text ? { line } : { line, rest: text };
}
