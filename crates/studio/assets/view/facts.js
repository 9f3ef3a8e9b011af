/** @file The facts of a task as rows of a list. */

import { copy } from "../core/clipboard.js";
import { h, icon } from "../core/dom.js";
import { costWords } from "../core/prices.js";
import { length, moment, sizeText, span } from "../core/format.js";
import { toast } from "./toast.js";

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
    ["Cost", costWords(task.cost)],
    ["Made in", task.status === "completed" ? took : ""],
    ["Created", moment(task.created_at)],
    ["Kept until", task.expires_at ? moment(task.expires_at) : ""],
    ["ID", task.id],
  ];
  return /** @type {[string, string][]} */ (rows.filter(([, value]) => value));
}

/** An id on one line, with a button that copies it. @param {string} id */
const idLine = (id) =>
  h(
    "dd",
    { class: "fact-id" },
    h("span", { title: id }, id),
    h(
      "button",
      {
        type: "button",
        class: "icon-button",
        "aria-label": "Copy the ID",
        onclick: () => copy(id).then(() => toast("Copied.")),
      },
      icon("copy"),
    ),
  );

/**
 * @param {[string, string][]} rows
 * @param {Set<string>} [marked] names of rows that stand out
 */
export const factList = (rows, marked = new Set()) =>
  h(
    "dl",
    { class: "facts" },
    rows.map(([name, value]) =>
      h("div", { class: marked.has(name) ? "is-marked" : null }, h("dt", {}, name), name === "ID" ? idLine(value) : h("dd", {}, value)),
    ),
  );
