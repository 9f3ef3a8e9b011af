/** @file The arrow keys in the gallery: left and right in order, up and down to the nearest tile of the next row. */

/**
 * @param {HTMLElement} grid
 * @param {KeyboardEvent} event
 */
export function moveFocus(grid, event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const buttons = /** @type {HTMLElement[]} */ ([...grid.querySelectorAll(".tile-open")]);
  const at = buttons.findIndex((button) => button === document.activeElement);
  if (at < 0) return;
  const next = target(buttons, at, event.key);
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/** @param {HTMLElement[]} buttons @param {number} at @param {string} key */
function target(buttons, at, key) {
  switch (key) {
    case "ArrowLeft":
      return buttons[at - 1];
    case "ArrowRight":
      return buttons[at + 1];
    case "Home":
      return buttons[0];
    case "End":
      return buttons[buttons.length - 1];
    case "ArrowUp":
      return inNextRow(buttons.slice(0, at).reverse(), buttons[at]);
    case "ArrowDown":
      return inNextRow(buttons.slice(at + 1), buttons[at]);
    default:
      return undefined;
  }
}

/** The nearest of the first row of `others` that is not the row of `from`. @param {HTMLElement[]} others @param {HTMLElement} from */
function inNextRow(others, from) {
  const top = (/** @type {HTMLElement} */ button) => button.parentElement?.offsetTop ?? 0;
  const middle = (/** @type {HTMLElement} */ button) =>
    (button.parentElement?.offsetLeft ?? 0) + button.offsetWidth / 2;
  const first = others.find((button) => top(button) !== top(from));
  if (!first) return undefined;
  const row = others.filter((button) => top(button) === top(first));
  return row.reduce((best, one) =>
    Math.abs(middle(one) - middle(from)) < Math.abs(middle(best) - middle(from)) ? one : best,
  );
}
