/** @file Waiting tasks as one strip, which opens into a list of lines. */

import { ApiError, cancel } from "../core/api.js";
import { h, icon, reconcile, setAttribute, setText } from "../core/dom.js";
import { plural, shortened } from "../core/format.js";
import * as tasks from "../core/tasks.js";
import { confirm } from "../view/dialog.js";
import { toast } from "../view/toast.js";

/** @typedef {import("../core/api.js").Task} Task */

/** Lines of the open strip; more would only be scrolled past. */
const LINES_MAX = 100;

/** The next one first: by its place, and by its age where the service tells no place. @param {Task} a @param {Task} b */
const byPlace = (a, b) => (a.queue_position ?? 0) - (b.queue_position ?? 0) || (a.id < b.id ? -1 : 1);

/** Cancels tasks one after the other; what has begun meanwhile, or has ended, stays. @param {Task[]} chosen */
async function stop(chosen) {
  let stopped = 0;
  try {
    for (const { id } of chosen) {
      if (tasks.get(id)?.status !== "queued") continue;
      tasks.put([await cancel(id)]);
      stopped += 1;
    }
    toast(`Cancelled ${plural(stopped, "video")}.`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    toast(`Cancelled ${plural(stopped, "video")}. ${error.message}`, { isError: true });
  }
}

/** @param {(id: string) => void} onOpen */
export function waitingStrip(onOpen) {
  /** @type {Task[]} */
  let waiting = [];
  let isOpen = false;
  /** @type {Map<string, ReturnType<typeof line>>} */
  const lines = new Map();
  const count = h("span", { class: "waiting-count" });
  const next = h("span", { class: "waiting-next" });
  const list = h("ul", { class: "waiting-list", id: "waiting", "aria-label": "Waiting videos" });
  const rest = h("p", { class: "hint" });
  const show = h("button", { type: "button", class: "button is-quiet", "aria-controls": "waiting", onclick: toggle });
  const all = h("button", { type: "button", class: "button is-quiet is-danger-text", onclick: stopAll }, "Cancel all");
  const root = h(
    "section",
    { class: "waiting", "aria-label": "Waiting", hidden: true },
    h("div", { class: "waiting-bar" }, h("p", { class: "waiting-words" }, count, next), show, all),
    list,
    rest,
  );

  function toggle() {
    isOpen = !isOpen;
    draw();
  }

  async function stopAll() {
    const chosen = [...waiting].reverse();
    const question = `Cancel ${plural(chosen.length, "waiting video")}?`;
    if (await confirm(question, "None of them will be made.", "Cancel all", "Keep them")) await stop(chosen);
  }

  function draw() {
    root.hidden = !waiting.length;
    setText(count, `${waiting.length} waiting`);
    next.replaceChildren(...(waiting.length ? [", next: ", h("bdi", {}, shortened(waiting[0].prompt, 60))] : []));
    setText(show, isOpen ? "Hide them" : "Show them");
    setAttribute(show, "aria-expanded", String(isOpen));
    list.hidden = !isOpen;
    const shown = isOpen ? waiting.slice(0, LINES_MAX) : [];
    reconcile(list, lines, shown.map(({ id }) => id), (id) => line(id, onOpen));
    setText(rest, isOpen && waiting.length > LINES_MAX ? `And ${waiting.length - LINES_MAX} more.` : "");
    rest.hidden = !rest.textContent;
  }

  return {
    root,
    opener: show,
    /** @param {Task[]} queued none: there is no strip */
    show(queued) {
      waiting = [...queued].sort(byPlace);
      draw();
    },
  };
}

/** @param {string} id @param {(id: string) => void} onOpen */
function line(id, onOpen) {
  const words = shortened(tasks.get(id)?.prompt ?? "", 120);
  const open = h("button", { type: "button", class: "waiting-open", dir: "auto", onclick: () => onOpen(id) }, words);
  const end = h(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": `Cancel: ${words}`,
      title: "Cancel",
      onclick: () => stop([tasks.get(id)].filter((task) => task !== undefined)),
    },
    icon("close"),
  );
  return { root: h("li", { class: "waiting-line" }, open, end) };
}
