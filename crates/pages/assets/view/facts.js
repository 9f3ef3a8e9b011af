/** @file The facts of a task as rows of a list. */

import { h } from "../core/dom.js";
import { length, moment, sizeText, span } from "../core/format.js";

/** @typedef {import("../core/api.js").Task} Task */

/** @param {Task} task @returns {[string, string][]} */
export function factsOf(task) {
  const took = task.completed_at && task.started_at ? span(task.completed_at - task.started_at) : "";
  const rows = [
    ["Model", task.model],
    ["Size", task.size === "adaptive" ? "as the picture" : sizeText(task.size)],
    [
      "Length",
      task.duration ? `${Math.round(task.duration * 100) / 100} s, ${task.frames} frames` : length(task.seconds),
    ],
    ["Sound", task.has_audio === undefined ? "" : task.has_audio ? "yes" : "no"],
    ["Seed", String(task.seed)],
    ["Engine", task.engine ?? ""],
    ["Made in", task.status === "completed" ? took : ""],
    ["Created", moment(task.created_at)],
    ["Kept until", task.expires_at ? moment(task.expires_at) : ""],
    ["ID", task.id],
  ];
  return /** @type {[string, string][]} */ (rows.filter(([, value]) => value));
}

/**
 * @param {[string, string][]} rows
 * @param {Set<string>} [marked] names of rows that stand out
 */
export const factList = (rows, marked = new Set()) =>
  h(
    "dl",
    { class: "facts" },
    rows.map(([name, value]) =>
      h("div", { class: marked.has(name) ? "is-marked" : null }, h("dt", {}, name), h("dd", {}, value)),
    ),
  );
