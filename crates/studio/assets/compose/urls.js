/**
 * @file Rows for references, each with an address and a preview. The address is typed, or it is that of a file of the
 * visitor's own, which the row uploads. The browser loads the preview from where the address leads; the service gets
 * the file itself and judges it by its own rules.
 */

import { here, isSigned } from "../core/api.js";
import { announce, h, icon, setAttribute } from "../core/dom.js";
import { bytes, span } from "../core/format.js";
import { newId, remark } from "./controls.js";
import { chooseRecent } from "./recent.js";
import { uploadPart } from "./upload.js";

/** @typedef {import("../core/files.js").FileObject} FileObject */
/** @typedef {import("../core/files.js").Kind} Kind */

/** How long typing must pause before a preview is loaded. */
const SETTLE_MS = 400;
/** The service's bounds on pictures (docs/api.md): for a warning before the submit. */
const SIDE_MIN = 256;
const SIDE_MAX = 6000;
const RATIO_MIN = 0.4;
const RATIO_MAX = 2.5;
/** What a browser offers to choose from: on a phone also its camera. */
const ACCEPTED = { picture: "image/*", sound: "audio/*" };

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
const GONE = "This file was deleted, or has expired. Choose it again.";

/**
 * The picture or the sound of a row. Its address may be one of this page.
 * @param {Kind} kind
 * @param {() => string} name of the row
 */
function previewPart(kind, name) {
  const root = h(
    "div",
    { class: `preview preview-${kind}`, "aria-hidden": kind === "picture" ? "true" : null },
    icon(kind),
  );
  let local = "";

  /** @param {Node} child */
  function put(child) {
    root.classList.remove("is-broken");
    root.replaceChildren(child);
    if (local) URL.revokeObjectURL(local);
    local = "";
  }

  /** @param {string} url @param {(image: HTMLImageElement) => void} onLoad @param {() => void} onError */
  function picture(url, onLoad, onError) {
    const image = h("img", { alt: "", referrerpolicy: "no-referrer", decoding: "async" });
    image.onload = () => onLoad(image);
    image.onerror = onError;
    image.src = url;
    return image;
  }

  return {
    root,
    clear: () => put(icon(kind)),
    /**
     * Shows what an address leads to.
     * @param {string} url
     * @param {(problem: string, isWrong: boolean) => void} onProblem
     */
    load(url, onProblem) {
      put(icon(kind));
      const waits = root.firstChild;
      // The service may have another name than the one by which the page was opened.
      const [first, second] = new Set([here(url), url]);
      const lost = () => {
        root.classList.add("is-broken");
        onProblem(isSigned(url) ? GONE : UNSEEN, isSigned(url));
      };
      if (kind === "picture") {
        const seen = (/** @type {HTMLImageElement} */ image) => {
          if (root.firstChild !== waits) return;
          put(image);
          const problem = complaint(image);
          if (problem) onProblem(problem, true);
        };
        const unseen = () => root.firstChild === waits && lost();
        picture(first, seen, second ? () => picture(second, seen, unseen) : unseen);
        return;
      }
      const sound = h("audio", { controls: true, preload: "metadata", "aria-label": `Play ${name().toLowerCase()}` });
      sound.onerror = () => {
        if (second && sound.src === first) sound.src = second;
        else if (root.firstChild === sound) lost();
      };
      sound.src = first;
      put(sound);
    },
    /** Shows a file that the browser has. @param {string} url one of this page, which the preview gives back */
    own(url) {
      if (kind === "picture") put(picture(url, () => {}, () => {}));
      else put(h("audio", { controls: true, src: url, "aria-label": `Play ${name().toLowerCase()}` }));
      local = url;
    },
  };
}

/**
 * One row: a file or an address, its preview, and a button that removes it.
 * @param {Kind} kind
 * @param {string} label
 * @param {(value: string) => void} onChange
 * @param {{onMore: (files: File[]) => void, onRemove: () => void} | null} [list] the list that the row is one of, which
 *   gets the files beyond the first
 */
