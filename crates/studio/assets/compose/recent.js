/** @file The choice of a file that the project has already. */

import { ApiError, here } from "../core/api.js";
import { announce, h, icon } from "../core/dom.js";
import { refusalWords } from "../core/failure.js";
import { recent } from "../core/files.js";
import { ago, bytes, plural } from "../core/format.js";
import { closeButton, dialog } from "../view/dialog.js";

/** @typedef {import("../core/files.js").FileObject} FileObject */
/** @typedef {import("../core/files.js").Kind} Kind */

/**
 * @param {Kind} kind
 * @param {(file: FileObject) => void} onChoose
 */
export async function chooseRecent(kind, onChoose) {
  const root = dialog("Recent files", "dialog is-recent", () => root.remove());
  const words = h("p", { class: "remark" }, "Loading…");
  const list = h("ul", { class: "recent", "aria-label": `Recent ${kind}s` });
  root.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, "Recent files"),
      closeButton(() => root.close()),
    ),
    words,
    list,
  );
  root.showModal();
  const choose = (/** @type {FileObject} */ file) => (root.close(), onChoose(file));
  try {
    const files = await recent(kind);
    list.append(...files.map((file) => item(file, kind, choose)));
    words.textContent = files.length
      ? "The newest uploads of this project that have not expired."
      : `This project has no ${kind}s now. A file that you upload stays for a day.`;
    announce(plural(files.length, "file"));
  } catch (error) {
    words.textContent = error instanceof ApiError ? refusalWords(error) : "The files cannot be listed.";
    words.classList.add("is-error");
    announce(words.textContent, "assertive");
  }
}

/** @param {FileObject} file @param {Kind} kind @param {(file: FileObject) => void} onChoose */
function item(file, kind, onChoose) {
  const face = h("span", { class: "preview" }, icon(kind));
  if (kind === "picture") {
    const image = h("img", { alt: "", loading: "lazy", decoding: "async", src: here(file.url) });
    // Over the icon, which stays where the file is of another kind.
    face.append(image);
    image.onerror = () => image.remove();
  }
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", class: "recent-file", onclick: () => onChoose(file) },
      face,
      h("span", { class: "recent-name", dir: "auto" }, file.filename),
      h("span", { class: "hint" }, `${bytes(file.bytes)}, ${ago(file.created_at)}`),
    ),
  );
}
