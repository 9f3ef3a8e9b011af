/** @file What the gallery shows when there is nothing to show: a way to a first video, or back to all of them. */

import { h, setText } from "../core/dom.js";
import { shortened } from "../core/format.js";

/** Prompts that the embedded engine draws well and that show different shots. */
const IDEAS = [
  "A red balloon drifts over a calm sea at dawn",
  "A lighthouse in a storm at night, waves, lightning",
  "A fox walks through a snowy forest, sun behind the trees",
];

/** What a filter that shows nothing says, alone and beside a search. @type {Record<string, [string, string]>} */
const NOTHING = {
  all: ["", "No video matches"],
  unfinished: ["Nothing is being made now.", "Among the videos in the making, none matches"],
  completed: ["No video is finished yet.", "Among the finished videos, none matches"],
  drafts: ["There are no drafts. “Draft first” in the form makes one.", "Among the drafts, none matches"],
  failed: ["No video has failed.", "Among the failed videos, none matches"],
  favourites: ["The star on a video makes it a favourite.", "Among the favourites, none matches"],
};

/**
 * @param {(prompt?: string) => void} onCreate
 * @param {() => void} onClear
 */
export function emptyState(onCreate, onClear) {
  const frames = h("div", { class: "empty-frames", "aria-hidden": "true" }, h("span"), h("span"), h("span"));
  const title = h("h2", {});
  const text = h("p", {});
  const ideas = h(
    "div",
    { class: "ideas" },
    IDEAS.map((idea) => h("button", { type: "button", class: "idea", onclick: () => onCreate(idea) }, idea)),
  );
  const clear = h("button", { type: "button", class: "button", onclick: onClear }, "Clear search and filter");
  const root = h("div", { class: "empty", hidden: true }, frames, title, text, ideas, clear);
  return {
    root,
    /**
     * @param {"" | "nothing-yet" | "nothing-found"} what
     * @param {string} filter the name of the chosen one
     * @param {string} query as it was typed
     */
    show(what, filter, query) {
      const isFirst = what === "nothing-yet";
      const [alone, beside] = NOTHING[filter];
      root.hidden = !what;
      ideas.hidden = frames.hidden = !isFirst;
      clear.hidden = isFirst;
      setText(title, isFirst ? "Your first video" : query ? "Nothing found" : "Nothing here");
      const found = query ? `${beside} “${shortened(query, 40)}”.` : alone;
      setText(text, isFirst ? "Describe a scene, or begin with one of these." : found);
    },
  };
}
