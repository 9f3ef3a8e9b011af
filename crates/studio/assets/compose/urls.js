/**
 * @file Rows for reference URLs, each with a preview. The browser loads the preview from where the URL leads; the
 * service fetches the file itself and judges it by its own rules.
 */

import { h, icon, setAttribute } from "../core/dom.js";
import { newId, remark } from "./controls.js";

/** How long typing must pause before a preview is loaded. */
const SETTLE_MS = 400;
/** The service's bounds on pictures (docs/api.md): for a warning before the submit. */
const SIDE_MIN = 256;
const SIDE_MAX = 6000;
const RATIO_MIN = 0.4;
const RATIO_MAX = 2.5;

/** @param {string} text */
function isUrl(text) {
  return /^https?:\/\/\S+$/i.test(text) && URL.canParse(text);
}

/** @param {HTMLImageElement} image */
function complaint({ naturalWidth: width, naturalHeight: height }) {
  const ratio = width / height;
  if (Math.min(width, height) < SIDE_MIN)
    return `${width} × ${height} is too small: the sides must have ${SIDE_MIN} pixels.`;
  if (Math.max(width, height) > SIDE_MAX)
    return `${width} × ${height} is too large: at most ${SIDE_MAX} pixels a side.`;
  if (ratio < RATIO_MIN || ratio > RATIO_MAX) return `${width} × ${height} is too long for its width.`;
  return "";
}

const UNSEEN = "Your browser cannot show this address. The service may still be able to fetch it.";

/**
 * One row: an address, its preview, and a button that removes it.
 * @param {"picture" | "sound"} kind
 * @param {string} label
 * @param {(value: string) => void} onChange
 * @param {(() => void) | null} onRemove
 */
export function urlRow(kind, label, onChange, onRemove) {
  const id = newId("url");
  const input = h("input", {
    id,
    type: "url",
    class: "input",
    placeholder: "https://…",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": label,
    oninput: () => (onChange(input.value), settle()),
  });
  const preview = h(
    "div",
    { class: `preview preview-${kind}`, "aria-hidden": kind === "picture" ? "true" : null },
    icon(kind),
  );
  const note = remark([input]);
  const remove =
    onRemove &&
    h(
      "button",
      { type: "button", class: "icon-button", "aria-label": `Remove ${label.toLowerCase()}`, onclick: onRemove },
      icon("close"),
    );
  const root = h("div", { class: `url-row url-${kind}` }, preview, input, remove, note.root);
  let timer = 0;
  let shown = "";

  function settle() {
    clearTimeout(timer);
    timer = setTimeout(load, SETTLE_MS);
  }

  function load() {
    const url = input.value.trim();
    if (url === shown) return;
    shown = url;
    preview.classList.remove("is-broken");
    note.show("");
    preview.replaceChildren(icon(kind));
    if (!url) return;
    if (!isUrl(url)) return note.show("Write a whole http or https address.", true);
    if (kind === "picture") loadPicture(url);
    else loadSound(url);
  }

  /** @param {string} url */
  function loadPicture(url) {
    const image = h("img", { alt: "", referrerpolicy: "no-referrer", decoding: "async" });
    image.onload = () => shown === url && (preview.replaceChildren(image), note.show(complaint(image), true));
    image.onerror = () => shown === url && (preview.classList.add("is-broken"), note.show(UNSEEN));
    image.src = url;
  }

  /** @param {string} url */
  function loadSound(url) {
    const sound = h("audio", { controls: true, preload: "metadata", "aria-label": `Play ${label.toLowerCase()}` });
    sound.onerror = () => shown === url && note.show(UNSEEN);
    sound.src = url;
    preview.replaceChildren(sound);
  }

  return {
    root,
    control: input,
    remark: note,
    /** @param {string} value */
    show(value) {
      if (input.value === value) return;
      input.value = value;
      load();
    },
    /** @param {boolean} isOff */
    off(isOff) {
      input.disabled = isOff;
      if (remove) setAttribute(remove, "disabled", isOff);
    },
  };
}

/**
 * A list of rows with a button that adds one.
 * @param {"picture" | "sound"} kind
 * @param {string} noun of one item, such as `Reference picture`
 * @param {(values: string[]) => void} onChange
 */
export function urlList(kind, noun, onChange) {
  const rows = h("div", { class: "url-rows" });
  const count = h("span", { class: "count" });
  const add = h(
    "button",
    { type: "button", class: "button is-quiet", onclick: () => change([...values, ""], values.length) },
    icon("add"),
    `Add ${kind}`,
  );
  const root = h("div", { class: "url-list" }, rows, h("div", { class: "url-foot" }, add, count));
  /** @type {string[]} */
  let values = [];
  /** @type {ReturnType<typeof urlRow>[]} */
  let made = [];
  let max = 1;

  /** @param {string[]} next @param {number} [focus] */
  function change(next, focus) {
    values = next;
    draw();
    onChange(values);
    if (focus !== undefined) made[Math.min(focus, made.length - 1)]?.control.focus();
  }

  function draw() {
    if (made.length !== values.length) {
      made = values.map((_, n) =>
        urlRow(
          kind,
          `${noun} ${n + 1}`,
          (value) => ((values[n] = value), onChange(values)),
          () =>
            change(
              values.filter((_, other) => other !== n),
              n,
            ),
        ),
      );
      rows.replaceChildren(...made.map((row) => row.root));
    }
    made.forEach((row, n) => row.show(values[n]));
    add.disabled = values.length >= max;
    count.textContent = `${values.length} of ${max}`;
  }

  return {
    root,
    rows: () => made,
    /** @param {string[]} next @param {number} most */
    show(next, most) {
      values = [...next];
      max = most;
      draw();
    },
    /** @param {boolean} isOff */
    off(isOff) {
      add.disabled = isOff || values.length >= max;
      for (const row of made) row.off(isOff);
    },
  };
}
