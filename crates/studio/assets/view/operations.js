/**
 * @file What operators see of the whole service: the queue, running tasks, workers and their devices. Rows stay the
 * same elements while what they show changes: a selection in them lasts, and their bars move.
 */

import { control, operations, sleep } from "../core/api.js";
import { h, reconcile, setAttribute, setStyle, setText } from "../core/dom.js";
import { megabytes, plural, span } from "../core/format.js";
import { closeButton, dialog } from "./dialog.js";

/** @typedef {import("../core/api.js").Operations} Operations */
/** @typedef {import("../core/api.js").OperationsDevice} OperationsDevice */
/** @typedef {import("../core/api.js").OperationsDeviceEngine} OperationsDeviceEngine */
/** @typedef {import("../core/api.js").OperationsPlace} OperationsPlace */
/** @typedef {import("../core/api.js").Pause} Pause */

const REFRESH_MS = 2000;
/** What an engine does on a device that it shares. */
const TENANT_WORDS = { away: "not loaded", working: "working", idle: "loaded, idle", leaving: "leaving" };

/** Shows it, and reads it again as long as it is open. @param {boolean} canPause whether the key may pause models */
export function showOperations(canPause) {
  const root = dialog("Service", "dialog is-wide", () => root.remove());
  const page = state(canPause);
  root.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, "Service"),
      closeButton(() => root.close()),
    ),
    page.root,
  );
  root.showModal();
  follow(root, page);
}

/** @param {HTMLDialogElement} root @param {ReturnType<typeof state>} page */
async function follow(root, page) {
  while (root.open) {
    if (!document.hidden) {
      try {
        page.show(await operations());
      } catch (error) {
        page.showError(/** @type {Error} */ (error).message);
      }
    }
    await sleep(REFRESH_MS);
  }
}

/** The state of the service; empty until it is shown for the first time. @param {boolean} canPause */
function state(canPause) {
  const sums = h("span", { class: "service-sums" });
  const minute = h("span", { class: "hint" });
  // What was read last stays, behind a word that it is old.
  const notice = h("p", { class: "notice is-error", hidden: true });
  const queue = table("Queue", ["Model", "Waiting", "Running", "Oldest"], "No task waits or runs.", queueRow);
  const heads = canPause ? ["Model", "State", "Action"] : ["Model", "State"];
  const models = table("Pauses", heads, "", () => pauseRow(canPause, act));
  const running = table("Running", ["Task", "Progress", "For"], "No task runs.", runningRow);
  const none = "No worker lives: accepted tasks wait.";
  const workers = table("Workers", ["Worker", "Engines", "Busy", "Seen"], none, workerRow);
  const devices = table("Devices", ["Device", "Engines", "Memory", "Swaps"], "", deviceRow);
  const places = table("Trouble", ["Device or server", "State", "Failures", "Last error"], "", placeRow);
  const body = h(
    "div",
    { class: "service", hidden: true },
    h("p", { class: "service-now" }, sums, " ", minute),
    queue.root,
    running.root,
    models.root,
    workers.root,
    places.root,
    devices.root,
  );
  const page = {
    root: h("div", { class: "service", role: "region", "aria-label": "State of the service" }, notice, body),
    /** @param {Operations} now */
    show(now) {
      const sum = (/** @type {"waiting" | "running"} */ of) => now.queue.reduce((all, one) => all + one[of], 0);
      const { completed, failed } = now.last_minute;
      setText(sums, `${sum("waiting")} waiting, ${sum("running")} running.`);
      setText(minute, `In the last minute: ${completed} completed, ${failed} failed.`);
      queue.show(now.queue.map((one) => [one.model, one]));
      running.show(now.running.map((one) => [one.id, one]));
      const pausable = pausableModels(now, canPause);
      models.show(pausable.map((one) => [one.model ?? "", one]));
      models.root.hidden = !pausable.length;
      workers.show(now.workers.map((one) => [one.id, one]));
      const shared = sharedDevices(now);
      devices.show(shared.map((one) => [`${one.worker.id} ${one.device.name}`, one]));
      // Few services share a device.
      devices.root.hidden = !shared.length;
      const troubled = troubledPlaces(now);
      places.show(troubled.map((one) => [`${one.worker.id} ${one.place.engine} ${one.place.name}`, one]));
      places.root.hidden = !troubled.length;
      body.hidden = false;
      notice.hidden = true;
    },
    /** @param {string} words */
    showError(words) {
      setText(notice, words);
      notice.hidden = false;
    },
  };
  /** @param {"pause" | "resume"} action @param {string | null} model */
  async function act(action, model) {
    try {
      page.show(await control(action, model));
    } catch (error) {
      page.showError(/** @type {Error} */ (error).message);
    }
  }
  return page;
}

