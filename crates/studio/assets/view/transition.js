/**
 * @file The way from a tile to the viewer: the picture grows into its place. Where the browser knows no view
 * transitions, or its user wants no motion, the viewer is simply there.
 */

const NAME = "film";

/**
 * @param {HTMLElement | undefined} from the picture that was chosen
 * @param {() => void} change opens what shows it
 * @param {() => HTMLElement | null} to the same picture there
 */
export async function grow(from, change, to) {
  if (!from || !document.startViewTransition || matchMedia("(prefers-reduced-motion: reduce)").matches) return change();
  from.style.viewTransitionName = NAME;
  document.documentElement.classList.add("is-opening");
  /** @type {HTMLElement | null} */
  let shown = null;
  const transition = document.startViewTransition(() => {
    from.style.viewTransitionName = "";
    change();
    shown = to();
    if (shown) shown.style.viewTransitionName = NAME;
  });
  // A browser may skip the motion, for example in a tab that nobody sees; the change is made all the same.
  transition.ready.catch(() => {});
  await transition.finished.catch(() => {});
  document.documentElement.classList.remove("is-opening");
  if (shown) /** @type {HTMLElement} */ (shown).style.viewTransitionName = "";
}
