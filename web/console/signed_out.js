// The page for browsers that are not signed in: says why, and how to get in.

import { applyLanguage, has, learn, t } from './i18n/index.js';
import words from './i18n/words/signed_out.js';
import { applyTheme } from './prefs.js';
import { html, render } from './vendor/preact.js';

learn(words);
applyTheme();
applyLanguage();
const root = document.getElementById('app');
const why = `out.${root.dataset.why}`;
document.title = `${t('out.title')} · Cofferdam`;
root.replaceChildren();
render(
  html`<main class="signed-out">
    <h1>${t('out.title')}</h1>
    <p>${t(has(why) ? why : 'out.signed-out')}</p>
    <p>${t('out.how')}</p>
    <pre class="text">cofferdam console</pre>
    <p class="hint">${t('out.once')}</p>
  </main>`,
  root,
);