/**
 * @typedef {object} PausableModel
 * @property {string | null} model `null` stands for all models
 * @property {number} now Unix seconds
 * @property {Pause} [pause]
 */

/**
 * All models as one, and each that a worker serves, a task waits for or somebody has paused; for others than those
 * who may pause them, the paused ones alone.
 * @param {Operations} now
 * @param {boolean} canPause
 * @returns {PausableModel[]}
 */
function pausableModels(now, canPause) {
  const known = [now.queue, now.paused, ...now.workers.map(({ models }) => models)].flat();
  const names = new Set(known.map(({ model }) => model).filter((model) => model !== null));
  return [null, ...[...names].sort()]
    .map((model) => ({ model, now: now.at, pause: now.paused.find((one) => one.model === model) }))
    .filter(({ pause }) => canPause || pause);
}

/**
 * @template T
 * @typedef {{root: HTMLElement, show: (item: T) => void}} Row
 */

/**
 * A table with a row for each key.
 * @template T
 * @param {string} name
 * @param {string[]} heads
 * @param {string} empty what there is instead of no rows
 * @param {() => Row<T>} make an empty row
 */
function table(name, heads, empty, make) {
  /** @type {Map<string, Row<T>>} */
  const rows = new Map();
  const body = h("tbody");
  const grid = h(
    "table",
    { "aria-label": name },
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    body,
  );
  const nothing = h("p", { class: "hint" }, empty);
  return {
    root: h("section", {}, h("h3", {}, name), grid, nothing),
    /** @param {[string, T][]} items by their keys */
    show(items) {
      reconcile(
        body,
        rows,
        items.map(([key]) => key),
        make,
      );
      for (const [key, item] of items) rows.get(key)?.show(item);
      grid.hidden = !items.length;
      nothing.hidden = items.length > 0;
    },
  };
}

/** A row of so many cells. @param {...HTMLElement} contents of its cells */
const tableRow = (...contents) => h("tr", {}, contents.map((content) => h("td", {}, content)));

/** @returns {Row<Operations["queue"][0]>} */
function queueRow() {
  const [model, waiting, running, oldest] = Array.from({ length: 4 }, () => h("span"));
  return {
    root: tableRow(model, waiting, running, oldest),
    show(one) {
      setText(model, one.model);
      setText(waiting, String(one.waiting));
      setText(running, String(one.running));
      setText(oldest, one.oldest_waiting_seconds === null ? "–" : span(one.oldest_waiting_seconds));
    },
  };
}

/**
 * @param {boolean} canPause
 * @param {(action: "pause" | "resume", model: string | null) => Promise<void>} act
 * @returns {Row<PausableModel>}
 */
function pauseRow(canPause, act) {
  const [name, words] = [h("span"), two()];
  /** @type {PausableModel} */
  let shown;
  const button = h("button", { type: "button", class: "button is-quiet" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    await act(shown.pause ? "resume" : "pause", shown.model);
    button.disabled = false;
  });
  return {
    root: tableRow(name, words.root, ...(canPause ? [button] : [])),
    show(one) {
      shown = one;
      const title = one.model ?? "All models";
      setText(name, title);
      words.show(one.pause ? `paused for ${span(one.now - one.pause.since)}` : "not paused", one.pause?.reason ?? "");
      setText(button, one.pause ? "Resume" : "Pause");
      setAttribute(button, "aria-label", `${one.pause ? "Resume" : "Pause"} ${one.model ?? "all models"}`);
    },
  };
}

/** @returns {Row<Operations["running"][0]>} */
function runningRow() {
  const task = two();
  const fill = h("span", { class: "bar-fill" });
  const percent = h("span");
  const since = h("span");
  const progress = h("span", { class: "service-progress" }, h("span", { class: "bar" }, fill), percent);
  return {
    root: tableRow(task.root, progress, since),
    show(one) {
      task.show(one.model, one.project);
      setStyle(fill, { "--progress": one.progress / 100 });
      setText(percent, `${one.progress} %`);
      setText(since, span(one.seconds));
    },
  };
}

/** The device that a model's engine shares with others. @param {Operations["workers"][0]} worker @param {string} model */
const sharedBy = (worker, model) =>
  worker.devices.find(({ engines }) => engines.some(({ models }) => models.includes(model)))?.name;

