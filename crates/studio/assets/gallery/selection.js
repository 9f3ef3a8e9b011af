/** @file The selection of several videos, and what is done with them: a tray at the foot of the page. */

import { ApiError, remove } from "../core/api.js";
import { saveAll } from "../core/archive.js";
import { h, icon, setAttribute, setStyle, setText } from "../core/dom.js";
import { refusalWords } from "../core/failure.js";
import { isUnfinished, plural } from "../core/format.js";
import * as tasks from "../core/tasks.js";
import { confirm } from "../view/dialog.js";
import { toast } from "../view/toast.js";

/** @typedef {import("../core/api.js").Task} Task */

/** Deletes tasks one after the other, up to the first refusal. @param {Task[]} chosen */
async function discard(chosen) {
  let gone = 0;
  try {
    for (const { id } of chosen) {
      await remove(id);
      tasks.bury(id);
      gone += 1;
    }
    toast(`Deleted ${plural(gone, "video")}.`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    toast(`Deleted ${gone} of ${plural(chosen.length, "video")}. ${refusalWords(error)}`, { isError: true });
  }
}

/** Why there is no archive. @param {unknown} error */
const wordsOf = (error) =>
  error instanceof RangeError
    ? error.message
    : error instanceof ApiError
      ? refusalWords(error)
      : "The archive could not be saved.";

/** @param {number} saved @param {number} lost */
const savedWords = (saved, lost) =>
  lost ? `Saved ${plural(saved, "video")}; ${lost} more had no file any more.` : `Saved ${plural(saved, "video")}.`;

/**
 * @param {(isOn: boolean) => void} onChange called when the selection begins, changes or ends
 * @param {() => string[]} shown the ids that can be chosen
 */
export function selection(onChange, shown) {
  let isOn = false;
  /** @type {Set<string>} */
  const ids = new Set();
  /** @type {AbortController | null} */
  let saving = null;
  const words = h("p", { class: "tray-words", role: "status" });
  const bar = h(
    "div",
    { class: "bar", role: "progressbar", "aria-label": "Archive", "aria-valuemin": 0, "aria-valuemax": 100 },
    h("span", { class: "bar-fill" }),
  );
  const all = h("button", { type: "button", class: "button is-quiet", onclick: chooseAll }, "All");
  const save = h("button", { type: "button", class: "button", onclick: download }, icon("download"), "ZIP");
  const erase = h("button", { type: "button", class: "button is-danger-text", onclick: ask }, icon("trash"), "Delete");
  const stop = h("button", { type: "button", class: "button", hidden: true, onclick: () => saving?.abort() }, "Stop");
  const close = h(
    "button",
    { type: "button", class: "icon-button", "aria-label": "Stop selecting", onclick: () => end() },
    icon("close"),
  );
  const tray = h(
    "div",
    { class: "tray is-selection", hidden: true, role: "region", "aria-label": "Selection" },
    h("div", { class: "tray-about" }, words, bar),
    all,
    save,
    erase,
    stop,
    close,
  );
  const opener = h(
    "button",
    { type: "button", class: "button is-quiet select", onclick: () => (isOn ? end() : begin()) },
    icon("check"),
    "Select",
  );

  const chosen = () => [...ids].map(tasks.get).filter((task) => task !== undefined);
  const finished = () => chosen().filter((task) => task.status === "completed");

  function draw() {
    tray.hidden = !isOn;
    setAttribute(opener, "aria-pressed", String(isOn));
    document.body.classList.toggle("is-selecting", isOn);
    for (const button of [all, save, erase, close]) button.hidden = saving !== null;
    stop.hidden = bar.hidden = !saving;
    if (saving) return;
    setText(words, ids.size ? `${ids.size} selected` : "Choose videos");
    erase.disabled = !ids.size;
    const films = finished().length;
    save.disabled = !films;
    setAttribute(save, "aria-label", `Download ${plural(films, "video")} as ZIP`);
    all.disabled = ids.size === shown().length;
  }

  function change() {
    draw();
    onChange(isOn);
  }

  function begin() {
    isOn = true;
    change();
  }

  function end() {
    if (!isOn || saving) return;
    const hadFocus = tray.contains(document.activeElement);
    isOn = false;
    ids.clear();
    change();
    if (hadFocus) opener.focus();
  }

  function chooseAll() {
    for (const id of shown()) ids.add(id);
    change();
  }

  async function ask() {
    const many = chosen();
    const open = many.filter(isUnfinished).length;
    const unfinished = open ? ` ${plural(open, "video")} among them will not be made.` : "";
    const text = `They and their files will be gone for everybody.${unfinished}`;
    if (!(await confirm(`Delete ${plural(many.length, "video")}?`, text, "Delete"))) return;
    end();
    await discard(many);
  }

  async function download() {
    const films = finished();
    const control = (saving = new AbortController());
    const progress = (/** @type {number} */ share) => {
      setText(words, `Saving ${plural(films.length, "video")}, ${Math.floor(share * 100)} %`);
      setStyle(bar, { "--progress": share });
      setAttribute(bar, "aria-valuenow", Math.floor(share * 100));
    };
    progress(0);
    draw();
    stop.focus();
    try {
      const { saved, lost } = await saveAll(films, { signal: control.signal, onProgress: progress });
      toast(savedWords(saved, lost), { isError: lost > 0 });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") toast("Nothing was saved.");
      else toast(wordsOf(error), { isError: true });
    } finally {
      const hadFocus = tray.contains(document.activeElement);
      saving = null;
      draw();
      if (hadFocus) save.focus();
    }
  }

  draw();
  return {
    opener,
    tray,
    isOn: () => isOn,
    has: (/** @type {string} */ id) => ids.has(id),
    end,
    /** @param {string} id */
    toggle(id) {
      if (saving) return;
      if (!ids.delete(id)) ids.add(id);
      change();
    },
    /** Leaves out what is not shown any more: nothing happens to a video that nobody sees. */
    trim() {
      if (!isOn || saving) return;
      const seen = new Set(shown());
      for (const id of ids) if (!seen.has(id)) ids.delete(id);
      draw();
    },
  };
}
