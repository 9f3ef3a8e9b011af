/** @file The part of the form that shows which video is edited, and how far the edit may leave it. */

import { here } from "../core/api.js";
import { h, icon, setAttribute, setText } from "../core/dom.js";
import { shortened } from "../core/format.js";
import { field } from "./controls.js";

/** @typedef {import("../core/request.js").Form} Form */

/** @param {(change: Partial<Form>) => void} change */
export function sourcePart(change) {
  const picture = h("img", { alt: "", class: "source-picture" });
  const words = h("span", { class: "source-words", dir: "auto" });
  const stop = h(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "Stop editing",
      onclick: () => change({ source: null, prompt: "" }),
    },
    icon("close"),
  );
  const output = h("output", { class: "value" });
  const range = h("input", {
    type: "range",
    class: "range",
    min: 0,
    max: 1,
    step: 0.05,
    oninput: () => change({ strength: Number(range.value) }),
  });
  const strength = field("How far it may change", range, output);
  const root = h(
    "div",
    { class: "part source", hidden: true },
    h("div", { class: "source-card" }, picture, h("div", {}, h("span", { class: "hint" }, "Editing"), words), stop),
    strength.root,
  );
  return {
    root,
    /** @param {Form} form */
    show(form) {
      root.hidden = form.source === null;
      if (!form.source) return;
      const url = here(form.source.thumbnail_url);
      if (picture.getAttribute("src") !== url) setAttribute(picture, "src", url);
      setText(words, shortened(form.source.prompt, 90));
      range.value = String(form.strength);
      range.style.setProperty("--filled", String(form.strength));
      setText(
        output,
        form.strength <= 0.2 ? "a little" : form.strength < 0.6 ? "some" : form.strength < 0.9 ? "much" : "wholly",
      );
    },
  };
}
