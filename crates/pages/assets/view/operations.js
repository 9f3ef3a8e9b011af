/** @file What operators see of the whole service: the queue, running tasks, workers and their devices. */

import { operations, sleep } from "../core/api.js";
import { h } from "../core/dom.js";
import { plural, span } from "../core/format.js";
import { closeButton, dialog } from "./dialog.js";

/** @typedef {import("../core/api.js").Operations} Operations */
/** @typedef {import("../core/dom.js").Child} Child */

const REFRESH_MS = 2000;

/** Shows it, and reads it again as long as it is open. */
export function showOperations() {
  const root = dialog("Service", "dialog is-wide", () => root.remove());
  const body = h("div", { class: "service", role: "region", "aria-label": "State of the service" });
  root.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, "Service"),
      closeButton(() => root.close()),
    ),
    body,
  );
  root.showModal();
  follow(root, body);
}

/** @param {HTMLDialogElement} root @param {HTMLElement} body */
async function follow(root, body) {
  while (root.open) {
    if (!document.hidden) {
      try {
        body.replaceChildren(...sections(await operations()));
        body.dataset.state = "current";
      } catch (error) {
        // What was read last stays, behind a word that it is old.
        body.querySelector(".notice")?.remove();
        body.prepend(h("p", { class: "notice is-error" }, /** @type {Error} */ (error).message));
        body.dataset.state = "old";
      }
    }
    await sleep(REFRESH_MS);
  }
}

/** @param {Operations} now */
function sections(now) {
  const { completed, failed } = now.last_minute;
  const waiting = now.queue.reduce((sum, one) => sum + one.waiting, 0);
  return [
    h(
      "p",
      { class: "service-now" },
      `${waiting} waiting, ${now.queue.reduce((sum, one) => sum + one.running, 0)} running. `,
      h("span", {}, `In the last minute: ${completed} completed, ${failed} failed.`),
    ),
    table("Queue", ["Model", "Waiting", "Running", "Oldest"], now.queue.map(queued), "No task waits or runs."),
    table("Running", ["Task", "Progress", "For"], now.running.map(running), "No task runs."),
    table(
      "Workers",
      ["Worker", "Engines", "Busy", "Seen"],
      now.workers.map(worker),
      "There are no live workers: accepted tasks wait.",
    ),
  ];
}

/**
 * @param {string} name
 * @param {string[]} heads
 * @param {Child[][]} rows
 * @param {string} empty what there is instead of no rows
 */
function table(name, heads, rows, empty) {
  const cells = (/** @type {Child[]} */ row) => h("tr", {}, row.map((cell) => h("td", {}, cell)));
  return h(
    "section",
    {},
    h("h3", {}, name),
    rows.length
      ? h(
          "table",
          { "aria-label": name },
          h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
          h("tbody", {}, rows.map(cells)),
        )
      : h("p", { class: "hint" }, empty),
  );
}

/** @param {Operations["queue"][0]} one @returns {Child[]} */
const queued = (one) => [
  one.model,
  one.waiting,
  one.running,
  one.oldest_waiting_seconds === null ? "–" : span(one.oldest_waiting_seconds),
];

/** @param {Operations["running"][0]} task @returns {Child[]} */
const running = (task) => [
  two(task.model, task.project),
  h(
    "span",
    { class: "service-progress" },
    h("span", { class: "bar" }, h("span", { class: "bar-fill", style: { "--progress": task.progress / 100 } })),
    `${task.progress} %`,
  ),
  span(task.seconds),
];

/** @param {Operations["workers"][0]} one @returns {Child[]} */
function worker(one) {
  const engines = new Map(one.models.map(({ engine, device }) => [engine, device]));
  const state = one.state === "serving" ? "" : `, ${one.state}`;
  return [
    two(one.host, `${one.id}${state}`),
    h(
      "ul",
      {},
      [...engines].map(([engine, device]) => h("li", {}, two(engine, device ?? "its own device"))),
    ),
    h("span", { title: `${one.running} of ${plural(one.slots, "slot")}` }, `${one.running}/${one.slots}`),
    `${one.seen_seconds_ago} s ago`,
  ];
}

/** A line, and a smaller one below it. @param {string} first @param {string} second */
const two = (first, second) => h("span", { class: "service-two" }, first, h("span", { class: "hint" }, second));
