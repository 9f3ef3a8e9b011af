/** @file Modal dialogs: the browser keeps the focus inside and brings it back; Escape and the backdrop close them. */

import { h, icon } from "../core/dom.js";

/**
 * @param {string} name for screen readers
 * @param {string} className
 * @param {() => void} [onClose]
 */
export function dialog(name, className, onClose = () => {}) {
  const root = /** @type {HTMLDialogElement} */ (h("dialog", { class: className, "aria-label": name }));
  root.addEventListener("click", (event) => event.target === root && root.close());
  root.addEventListener("close", onClose);
  document.body.append(root);
  return root;
}

/** @param {() => void} onClick */
export const closeButton = (onClick) =>
  h(
    "button",
    { type: "button", class: "icon-button dialog-close", "aria-label": "Close", onclick: onClick },
    icon("close"),
  );

/**
 * Asks before something that cannot be undone.
 * @param {string} question
 * @param {string} text
 * @param {string} verb on the button
 * @param {string} [keep] on the button that does nothing, which has the focus
 * @returns {Promise<boolean>}
 */
export function confirm(question, text, verb, keep = "Keep") {
  return new Promise((resolve) => {
    const root = dialog(question, "dialog is-small", () => {
      resolve(root.returnValue === "yes");
      root.remove();
    });
    root.append(
      h("h2", {}, question),
      h("p", {}, text),
      h(
        "form",
        { method: "dialog", class: "dialog-buttons" },
        h("button", { class: "button", value: "no" }, keep),
        h("button", { class: "button is-danger", value: "yes" }, verb),
      ),
    );
    root.showModal();
  });
}
