/** @file One task in the gallery: its picture first, then a line of words and a line of facts. */

import { here } from "../core/api.js";
import { h, icon, setAttribute, setStyle, setText } from "../core/dom.js";
import { SKETCH, sketches } from "../core/experience.js";
import { reasonOf } from "../core/failure.js";
import { ago, isUnfinished, length, shortened, sides, statusWord } from "../core/format.js";
import { isFavourite, toggleFavourite } from "../core/kept.js";
import { sizeName } from "../core/models.js";
import * as tasks from "../core/tasks.js";
import { previewOf } from "./previews.js";
import { progressWords } from "./progress.js";
import { scrub } from "./scrub.js";

/** @typedef {import("../core/api.js").Task} Task */

/** Beyond these a frame would be a strip. */
const RATIO_MIN = 0.5;
const RATIO_MAX = 2.4;

/** @param {Task} task */
const kind = (task) => (task.draft ? "Draft" : task.draft_task_id ? "Final" : task.edit_task_id ? "Edit" : "");

/** @param {Task} task */
const facts = (task) =>
  [length(task.seconds), task.size === "adaptive" ? "" : sizeName(task.size), ago(task.created_at)]
    .filter(Boolean)
    .join(" · ");

/**
 * @param {string} id
 * @param {{onOpen: (id: string) => void, onCompare: (id: string) => void}} events
 */
export function tile(id, { onOpen, onCompare }) {
  const image = h("img", { alt: "", loading: "lazy", decoding: "async", draggable: "false" });
  const empty = h("span", { class: "frame-empty" });
  const badge = h("span", { class: "badge" });
  const bar = h("span", { class: "bar" }, h("span", { class: "bar-fill" }));
  const state = h("span", { class: "frame-state" }, h("span", { class: "frame-words" }), bar);
  const frame = h("span", { class: "frame" }, empty, image, state);
  const words = h("span", { class: "tile-words", dir: "auto" });
  // Not on the picture: an engine may have written there itself.
  const known = h("span");
  const sketch = h("span", { class: "badge", title: SKETCH }, "sketch");
  // What is seen is the name of the button; the state, which its picture shows, is only heard.
  const heard = h("span", { class: "unseen" });
  const meta = h("span", { class: "tile-facts" }, badge, sketch, known, heard);
  const open = h(
    "button",
    { type: "button", class: "tile-open", "data-id": id, onclick: () => onOpen(id) },
    frame,
    words,
    meta,
  );
  const compare = h(
    "button",
    { type: "button", class: "icon-button tile-compare", title: "Compare", onclick: () => onCompare(id) },
    icon("compare"),
  );
  const star = h(
    "button",
    { type: "button", class: "icon-button tile-star", title: "Favourite", onclick: () => toggleFavourite(id) },
    icon("star"),
  );
  const root = h("li", { class: "tile" }, open, compare, star);
  scrub(frame, id);
  let status = "";
  /** @type {Node | undefined} */
  let mark;

  /** @param {Task} task */
  function showPicture(task) {
    const url = task.status === "completed" ? here(task.thumbnail_url) : isUnfinished(task) ? previewOf(id) : "";
    if (image.getAttribute("src") !== url) setAttribute(image, "src", url || null);
    image.hidden = !url;
    image.classList.toggle("is-preview", task.status !== "completed");
  }

  /** @param {Task} task */
  function showState(task) {
    const text = isUnfinished(task) ? progressWords(task) : "";
    state.hidden = !text;
    setText(state.firstElementChild, text);
    setStyle(bar, { "--progress": task.progress / 100 });
    bar.hidden = task.status !== "in_progress";
  }

  /** @param {Task} task */
  function showFailure(task) {
    const text =
      task.status === "failed"
        ? task.error?.code === "cancelled"
          ? "Cancelled"
          : reasonOf(task) || "Failed"
        : "";
    empty.replaceChildren(
      ...(text ? [icon(task.error?.code === "cancelled" ? "close" : "fail"), h("span", {}, shortened(text, 120))] : []),
    );
  }

  /** What grows old although nothing else changes. */
  function age() {
    const task = tasks.get(id);
    if (!task) return;
    setText(known, facts(task));
    setText(heard, ` ${statusWord(task)}`);
  }

  function update() {
    const task = tasks.get(id);
    if (!task) return;
    const [width, height] = sides(task.size);
    setStyle(root, { "--ratio": Math.min(RATIO_MAX, Math.max(RATIO_MIN, width / height)).toFixed(4) });
    if (status && status !== task.status) root.classList.add("is-new");
    if (status !== task.status) showFailure(task);
    status = task.status;
    root.dataset.status = status;
    showPicture(task);
    showState(task);
    setText(badge, kind(task));
    badge.hidden = !kind(task);
    sketch.hidden = !sketches(task.engine);
    setText(words, shortened(task.prompt, 140));
    compare.hidden = star.hidden = status !== "completed";
    setAttribute(compare, "aria-label", `Compare: ${shortened(task.prompt, 100)}`);
    setAttribute(star, "aria-label", `Favourite: ${shortened(task.prompt, 100)}`);
    setAttribute(star, "aria-pressed", String(isFavourite(id)));
    age();
  }

  /** @param {boolean | null} isChosen `null`: nothing is selected now */
  function select(isChosen) {
    root.classList.toggle("is-chosen", isChosen === true);
    // Most tiles are never selected.
    if (isChosen !== null) mark ??= frame.appendChild(h("span", { class: "frame-mark" }, icon("check")));
    setAttribute(open, "aria-pressed", isChosen === null ? null : String(isChosen));
  }

  update();
  return { root, update, age, open, frame, select };
}
