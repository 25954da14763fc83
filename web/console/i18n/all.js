// Every text there is, by language and key: for tests that look for what was forgotten.

import { LANGUAGES } from './index.js';
import checkpoints from './words/checkpoints.js';
import errors from './words/errors.js';
import exports from './words/exports.js';
import sessions from './words/sessions.js';
import settings from './words/settings.js';
import shell from './words/shell.js';
import signedOut from './words/signed_out.js';
import task from './words/task.js';
import tasks from './words/tasks.js';

const WORDS = [shell, errors, tasks, task, exports, checkpoints, sessions, settings, signedOut];

export const dictionaries = Object.fromEntries(
  Object.keys(LANGUAGES).map((language, column) => [
    language,
    Object.fromEntries(WORDS.flatMap(Object.entries).map(([key, texts]) => [key, texts[column]])),
  ]),
);
