/** @file Files that are dropped on the form, or pasted into it. */

/** @param {DragEvent} event */
const hasFiles = ({ dataTransfer }) => Boolean(dataTransfer?.types.includes("Files"));

/**
 * @param {HTMLElement} root
 * @param {(files: File[], target: Element) => void} onFiles gets what they were dropped on or pasted into
 */
export function takesFiles(root, onFiles) {
  /** @type {Element | null} */
  let marked = null;

  /** @param {Element | null} next */
  function mark(next) {
    if (next === marked) return;
    marked?.classList.remove("is-over");
    next?.classList.add("is-over");
    marked = next;
  }

  root.addEventListener("dragover", (event) => {
    if (!hasFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    mark(/** @type {Element} */ (event.target).closest(".url-row") ?? root);
  });
  root.addEventListener("dragleave", (event) => {
    if (!root.contains(/** @type {Node | null} */ (event.relatedTarget))) mark(null);
  });
  root.addEventListener("drop", (event) => {
    if (!hasFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    mark(null);
    onFiles([...event.dataTransfer.files], /** @type {Element} */ (event.target));
  });
  root.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain");
    // An office program offers a picture of its text too. A file manager offers the name of its file.
    if (!files.length || (text && !files.some(({ name }) => text.includes(name)))) return;
    event.preventDefault();
    onFiles(files, /** @type {Element} */ (event.target));
  });
  // Beside the form, the browser would leave the page and show the file.
  for (const name of /** @type {const} */ (["dragover", "drop"])) {
    addEventListener(name, (event) => {
      if (event.defaultPrevented || !hasFiles(event) || !event.dataTransfer) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    });
  }
}
