// Where the focus goes when what had it is removed: browsers lose it then, and whoever has no pointer begins at the top again.

/** What can have the focus, by the keyboard. */
export const REACHED = 'a[href], button, input:not([disabled]), select, textarea, summary, [tabindex="0"]';

const first = (of) => [...(of?.querySelectorAll(REACHED) ?? [])].find((element) => element.checkVisibility());

/** Where something stands: in which row of which list. */
export function standing(element) {
  const row = element.closest('li, article');
  return { element, row, list: row?.parentElement, at: row ? [...row.parentElement.children].indexOf(row) : 0 };
}

/** It, or what is nearest to where it was: the same row, the one in its place, else the page. */
export function nearest({ element, row, list, at }) {
  if (element.isConnected) return element;
  const dialog = document.querySelector('dialog[open]');
  const rows = list?.isConnected ? list.children : [];
  const near = first(row?.isConnected ? row : (rows[at] ?? rows[rows.length - 1]));
  if (near && (!dialog || dialog.contains(near))) return near;
  return dialog ? first(dialog) : document.getElementById('main');
}

/** Looks after that from now on. */
export function keepFocus(root) {
  let had = null;
  document.addEventListener('focusin', ({ target }) => {
    had = root.contains(target) ? standing(target) : null;
  });
  document.addEventListener('focusout', ({ target }) => {
    // Whoever looks elsewhere by themselves is not brought back.
    setTimeout(() => {
      if (had?.element === target && target.isConnected && document.activeElement === document.body) had = null;
    });
  });
  new MutationObserver(() => {
    if (!had || had.element.isConnected) return;
    const lost = had;
    had = null;
    if (document.activeElement === document.body) nearest(lost)?.focus({ preventScroll: true });
  }).observe(root, { childList: true, subtree: true });
}
