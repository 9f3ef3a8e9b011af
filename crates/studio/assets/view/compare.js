/** @file Two results side by side, played in step. A first video is chosen, then a second. */

import { here } from "../core/api.js";
import { announce, h, icon, setText } from "../core/dom.js";
import { shortened, sides } from "../core/format.js";
import * as tasks from "../core/tasks.js";
import { closeButton, dialog } from "./dialog.js";
import { factList, factsOf } from "./facts.js";

/** @typedef {import("../core/api.js").Task} Task */

/** Beyond this difference in seconds the second video is put to the time of the first. */
const DRIFT = 0.08;
/** Facts that always differ and say nothing. */
const DULL = ["ID", "Created", "Kept until"];

/** @param {() => void} closeViewer */
export function comparison(closeViewer) {
  /** @type {string | null} */
  let first = null;
  const words = h("span", {});
  const picture = h("img", { alt: "" });
  const tray = h(
    "div",
    { class: "tray", hidden: true, role: "region", "aria-label": "Comparison" },
    picture,
    words,
    h(
      "button",
      { type: "button", class: "icon-button", "aria-label": "Stop comparing", onclick: () => choose(null) },
      icon("close"),
    ),
  );

  /** @param {Task | null} task */
  function choose(task) {
    first = task?.id ?? null;
    tray.hidden = !task;
    document.body.classList.toggle("is-comparing", Boolean(task));
    if (!task) return;
    picture.src = here(task.thumbnail_url);
    words.textContent = "Now choose a video to compare it with.";
    announce(words.textContent);
  }

  /** @param {string} id */
  function add(id) {
    const task = tasks.get(id);
    if (!task) return;
    const other = first && first !== id ? tasks.get(first) : undefined;
    closeViewer();
    if (!other) return choose(task);
    choose(null);
    open(other, task);
  }

  return { tray, add, stop: () => choose(null), isChoosing: () => first !== null };
}

/** @param {Task} a @param {Task} b */
function open(a, b) {
  const root = dialog("Side by side", "compare", () => root.remove());
  const rows = [a, b].map((task) => factsOf(task).filter(([name]) => !DULL.includes(name)));
  const [left, right] = rows.map((list) => new Map(list));
  const differing = new Set(
    [...left, ...right].map(([name]) => name).filter((name) => left.get(name) !== right.get(name)),
  );
  const videos = [a, b].map((task) =>
    h("video", {
      src: here(task.result_url),
      poster: here(task.thumbnail_url),
      loop: true,
      playsinline: true,
      "aria-label": shortened(task.prompt, 100),
    }),
  );
  for (const video of videos) video.muted = true;
  const columns = [a, b].map((task, n) =>
    h(
      "section",
      { class: "compare-side", "aria-label": n ? "Second video" : "First video" },
      stage(task, videos[n]),
      h(
        "div",
        { class: "compare-words" },
        h(
          "p",
          { class: "compare-prompt" },
          task.draft && h("span", { class: "badge" }, "Draft"),
          shortened(task.prompt, 160),
        ),
        factList(rows[n], differing),
      ),
    ),
  );
  root.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, "Side by side"),
      closeButton(() => root.close()),
    ),
    h("div", { class: "compare-sides", role: "group", "aria-label": "Videos", tabindex: 0 }, columns),
    transport(videos),
  );
  root.showModal();
}

/** In the shape of its video, before a byte of it has arrived. @param {Task} task @param {HTMLVideoElement} video */
function stage(task, video) {
  const [width, height] = sides(task.size);
  return h("div", { class: "compare-stage", style: { "--width": width, "--height": height } }, video);
}

/** One play button and one timeline for both. @param {HTMLVideoElement[]} videos */
function transport([lead, other]) {
  const range = h("input", {
    type: "range",
    class: "range",
    min: 0,
    max: 1000,
    value: 0,
    "aria-label": "Time",
    oninput: () => seek(Number(range.value) / 1000),
  });
  const time = h("output", { class: "value", "aria-label": "Time of the video" });
  const toggle = h("button", {
    type: "button",
    class: "icon-button is-round",
    onclick: () => (lead.paused ? play() : pause()),
  });
  /** @param {boolean} plays */
  function show(plays) {
    toggle.replaceChildren(icon(plays ? "pause" : "play"));
    toggle.setAttribute("aria-label", plays ? "Pause" : "Play");
  }
  const length = () => Math.max(lead.duration || 0, 0.01);
  /** @param {number} share */
  function seek(share) {
    lead.currentTime = share * length();
    other.currentTime = Math.min(lead.currentTime, other.duration || 0);
  }
  function play() {
    lead.play().catch(() => {});
    other.play().catch(() => {});
  }
  function pause() {
    lead.pause();
    other.pause();
  }
  lead.addEventListener("play", () => show(true));
  lead.addEventListener("pause", () => show(false));
  function showTime() {
    const tenths = (/** @type {number} */ seconds) => seconds.toFixed(1);
    setText(time, `${tenths(lead.currentTime)} / ${tenths(lead.duration || 0)} s`);
  }
  lead.addEventListener("durationchange", showTime);
  lead.addEventListener("timeupdate", () => {
    showTime();
    range.value = String((lead.currentTime / length()) * 1000);
    range.style.setProperty("--filled", String(lead.currentTime / length()));
    const wanted = Math.min(lead.currentTime, other.duration || 0);
    if (Math.abs(other.currentTime - wanted) > DRIFT) other.currentTime = wanted;
  });
  show(false);
  lead.addEventListener("loadeddata", play, { once: true });
  return h("div", { class: "transport" }, toggle, range, time);
}
