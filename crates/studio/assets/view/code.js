/** @file A request as code, to copy: curl, Python or JavaScript. The key never appears in it. */

import { copy } from "../core/clipboard.js";
import { h } from "../core/dom.js";
import { LANGUAGES } from "../core/snippets.js";
import { closeButton, dialog } from "./dialog.js";
import { toast } from "./toast.js";

/**
 * @param {{body: Record<string, unknown>, isWhole: boolean}} request
 * @param {string} caution shown where parts of the request are not known
 */
export function showCode({ body, isWhole }, caution) {
  const root = dialog("Copy as code", "dialog is-code", () => root.remove());
  const code = h("code", {});
  const tabs = LANGUAGES.map((language, n) =>
    h("button", { type: "button", class: "tab", "aria-pressed": "false", onclick: () => choose(n) }, language.name),
  );
  /** @param {number} chosen */
  function choose(chosen) {
    code.textContent = LANGUAGES[chosen].text(body);
    tabs.forEach((tab, n) => tab.setAttribute("aria-pressed", String(n === chosen)));
  }
  const take = () => copy(code.textContent ?? "").then(() => toast("Copied."));
  choose(0);
  root.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, "Copy as code"),
      closeButton(() => root.close()),
    ),
    h(
      "div",
      { class: "code-bar" },
      h("div", { class: "tabs", role: "group", "aria-label": "Language" }, tabs),
      h("button", { type: "button", class: "button is-primary", onclick: () => take() }, "Copy"),
    ),
    h("pre", { tabindex: 0, class: "code", role: "region", "aria-label": "Code" }, code),
    h(
      "p",
      { class: "hint" },
      isWhole ? "Put your key into the variable KINORA_KEY." : `${caution} Put your key into the variable KINORA_KEY.`,
    ),
  );
  root.showModal();
}
