/** @file The player of a finished video. It remembers whether its user wants to hear something. */

import { here } from "../core/api.js";
import { h } from "../core/dom.js";
import { shortened } from "../core/format.js";

/** The visitor's choice stays in this browser. */
const SETTING = "kinora.sound";

const wantsSound = () => localStorage.getItem(SETTING) === "on";

/** @param {import("../core/api.js").Task} task */
export function player(task) {
  const video = h("video", {
    class: "player",
    src: here(task.result_url),
    poster: here(task.thumbnail_url),
    controls: true,
    loop: true,
    playsinline: true,
    "aria-label": shortened(task.prompt, 100),
  });
  video.muted = !wantsSound();
  // A video without sound says nothing of what its user wants.
  const remember = () => task.has_audio !== false && localStorage.setItem(SETTING, video.muted ? "off" : "on");
  video.addEventListener("volumechange", remember);
  video.play().catch((/** @type {DOMException} */ error) => {
    if (error.name !== "NotAllowedError") return;
    // A page that was not touched yet may play nothing aloud. That is no choice of its user.
    video.removeEventListener("volumechange", remember);
    video.muted = true;
    video.addEventListener("volumechange", () => video.addEventListener("volumechange", remember), { once: true });
    video.play().catch(() => {});
  });
  return video;
}
