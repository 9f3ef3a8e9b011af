/** @file Puts a text on the clipboard. */

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages without TLS have no clipboard; the old way still works.
    const area = document.createElement("textarea");
    area.className = "unseen";
    area.readOnly = true;
    area.value = text;
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    // What lies outside an open dialog cannot be selected.
    ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    before?.focus();
  }
}
