// What a person chose in this browser: language, theme, main session. Kept in localStorage where there is one.

const PREFIX = 'cofferdam.';

/** What was kept under this name, or `otherwise`. */
export function kept(name, otherwise = '') {
  try {
    return localStorage.getItem(PREFIX + name) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keeps something; empty forgets it. A browser that keeps nothing only forgets it at the next visit. */
export function keep(name, value) {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
  } catch {
    // Nothing depends on it.
  }
}

const system = matchMedia('(prefers-color-scheme: dark)');

/** The theme that is shown: `light` or `dark`. Without a choice it is the system's. */
export function theme() {
  const chosen = kept('theme');
  return chosen === 'light' || chosen === 'dark' ? chosen : ofSystem();
}

const ofSystem = () => (system.matches ? 'dark' : 'light');

/** Shows the theme; the style sheet does the rest. */
export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/** Chooses a theme, and shows it. Whoever chooses what the system has follows the system again. */
export function chooseTheme(chosen) {
  keep('theme', chosen === ofSystem() ? '' : chosen);
  applyTheme();
}

/** Shows the system's theme when that changes, and says so; until the returned function is called. */
export function onSystemTheme(tell) {
  const changed = () => {
    applyTheme();
    tell();
  };
  system.addEventListener('change', changed);
  return () => system.removeEventListener('change', changed);
}
