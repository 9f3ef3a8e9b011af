/** @file The upload of one file at a time at a reference field: its progress, a way to stop it, and its end. */

import { ApiError } from "../core/api.js";
import { announce, h, setAttribute, setStyle, setText } from "../core/dom.js";
import { refusalWords } from "../core/failure.js";
import { complaint, upload } from "../core/files.js";

/** @typedef {import("../core/files.js").FileObject} FileObject */

/**
 * @param {import("../core/files.js").Kind} kind
 * @param {{
 *   onStart: (localUrl: string) => void,
 *   onDone: (file: FileObject) => void,
 *   onEnd: (problem: string) => void,
 * }} events `onStart` gets an address under which the browser has the file already; `onEnd` comes after an upload that
 *   was stopped, with no words, or that failed. Whoever listens shows and hides the part.
 */
export function uploadPart(kind, { onStart, onDone, onEnd }) {
  const words = h("span", { class: "upload-words" });
  const bar = h(
    "div",
    { class: "bar", role: "progressbar", "aria-label": "Upload", "aria-valuemin": 0, "aria-valuemax": 100 },
    h("span", { class: "bar-fill" }),
  );
  const cancel = h("button", { type: "button", class: "button is-quiet", onclick: () => stop() }, "Cancel");
  const root = h("div", { class: "upload", role: "group", hidden: true }, h("div", { class: "upload-line" }, words, cancel), bar);
  /** @type {AbortController | null} */
  let running = null;

  /** @param {string} name @param {number} share */
  function show(name, share) {
    const percent = Math.floor(share * 100);
    setText(words, share < 1 ? `Uploading ${name}, ${percent} %` : `Checking ${name}…`);
    setStyle(bar, { "--progress": share });
    setAttribute(bar, "aria-valuenow", percent);
  }

  /** @param {File} file */
  async function start(file) {
    const problem = complaint(file, kind);
    if (problem) return end(problem);
    running?.abort();
    const control = (running = new AbortController());
    const { signal } = control;
    show(file.name, 0);
    announce(`Uploading ${file.name}.`);
    onStart(URL.createObjectURL(file));
    try {
      const done = await upload(file, kind, {
        signal,
        onProgress: (share) => running === control && show(file.name, share),
        onRetry: () => running === control && setText(words, "Service away, trying again…"),
      });
      if (running !== control) return;
      running = null;
      announce(`Uploaded ${file.name}.`);
      onDone(done);
    } catch (error) {
      // One that was stopped has had its end.
      if (running !== control) return;
      end(error instanceof ApiError ? refusalWords(error) : `“${file.name}” could not be read.`);
    }
  }

  /** @param {string} problem */
  function end(problem) {
    running = null;
    if (problem) announce(problem, "assertive");
    onEnd(problem);
  }

  function stop() {
    if (!running) return;
    const stopped = running;
    running = null;
    stopped.abort();
    announce("The upload was stopped.");
    end("");
  }

  return { root, cancel, start, stop, isRunning: () => running !== null };
}
