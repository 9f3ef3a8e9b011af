/** @file Studio: signs in, then puts the page together. */

import { ApiError, models as fetchModels, read, sleep } from "./core/api.js";
import { announce, announcers, h } from "./core/dom.js";
import { reasonOf } from "./core/failure.js";
import { isUnfinished, shortened } from "./core/format.js";
import * as live from "./core/live.js";
import { leave, saveKey, savedKey, takeNotice } from "./core/session.js";
import * as tasks from "./core/tasks.js";
import { composer } from "./compose/form.js";
import { gallery } from "./gallery/gallery.js";
import { shortcuts } from "./shortcuts.js";
import { followLink, signIn } from "./signin.js";
import { comparison } from "./view/compare.js";
import { header } from "./view/header.js";
import { showHelp } from "./view/help.js";
import { showOperations } from "./view/operations.js";
import { followTitle } from "./view/title.js";
import { toast, toasts } from "./view/toast.js";
import { grow } from "./view/transition.js";
import { viewer } from "./view/viewer.js";

/** @typedef {import("./core/models.js").Model} Model */

/** Pause between two looks at a service that is away. */
const AWAY_MS = 2000;
const app = h("div", { class: "app" });

/** @param {string} [reason] */
function askForKey(reason) {
  const page = signIn(studio, reason);
  app.replaceChildren(page.root);
  page.focus();
  if (reason) announce(reason, "assertive");
}

/** @param {{data: Model[], scopes: string[]}} access of the key */
function studio({ data: models, scopes }) {
  if (!models.length) return askForKey("This key may use no model.");
  const form = composer(models, {
    onSubmitted(task) {
      openForm(false);
      live.poke();
      videos.toTop();
      if (matchMedia("(width < 60rem)").matches) videos.focus(task.id);
    },
    onClose: () => openForm(false),
  });
  /** On a phone the form is a sheet over the gallery. @param {boolean} isOpen */
  function openForm(isOpen) {
    document.body.classList.toggle("has-form", isOpen);
    if (isOpen) form.focus();
  }
  /** @param {string} [prompt] */
  function create(prompt) {
    openForm(true);
    if (prompt) form.suggest(prompt);
  }
  /** @param {string} model @param {"draft" | "first_frame"} feature */
  const canDo = (model, feature) => models.some((one) => one.id === model && one.capabilities[feature]);
  /** @type {import("./view/actions.js").Desk} */
  const desk = {
    open: (id) => view.show(id),
    compare: (id) => pair.add(id),
    compareBoth: (first, second) => (pair.stop(), pair.add(first), pair.add(second)),
    edit: (task) => (view.close(), openForm(true), form.edit(task)),
    fill: (body) => (view.close(), openForm(true), form.fill(body)),
    closeViewer: () => view.close(),
    toTop: () => videos.toTop(),
    canEdit: form.canEdit,
    makesFinals: (model) => canDo(model, "draft"),
    takesFirstFrames: (model) => canDo(model, "first_frame"),
  };
  const pair = comparison(desk.closeViewer);
  const open = (/** @type {string} */ id) =>
    pair.isChoosing() && tasks.get(id)?.status === "completed"
      ? pair.add(id)
      : grow(videos.frame(id), () => view.show(id), view.picture);
  const videos = gallery({ onOpen: open, onCompare: desk.compare, onCreate: create, onSelect: pair.stop });
  const view = viewer(desk, { order: videos.order, onClosed: (id) => backToTile(videos, id) });
  const needsKey = savedKey() !== "";
  const top = header({
    onHelp: showHelp,
    onCreate: () => create(),
    onService: scopes.includes("operations:read") ? () => showOperations(scopes.includes("operations:write")) : null,
    onLeave: needsKey ? () => leave() : null,
  });
  app.replaceChildren(top.root, h("main", { class: "desk" }, form.root, videos.root), pair.tray, videos.tray);
  shortcuts({
    n: () => create(),
    "/": () => videos.search.focus(),
    "?": showHelp,
    Escape: () => (pair.stop(), videos.stopSelecting(), openForm(false)),
  });
  tellEnds();
  followTitle();
  follow(top, videos, form);
  openLinked(view);
  addEventListener("hashchange", () => openLinked(view));
}

/**
 * After the viewer: the tile of the video that was shown last has the focus, unless an action has moved it on.
 * @param {ReturnType<typeof gallery>} videos
 * @param {string} id
 */
function backToTile(videos, id) {
  const focused = document.activeElement;
  if (!focused || focused === document.body || focused.closest(".grid")) videos.focus(id);
}

/**
 * @param {ReturnType<typeof header>} top
 * @param {ReturnType<typeof gallery>} videos
 * @param {ReturnType<typeof composer>} form
 */
function follow(top, videos, form) {
  live.run((state) => {
    top.show(state);
    document.documentElement.dataset.connection = state;
    if (state === "signed-out") return leave("The service does not take this key any more.");
    if (state !== "live") return;
    videos.loaded();
    fetchModels().then(({ data }) => form.update(data), () => {});
  });
}

/** Tells the end of tasks that this page has seen unfinished. */
function tellEnds() {
  const open = new Set();
  tasks.listen((changed) => {
    for (const id of changed) {
      const task = tasks.get(id);
      if (!task) continue;
      if (isUnfinished(task)) open.add(id);
      else if (open.delete(id) && task.error?.code !== "cancelled") {
        const name = shortened(task.prompt, 60);
        if (task.status === "completed") announce(`Finished: ${name}`);
        else toast(`Failed: ${name}. ${reasonOf(task)}`, { isError: true });
      }
    }
  });
}

/**
 * Opens the video that the address names: at the start, and when somebody follows a link in this tab.
 * @param {ReturnType<typeof viewer>} view
 */
async function openLinked(view) {
  const id = location.hash.slice(1);
  if (!/^video_[0-9a-z]{26}$/.test(id)) return;
  try {
    tasks.put([await read(id)]);
    view.show(id);
  } catch {
    toast("This video does not exist, or has expired.", { isError: true });
  }
}

/**
 * Follows a link that signs in, then tries the key of this tab, or none: a service behind a proxy that signs people in may
 * need none.
 */
async function start() {
  let reason = "";
  for (;;) {
    try {
      reason ||= await followLink();
      const access = await fetchModels(savedKey() ?? "");
      if (savedKey() === null) saveKey("");
      return studio(access);
    } catch (error) {
      if (error instanceof ApiError && !error.isPassing) {
        const notice = takeNotice();
        return askForKey(reason || notice);
      }
      app.replaceChildren(
        h("main", { class: "door" }, h("p", { role: "status" }, "The service does not answer. Trying again…")),
      );
      await sleep(AWAY_MS);
    }
  }
}

document.body.append(app, toasts(), ...announcers());
start();
