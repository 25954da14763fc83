// The page for whoever a link of somebody else's page led here: the browser says that it did, and only they know whether they
// meant to come.

import { applyLanguage, learn, t } from './i18n/index.js';
import words from './i18n/words/signed_out.js';
import { applyTheme } from './prefs.js';
import { html, render } from './vendor/preact.js';

learn(words);
applyTheme();
applyLanguage();
const root = document.getElementById('app');
document.title = `${t('elsewhere.title')} · Cofferdam`;
root.replaceChildren();
render(
  html`<main class="signed-out" data-why="elsewhere">
    <h1>${t('elsewhere.title')}</h1>
    <p>${t('elsewhere.text')}</p>
    <p><a class="button primary" href="" data-action="go-on">${t('elsewhere.go')}</a></p>
  </main>`,
  root,
);
