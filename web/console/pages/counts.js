// How much there is in a list of files.

import { t } from '../i18n/index.js';
import { bytes } from '../text.js';

/** How many files and directories there are among these entries, and how many bytes that is. */
export function countsOf(entries) {
  const directories = entries.filter((entry) => entry.type === 'directory').length;
  const size = entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.size : 0), 0);
  return { files: entries.length - directories, directories, size };
}

/** That, in words. */
export const howMany = ({ files, directories, size }) =>
  t(directories ? 'files.count.both' : 'files.count', { files, directories, size: bytes(size) });
