/** @file A short message at the foot of the page, which screen readers hear too. */

import { announce, h } from "../core/dom.js";

const SHOWN_MS = 5000;
/** A popover: it lies above open dialogs. */
const root = h("div", { class: "toasts", popover: "manual" });

export const toasts = () => root;

/** @param {string} text @param {{isError?: boolean}} [options] */
export function toast(text, { isError = false } = {}) {
  const line = h("p", { class: isError ? "toast is-error" : "toast" }, text);
  root.append(line);
  // Shown anew, it comes above a dialog that was opened since.
  if (root.matches(":popover-open")) root.hidePopover();
  root.showPopover();
  announce(text, isError ? "assertive" : "polite");
  setTimeout(() => {
    line.remove();
    if (!root.childElementCount && root.matches(":popover-open")) root.hidePopover();
  }, SHOWN_MS);
}