export function urlRow(kind, label, onChange, list = null) {
  const id = newId("url");
  const input = h("input", {
    id,
    type: "url",
    class: "input",
    placeholder: "https://…",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => (onChange(input.value), settle()),
  });
  const preview = previewPart(kind, () => label);
  const note = remark([input]);
  const picker = h("input", {
    type: "file",
    accept: ACCEPTED[kind],
    multiple: list !== null,
    hidden: true,
    onchange: () => {
      take([...picker.files]);
      // The same file can be chosen again.
      picker.value = "";
    },
  });
  const choose = h(
    "button",
    { type: "button", class: "button is-quiet", onclick: () => picker.click() },
    icon("upload"),
    "Choose a file",
  );
  const recent = h(
    "button",
    { type: "button", class: "button is-quiet", onclick: () => chooseRecent(kind, use) },
    icon("recent"),
    "Recent files",
  );
  const sources = h("div", { class: "url-sources" }, choose, recent, picker);
  const remove =
    list && h("button", { type: "button", class: "icon-button", onclick: list.onRemove }, icon("close"));
  const sending = uploadPart(kind, {
    onStart(url) {
      preview.own(url);
      note.show("");
      isSending(true);
    },
    onDone(file) {
      isSending(false);
      accept(file);
    },
    onEnd(problem) {
      isSending(false);
      load(true);
      if (problem) note.show(problem, true);
    },
  });
  const root = h("div", { class: `url-row url-${kind}` }, preview.root, input, remove, sources, sending.root, note.root);
  let timer = 0;
  let shown = "";

  /** @param {boolean} isOn */
  function isSending(isOn) {
    const hadFocus = root.contains(document.activeElement);
    input.readOnly = isOn;
    sources.hidden = isOn;
    sending.root.hidden = !isOn;
    if (hadFocus) (isOn ? sending.cancel : choose).focus();
  }

  function settle() {
    clearTimeout(timer);
    timer = setTimeout(() => load(), SETTLE_MS);
  }

  /** @param {boolean} [isAnew] also where the address is the same */
  function load(isAnew = false) {
    const url = input.value.trim();
    if (url === shown && !isAnew) return;
    shown = url;
    note.show("");
    preview.clear();
    if (!url) return;
    if (!isUrl(url)) return note.show("Write a whole http or https address.", true);
    preview.load(url, (problem, isWrong) => shown === url && note.show(problem, isWrong));
  }

  /** @param {File[]} files */
  function take([file, ...more]) {
    if (file) sending.start(file);
    if (more.length) list?.onMore(more);
  }

  /** The row has this file from now on; its preview is there already. @param {FileObject} file */
  function accept(file) {
    input.value = shown = file.url;
    onChange(file.url);
    note.show(`${file.filename}, ${bytes(file.bytes)}, kept for ${span(file.expires_at - Date.now() / 1000)}.`);
  }

  /** @param {FileObject} file */
  function use(file) {
    sending.stop();
    input.value = file.url;
    load(true);
    accept(file);
    announce(`Chosen: ${file.filename}.`);
  }

  /** @param {string} text */
  function name(text) {
    label = text;
    setAttribute(input, "aria-label", text);
    setAttribute(sending.root, "aria-label", `Upload of ${text.toLowerCase()}`);
    setAttribute(choose, "aria-label", `Choose a file: ${text.toLowerCase()}`);
    setAttribute(recent, "aria-label", `Recent files: ${text.toLowerCase()}`);
    if (remove) setAttribute(remove, "aria-label", `Remove ${text.toLowerCase()}`);
  }

  name(label);
  return {
    root,
    control: input,
    remark: note,
    name,
    take,
    isUploading: sending.isRunning,
    isEmpty: () => !input.value.trim() && !sending.isRunning(),
    stop: sending.stop,
    /** @param {string} value */
    show(value) {
      if (input.value === value) return;
      sending.stop();
      input.value = value;
      load();
    },
  };
}

/**
 * A list of rows with a button that adds one.
 * @param {Kind} kind
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
  const made = [];
  let max = 1;

  /** @param {string[]} next @param {number} [focus] */
  function change(next, focus) {
    values = next;
    draw();
    onChange(values);
    if (focus !== undefined) (made[Math.min(focus, made.length - 1)]?.control ?? add).focus();
  }

  function addRow() {
    const row = urlRow(
      kind,
      noun,
      (value) => {
        values[made.indexOf(row)] = value;
        onChange(values);
      },
      { onMore: (files) => takeAll(files), onRemove: () => removeRow(row) },
    );
    made.push(row);
    rows.append(row.root);
  }

  /** @param {ReturnType<typeof urlRow>} row */
  function removeRow(row) {
    const at = made.indexOf(row);
    row.stop();
    made.splice(at, 1);
    row.root.remove();
    change(values.toSpliced(at, 1), at);
  }

  function draw() {
    while (made.length < values.length) addRow();
    for (const row of made.splice(values.length)) {
      row.stop();
      row.root.remove();
    }
    made.forEach((row, n) => {
      row.name(`${noun} ${n + 1}`);
      row.show(values[n]);
    });
    add.disabled = values.length >= max;
    count.textContent = `${values.length} of ${max}`;
  }

  /** Each file in an empty row, or in one of its own, as far as there is room. @param {File[]} files */
  function takeAll(files) {
    for (const file of files) {
      if (!made.some((row) => row.isEmpty()) && values.length < max) change([...values, ""]);
      const row = made.find((one) => one.isEmpty());
      if (!row) return made.at(-1)?.remark.show(`At most ${max}: the other files were left out.`, true);
      row.take([file]);
    }
  }

  return {
    root,
    rows: () => made,
    takeAll,
    /** @param {string[]} next @param {number} most */
    show(next, most) {
      values = [...next];
      max = most;
      draw();
    },
  };
}
