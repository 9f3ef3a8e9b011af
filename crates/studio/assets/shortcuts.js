/** @file The keys that work anywhere on the page. Those of a single video are the viewer's. */

import { hasKeys } from "./view/help.js";

/**
 * @param {Record<string, () => void>} keys what each does
 */
export function shortcuts(keys) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = target.closest("input:not([type=range], [type=radio], [type=checkbox]), textarea, select");
    const isEscape = event.key === "Escape";
    if ((isTyping && !isEscape) || document.querySelector("dialog[open]") || !(isEscape || hasKeys())) return;
    const run = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!run) return;
    if (!isEscape) event.preventDefault();
    run();
  });
}
