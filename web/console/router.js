// Where in the console we are: the fragment of the address, so that reload, back and links work.

/** The segments of the fragment: `#/tasks/pod-1/files` is `['tasks', 'pod-1', 'files']`. */
export function place(hash = location.hash) {
  return hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter(Boolean)
    .map((segment) => {
      try {
        return decodeURIComponent(segment);
      } catch {
        return segment;
      }
    });
}

/** The address of a place. */
export const link = (...segments) => `#/${segments.map(encodeURIComponent).join('/')}`;

/** Goes there. */
export function go(...segments) {
  location.hash = link(...segments);
}

/** Goes there without a step to go back to. */
export function replace(...segments) {
  history.replaceState(null, '', link(...segments));
  dispatchEvent(new HashChangeEvent('hashchange'));
}
