/**
 * @file One task, large: its video or its progress on a dark stage, and beside it what it is and what can be done.
 * The player is made once for a result, so that it plays on while the task's object changes.
 */

import { here } from "../core/api.js";
import { h, icon, setAttribute, setStyle, setText } from "../core/dom.js";
import { SKETCH, sketches } from "../core/experience.js";
import { reasonOf } from "../core/failure.js";
import { isFavourite, listen as listenToFavourites } from "../core/kept.js";
import { isCancelled, isUnfinished, sides, statusWord } from "../core/format.js";
import * as tasks from "../core/tasks.js";
import * as previews from "../gallery/previews.js";
import { progressWords } from "../gallery/progress.js";
import { actionsOf } from "./actions.js";
import { closeButton, dialog } from "./dialog.js";
import { factList, factsOf } from "./facts.js";
import { hasKeys } from "./help.js";
import { player } from "./player.js";
import { promptTitle } from "./prompt.js";

/** @typedef {import("../core/api.js").Task} Task */

/**
 * @param {import("./actions.js").Desk} desk
 * @param {{order: () => string[], onClosed: (id: string) => void}} gallery
 */
export function viewer(desk, { order, onClosed }) {
  let id = "";
  let staged = "";
  const stage = h("div", { class: "stage" });
  const side = h("div", { class: "side" });
  const root = dialog("Video", "viewer", closed);
  const previous = h(
    "button",
    { type: "button", class: "icon-button step is-previous", "aria-label": "Newer video", onclick: () => step(-1) },
    icon("back"),
  );
  const next = h(
    "button",
    { type: "button", class: "icon-button step is-next", "aria-label": "Older video", onclick: () => step(1) },
    icon("forward"),
  );
  root.append(
    h("div", { class: "stage-wrap" }, stage, previous, next),
    side,
    closeButton(() => root.close()),
  );
  root.addEventListener("keydown", onKey);

  function closed() {
    const last = id;
    id = staged = "";
    stage.replaceChildren();
    history.replaceState(null, "", location.pathname + location.search);
    onClosed(last);
  }

  /** @param {number} by */
  function step(by) {
    const ids = order();
    const to = ids[ids.indexOf(id) + by];
    if (to) show(to);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("video, input, textarea")) return;
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === " " && target.tagName !== "BUTTON") playOrPause();
    else if (!runKey(event.key)) return;
    event.preventDefault();
  }

  /** @param {string} pressed */
  function runKey(pressed) {
    if (pressed.length === 1 && !hasKeys()) return false;
    // A Mac's key with the word "delete" is called Backspace.
    const key = pressed === "Backspace" ? "Delete" : pressed.length === 1 ? pressed.toLowerCase() : pressed;
    const task = tasks.get(id);
    const action = task && actionsOf(task, desk).find((one) => one.key === key);
    action?.run();
    return Boolean(action);
  }

  function playOrPause() {
    const video = stage.querySelector("video");
    if (video?.paused) video.play();
    else video?.pause();
  }

  /** @param {Task} task */
  function drawStage(task) {
    const key = `${task.id} ${task.status}`;
    if (key !== staged) {
      staged = key;
      stage.replaceChildren(...content(task));
      const [width, height] = sides(task.size);
      setStyle(stage, { "--width": width, "--height": height });
    }
    if (!isUnfinished(task)) return;
    const [image, words, bar] = [
      stage.querySelector("img"),
      stage.querySelector(".stage-words"),
      stage.querySelector(".bar"),
    ];
    const url = previews.previewOf(task.id);
    if (url && image.getAttribute("src") !== url) setAttribute(image, "src", url);
    image.hidden = !url;
    setText(words, progressWords(task));
    setStyle(bar, { "--progress": task.progress / 100 });
    setAttribute(bar, "aria-valuenow", task.progress);
  }

  /** @param {Task} task */
  function content(task) {
    if (task.status === "completed") return [player(task)];
    if (task.status === "failed") {
      return [
        h(
          "div",
          { class: "stage-failed" },
          icon(isCancelled(task) ? "close" : "fail"),
          h("p", {}, reasonOf(task) || "It failed."),
        ),
      ];
    }
    const bar = h(
      "div",
      { class: "bar", role: "progressbar", "aria-label": "Progress", "aria-valuemin": 0, "aria-valuemax": 100 },
      h("span", { class: "bar-fill" }),
    );
    return [
      h(
        "div",
        { class: "stage-making" },
        h("img", { alt: "", hidden: true }),
        h("div", { class: "stage-progress" }, h("p", { class: "stage-words" }), bar),
      ),
    ];
  }

  /** @param {Task} task */
  function drawSide(task) {
    const key = JSON.stringify([
      task.id,
      task.status,
      task.prompt,
      task.engine,
      task.size,
      task.seconds,
      task.expires_at,
      isFavourite(task.id),
      tasks.get(linkOf(task))?.status,
    ]);
    if (side.dataset.key === key) return;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const hadFocus = side.contains(focused);
    side.dataset.key = key;
    const actions = actionsOf(task, desk).map((one) =>
      h(
        "button",
        {
          type: "button",
          class: `button${one.isMain ? " is-primary" : ""}${one.isDanger ? " is-danger-text" : ""}`,
          "data-action": one.name,
          "aria-pressed": one.isOn === undefined ? null : String(one.isOn),
          onclick: one.run,
        },
        icon(one.icon),
        one.label,
      ),
    );
    side.replaceChildren(
      h(
        "div",
        { class: "status-line" },
        h(
          "p",
          { class: "status", "data-status": task.status },
          task.draft ? `Draft · ${statusWord(task)}` : statusWord(task),
        ),
        sketches(task.engine) && h("span", { class: "badge", title: SKETCH }, "sketch"),
      ),
      promptTitle(task),
      failure(task),
      h("div", { class: "actions" }, actions),
      origin(task),
      warnings(task),
      factList(factsOf(task)),
    );
    // The keys of the viewer work only while the focus is in it.
    if (hadFocus)
      (side.querySelector(`[data-action="${focused?.dataset.action}"]`) ?? side.querySelector(".side-prompt")).focus();
  }

  /** @param {Task} task */
  const linkOf = (task) => task.draft_task_id ?? task.edit_task_id ?? "";

  /** Where a final or an edit comes from. @param {Task} task */
  function origin(task) {
    const from = tasks.get(linkOf(task));
    if (!from) return "";
    const words = task.draft_task_id ? "Final of a draft" : "Edit of a video";
    const both = task.status === "completed" && from.status === "completed";
    return h(
      "div",
      { class: "origin" },
      h(
        "button",
        { type: "button", class: "origin-open", onclick: () => show(from.id) },
        from.thumbnail_url ? h("img", { src: here(from.thumbnail_url), alt: "" }) : icon("picture"),
        h("span", {}, words),
      ),
      both &&
        h(
          "button",
          {
            type: "button",
            class: "button is-quiet",
            "data-action": "compare-origin",
            onclick: () => desk.compareBoth(from.id, task.id),
          },
          icon("compare"),
          "Side by side",
        ),
    );
  }

  function draw() {
    const task = tasks.get(id);
    if (!task) return id && root.open ? root.close() : undefined;
    drawStage(task);
    drawSide(task);
    const ids = order();
    previous.disabled = ids.indexOf(id) <= 0;
    next.disabled = ids.indexOf(id) >= ids.length - 1;
  }

  /** @param {string} wanted */
  function show(wanted) {
    if (!tasks.get(wanted)) return;
    id = wanted;
    history.replaceState(null, "", `#${id}`);
    draw();
    if (root.open) return;
    root.showModal();
    side.querySelector(".side-prompt")?.focus();
  }

  tasks.listen((changed) => changed.has(id) && draw());
  previews.listen((changed) => changed === id && draw());
  listenToFavourites(() => id && draw());
  setInterval(() => id && draw(), 1000);
  return {
    show,
    close: () => root.open && root.close(),
    isOpen: () => root.open,
    /** The film, or what stands for it. */
    picture: () => /** @type {HTMLElement | null} */ (stage.firstElementChild),
  };
}

/** @param {Task} task */
function failure(task) {
  if (task.status !== "failed" || isCancelled(task)) return "";
  return h(
    "div",
    { class: "notice is-error" },
    h("p", {}, reasonOf(task)),
    h("p", { class: "hint" }, [task.error?.code, task.error?.param].filter(Boolean).join(" · ")),
  );
}

/** @param {Task} task */
function warnings(task) {
  if (!task.warnings?.length) return "";
  return h(
    "div",
    { class: "notice" },
    h("h3", {}, "Not everything was done"),
    h(
      "ul",
      {},
      task.warnings.map((one) => h("li", {}, one.message)),
    ),
  );
}
