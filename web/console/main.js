// Where the console begins: shows the frame, and listens for news.

import { App } from './app.js';
import { applyLanguage } from './i18n/index.js';
import { listen } from './live.js';
import { applyTheme } from './prefs.js';
import { keepFocus } from './ui/focus.js';
import { html, render } from './vendor/preact.js';

applyTheme();
applyLanguage();
const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
keepFocus(root);
listen();
