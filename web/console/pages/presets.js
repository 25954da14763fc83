// Who can do tasks, in the order in which they are offered.

/** Agents that play a script are for tests. */
const isScripted = ({ id }) => id.startsWith('fake');
const rank = (preset) => (isScripted(preset) ? 2 : preset.broken ? 1 : 0);

/** Those that can be used first, scripted ones last. */
export const inOrder = (presets) => [...presets].sort((one, other) => rank(one) - rank(other));

/** The one that is chosen as long as nobody chose: `shell`, which works without an account anywhere, else the first that can
 * be used; empty if none can. */
export function firstUsable(presets) {
  const usable = inOrder(presets).filter((preset) => !preset.broken);
  return (usable.find(({ id }) => id === 'shell') ?? usable[0])?.id ?? '';
}
