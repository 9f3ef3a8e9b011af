/** @file The prompt as the title of the viewer: some lines of it, all on demand, and on the clipboard. */

import { copy } from "../core/clipboard.js";
import { h, icon, setAttribute, setText } from "../core/dom.js";
import { toast } from "./toast.js";

/** The task whose whole prompt is shown. */
let whole = "";

/** @param {import("../core/api.js").Task} task */
export function promptTitle({ id, prompt }) {
  const text = h("h2", { class: "side-prompt", id: "side-prompt", tabindex: -1, dir: "auto" }, prompt);
  const more = h("button", {
    type: "button",
    class: "button is-quiet",
    "data-action": "whole",
    "aria-controls": "side-prompt",
    onclick: () => ((whole = whole === id ? "" : id), show()),
  });
  const copies = h(
    "button",
    {
      type: "button",
      class: "button is-quiet",
      "data-action": "copy-prompt",
      onclick: () => copy(prompt).then(() => toast("Copied.")),
    },
    icon("copy"),
    "Copy prompt",
  );
  const root = h("div", { class: "prompt-title" }, text, h("div", { class: "prompt-buttons" }, more, copies));

  function show() {
    const isWhole = whole === id;
    text.classList.toggle("is-whole", isWhole);
    setText(more, isWhole ? "Show less" : "Show all");
    setAttribute(more, "aria-expanded", String(isWhole));
    more.hidden = !isWhole && text.scrollHeight <= text.clientHeight;
  }

  show();
  // Whether lines are hidden shows once it is laid out, and changes with the width.
  new ResizeObserver(show).observe(text);
  return root;
}