/** @returns {Row<Operations["workers"][0]>} */
function workerRow() {
  const name = two();
  const list = h("ul");
  const [busy, seen] = [h("span"), h("span")];
  /** @type {Map<string, ReturnType<typeof engineItem>>} */
  const items = new Map();
  return {
    root: tableRow(name.root, list, busy, seen),
    show(one) {
      name.show(one.host, one.state === "serving" ? one.id : `${one.id}, ${one.state}`);
      const engines = new Map(one.models.map(({ model, engine, device }) => [engine, device ?? sharedBy(one, model)]));
      reconcile(list, items, [...engines.keys()], engineItem);
      for (const [engine, device] of engines) items.get(engine)?.show(engine, device ?? "its own device");
      setText(busy, `${one.running}/${one.slots}`);
      setAttribute(busy, "title", `${one.running} of ${plural(one.slots, "slot")}`);
      setText(seen, `${one.seen_seconds_ago} s ago`);
    },
  };
}

function engineItem() {
  const words = two();
  return { root: h("li", {}, words.root), show: words.show };
}

/**
 * @typedef {object} SharedDevice
 * @property {Operations["workers"][0]} worker
 * @property {OperationsDevice} device
 * @property {Operations["running"]} running tasks of the worker
 */

/** The devices that engines share, of all workers. @param {Operations} now @returns {SharedDevice[]} */
const sharedDevices = (now) =>
  now.workers.flatMap((worker) => {
    const running = now.running.filter((task) => task.worker === worker.id);
    return worker.devices.map((device) => ({ worker, device, running }));
  });

/**
 * @typedef {object} TroubledPlace
 * @property {Operations["workers"][0]} worker
 * @property {OperationsPlace} place
 */

/** The devices and servers that do not take every task. @param {Operations} now @returns {TroubledPlace[]} */
const troubledPlaces = (now) =>
  now.workers.flatMap((worker) =>
    worker.places.filter((place) => place.state !== "available").map((place) => ({ worker, place })),
  );

/** @returns {Row<TroubledPlace>} */
function placeRow() {
  const [name, state] = [two(), two()];
  const [failures, error] = [h("span"), h("span", { class: "service-error" })];
  return {
    root: tableRow(name.root, state.root, failures, error),
    show({ worker, place }) {
      name.show(place.name, `${place.engine} on ${worker.host}`);
      const since = place.quarantined_seconds ? `${span(place.quarantined_seconds)} in all` : "";
      state.show(place.state, since);
      setText(failures, `${place.failures} of ${plural(place.attempts, "run")}`);
      setText(error, place.last_error ?? "–");
    },
  };
}

/** @returns {Row<SharedDevice>} */
function deviceRow() {
  const name = two();
  const list = h("ul");
  const fill = h("span", { class: "bar-fill" });
  const [used, swaps] = [h("span"), h("span", { title: "Engines that left for another since the worker started" })];
  const memory = h("span", { class: "service-memory" }, used, h("span", { class: "bar" }, fill));
  /** @type {Map<string, ReturnType<typeof tenantItem>>} */
  const items = new Map();
  return {
    root: tableRow(name.root, list, memory, swaps),
    show({ worker, device, running }) {
      name.show(device.name, worker.host);
      reconcile(
        list,
        items,
        device.engines.map((one) => one.engine),
        tenantItem,
      );
      for (const one of device.engines) {
        const tasks = running.filter((task) => one.models.includes(task.model));
        items.get(one.engine)?.show(one, tasks.length);
      }
      setStyle(fill, { "--progress": Math.min(1, device.used_megabytes / device.memory_megabytes) });
      setText(used, `${megabytes(device.used_megabytes)} of ${megabytes(device.memory_megabytes)}`);
      setText(swaps, String(device.swaps));
    },
  };
}

/** An engine that shares a device. */
function tenantItem() {
  const words = two();
  const root = h("li", {}, words.root);
  return {
    root,
    /** @param {OperationsDeviceEngine} one @param {number} tasks that it works on */
    show(one, tasks) {
      // Most engines have one model, of the same name.
      const models = one.models.join(", ");
      const doing = one.state === "working" && tasks ? `working on ${plural(tasks, "task")}` : TENANT_WORDS[one.state];
      words.show(models === one.engine ? models : `${one.engine}: ${models}`, `${doing}, ${megabytes(one.memory_megabytes)}`);
      setAttribute(root, "data-state", one.state);
    },
  };
}

/** A line, and a smaller one below it. */
function two() {
  const [first, second] = [h("span"), h("span", { class: "hint" })];
  return {
    root: h("span", { class: "service-two" }, first, second),
    /** @param {string} above @param {string} below */
    show(above, below) {
      setText(first, above);
      setText(second, below);
    },
  };
}
