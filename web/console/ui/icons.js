// Small pictures beside words; they say nothing that the words do not.

import { html } from '../vendor/preact.js';

const SHAPES = {
  tasks: 'M4 5h16v5H4zM4 14h16v5H4z',
  new: 'M12 5v14M5 12h14',
  checkpoints: 'M4 12a8 8 0 1 0 2.6-5.9M4 4v4h4M12 8v4l3 2',
  sessions: 'M4 5h16v11H10l-4 4v-4H4z',
  exports: 'M12 15V4M8 8l4-4 4 4M5 14v6h14v-6',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  diagnostics: 'M3 12h4l3-7 4 14 3-7h4',
};

/** The picture of a section. */
export const SectionIcon = ({ of }) =>
  html`<svg class="glyph" viewBox="0 0 24 24" aria-hidden="true"><path d=${SHAPES[of]} /></svg>`;
