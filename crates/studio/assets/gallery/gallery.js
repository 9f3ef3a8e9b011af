/**
 * @file The gallery: the tasks of the project, with a filter and a search. What is being made comes first, then the
 * newest; tasks that wait are one strip.
 */

import { h, icon, reconcile, setText } from "../core/dom.js";
import { isCancelled, isUnfinished, plural } from "../core/format.js";
import { isFavourite, listen as listenToFavourites } from "../core/kept.js";
import * as live from "../core/live.js";
import * as tasks from "../core/tasks.js";
import { emptyState } from "./empty.js";
import { moveFocus } from "./focus.js";
import * as previews from "./previews.js";
import { selection } from "./selection.js";
import { tile } from "./tile.js";
import { waitingStrip } from "./waiting.js";

/** @typedef {import("../core/api.js").Task} Task */

/** Tiles that are made in one go: more would hold up a frame. */
const CHUNK = 30;
const CLOCK_MS = 1000;
/** More waiting tasks would be a wall of empty frames. */
const WAITING_MAX = 1;
/** The smallest step of "3 min ago". */
const AGE_MS = 60_000;

/** @param {() => void} act */
const whenIdle = (act) => (window.requestIdleCallback ? requestIdleCallback(act, { timeout: 200 }) : setTimeout(act));

/** @type {[string, string, (task: Task) => boolean][]} */
const FILTERS = [
  ["all", "All", () => true],
  ["unfinished", "Making", isUnfinished],
  ["completed", "Done", (task) => task.status === "completed"],
  ["drafts", "Drafts", (task) => task.draft === true],
  ["failed", "Failed", (task) => task.status === "failed"],
  ["favourites", "Favourites", (task) => isFavourite(task.id)],
];

/** @param {Task} task @param {string} query in lower case */
const matches = (task, query) =>
  [task.prompt, task.id, task.model, `seed ${task.seed}`, isCancelled(task) ? "cancelled" : ""].some((text) =>
    text.toLowerCase().includes(query),
  );

/**
 * @param {{
 *   onOpen: (id: string) => void,
 *   onCompare: (id: string) => void,
 *   onCreate: (prompt?: string) => void,
 *   onSelect: () => void,
 * }} events `onSelect`: a selection begins or changes
 */
