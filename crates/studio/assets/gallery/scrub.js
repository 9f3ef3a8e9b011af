/** @file Shows a video's frames while the pointer moves over its picture: left is its beginning, right its end. */

import { h, setStyle } from "../core/dom.js";
import * as tasks from "../core/tasks.js";
import { gridOf, sheetOf } from "./previews.js";

/** A pointer that only passes over a tile loads nothing. */
const REST_MS = 120;

/**
 * @param {HTMLElement} frame around the picture
 * @param {string} id
 */
export function scrub(frame, id) {
  const sheet = h("div", { class: "sheet", "aria-hidden": "true" });
  let timer = 0;
  let isOver = false;

  frame.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "touch" || tasks.get(id)?.status !== "completed") return;
    isOver = true;
    timer = setTimeout(show, REST_MS);
  });
  frame.addEventListener("pointermove", (event) => isOver && place(event));
  frame.addEventListener("pointerleave", () => {
    isOver = false;
    clearTimeout(timer);
    sheet.remove();
  });

  async function show() {
    const task = tasks.get(id);
    if (!task) return;
    try {
      const url = await sheetOf(id);
      const { columns, rows } = gridOf(task);
      setStyle(sheet, { "background-image": `url("${url}")`, "background-size": `${columns * 100}% ${rows * 100}%` });
      if (isOver) frame.append(sheet);
    } catch {
      // Without its frames the poster stays.
    }
  }

  /** @param {PointerEvent} event */
  function place(event) {
    const task = tasks.get(id);
    if (!task) return;
    const box = frame.getBoundingClientRect();
    const share = Math.min(0.999, Math.max(0, (event.clientX - box.left) / box.width));
    const { cells, columns, rows } = gridOf(task);
    const cell = Math.floor(share * cells);
    const [x, y] = [cell % columns, Math.floor(cell / columns)];
    const percent = (/** @type {number} */ at, /** @type {number} */ of) => (of > 1 ? (at / (of - 1)) * 100 : 0);
    setStyle(sheet, { "background-position": `${percent(x, columns)}% ${percent(y, rows)}%`, "--at": share });
  }
}
