/** @file What the gallery shows when there is nothing to show: a way to a first video, or back to all of them. */

import { h, setText } from "../core/dom.js";

/** Prompts that the embedded engine draws well and that show different shots. */
const IDEAS = [
  "A red balloon drifts over a calm sea at dawn",
  "A lighthouse in a storm at night, waves, lightning",
  "A fox walks through a snowy forest, sun behind the trees",
];

/** @param {(prompt?: string) => void} onCreate */
export function emptyState(onCreate) {
  const frames = h("div", { class: "empty-frames", "aria-hidden": "true" }, h("span"), h("span"), h("span"));
  const title = h("h2", {});
  const text = h("p", {});
  const ideas = h(
    "div",
    { class: "ideas" },
    IDEAS.map((idea) => h("button", { type: "button", class: "idea", onclick: () => onCreate(idea) }, idea)),
  );
  const root = h("div", { class: "empty", hidden: true }, frames, title, text, ideas);
  return {
    root,
    /** @param {"" | "nothing-yet" | "nothing-found"} what */
    show(what) {
      root.hidden = !what;
      ideas.hidden = frames.hidden = what !== "nothing-yet";
      setText(title, what === "nothing-yet" ? "Your first video" : "Nothing found");
      setText(
        text,
        what === "nothing-yet"
          ? "Describe a scene, or begin with one of these."
          : "No video matches the search and the filter.",
      );
    },
  };
}