export function gallery(events) {
  let filter = "all";
  let query = "";
  let shownMax = CHUNK;
  let isLoaded = false;
  /** @type {Map<string, ReturnType<typeof tile>>} */
  const tiles = new Map();
  const search = h("input", {
    type: "search",
    class: "input search-input",
    placeholder: "Search prompts",
    "aria-label": "Search",
    id: "search",
    oninput: () => ((query = search.value.trim().toLowerCase()), draw()),
  });
  const tabs = FILTERS.map(([name, label]) =>
    h(
      "button",
      {
        type: "button",
        class: "tab",
        "data-filter": name,
        "aria-pressed": "false",
        onclick: () => ((filter = name), draw()),
      },
      label,
      h("span", { class: "count" }),
    ),
  );
  const grid = h("ul", { class: "grid", "aria-label": "Videos" });
  const strip = waitingStrip(events.onOpen);
  const chosen = selection(
    (isOn) => {
      if (isOn) events.onSelect();
      tiles.forEach(mark);
    },
    () => parted().shown.map((task) => task.id),
  );
  const onOpen = (/** @type {string} */ id) => (chosen.isOn() ? chosen.toggle(id) : events.onOpen(id));
  const empty = emptyState(events.onCreate, () => (clear(), search.focus()));
  const older = h(
    "button",
    { type: "button", class: "button is-quiet older", onclick: loadOlder },
    "Load older videos",
  );
  const found = h("p", { class: "unseen", role: "status" });
  const favouritesNote = h("p", { class: "hint gallery-note" }, "Favourites are kept in this browser only, until you sign out.");
  const root = h(
    "section",
    { class: "gallery", "aria-label": "Videos" },
    h(
      "div",
      { class: "gallery-bar" },
      h(
        "div",
        { class: "gallery-choice" },
        h("div", { class: "tabs", role: "group", "aria-label": "Filter" }, tabs),
        chosen.opener,
      ),
      h("div", { class: "search" }, icon("search"), search),
    ),
    found,
    favouritesNote,
    strip.root,
    empty.root,
    grid,
    older,
  );
  grid.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => moveFocus(grid, event));

  /** @param {ReturnType<typeof tile>} one @param {string} id */
  const mark = (one, id) => one.select(chosen.isOn() ? chosen.has(id) : null);

  /** @param {string} id */
  function newTile(id) {
    const one = tile(id, { ...events, onOpen });
    mark(one, id);
    return one;
  }

  async function loadOlder() {
    older.disabled = true;
    try {
      await live.loadOlder();
    } finally {
      older.disabled = false;
    }
  }

  function wanted() {
    const accepts = FILTERS.find(([name]) => name === filter)?.[2] ?? (() => true);
    return tasks.all().filter((task) => accepts(task) && (!query || matches(task, query)));
  }

  /** The tasks that are shown, and those that wait in the strip. */
  function parted() {
    const [running, queued, ended] = [/** @type {Task[]} */ ([]), /** @type {Task[]} */ ([]), /** @type {Task[]} */ ([])];
    for (const task of wanted()) (task.status === "queued" ? queued : isUnfinished(task) ? running : ended).push(task);
    const isMany = queued.length > WAITING_MAX;
    return { shown: [...running, ...(isMany ? [] : queued), ...ended], waiting: isMany ? queued : [] };
  }

  function draw() {
    const { shown, waiting } = parted();
    strip.show(waiting);
    reconcile(
      grid,
      tiles,
      shown.slice(0, shownMax).map((task) => task.id),
      newTile,
    );
    chosen.trim();
    chosen.opener.hidden = !shown.length && !chosen.isOn();
    if (shown.length > shownMax) whenIdle(more);
    drawBar(shown.length + waiting.length);
    empty.show(isLoaded && !shown.length && !waiting.length ? (tasks.count() ? "nothing-found" : "nothing-yet") : "", filter, search.value.trim());
    older.hidden = !isLoaded || !live.hasOlder();
  }

  function clear() {
    filter = "all";
    query = search.value = "";
    draw();
  }

  function more() {
    shownMax += CHUNK;
    draw();
  }

  /** @param {number} count */
  function drawBar(count) {
    const known = tasks.all();
    FILTERS.forEach(([name, , accepts], n) => {
      const number = known.filter(accepts).length;
      tabs[n].setAttribute("aria-pressed", String(name === filter));
      // More may come while older pages load, and beyond those that are loaded.
      const more = isLoaded && !live.hasOlder() ? "" : "+";
      setText(tabs[n].lastElementChild, number ? `${number}${more}` : "");
      tabs[n].hidden = !number && name !== "all" && name !== filter;
    });
    favouritesNote.hidden = filter !== "favourites";
    setText(found, query || filter !== "all" ? `${plural(count, "video")} shown.` : "");
  }

  tasks.listen((changed) => {
    for (const id of changed) tiles.get(id)?.update();
    draw();
  });
  previews.listen((id) => tiles.get(id)?.update());
  listenToFavourites(() => {
    for (const one of tiles.values()) one.update();
    draw();
  });
  // The time left goes on between two answers.
  setInterval(() => {
    if (!document.hidden) for (const task of tasks.unfinished()) tiles.get(task.id)?.update();
  }, CLOCK_MS);
  const age = () => tiles.forEach((one) => one.age());
  setInterval(age, AGE_MS);
  // The browser slows the clock of a page that nobody sees.
  document.addEventListener("visibilitychange", () => document.hidden || age());

  return {
    root,
    search,
    tray: chosen.tray,
    stopSelecting: chosen.end,
    loaded() {
      isLoaded = true;
      draw();
    },
    /** The ids as shown now, for the way from one video to the next. */
    order: () => parted().shown.map((task) => task.id),
    /** @param {string} id */
    focus: (id) => (tiles.get(id)?.open ?? strip.opener).focus({ preventScroll: false }),
    /** The picture of a task, if it is shown. @param {string} id */
    frame: (id) => tiles.get(id)?.frame,
    toTop() {
      clear();
      scrollTo({ top: 0 });
    },
  };
}
