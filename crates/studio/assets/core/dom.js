/**
 * @file Small tools for the document: elements, keyed lists, announcements. No HTML is ever parsed from a
 * string, so that texts of users stay texts.
 */

import { PATHS } from "./icons.js";

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | false | null | undefined} Child */

/**
 * Makes an element. A property `on…` is a listener, `style` sets custom properties, `true` sets an empty
 * attribute, and `false`, `null` and `undefined` set none.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") setStyle(element, value);
    else setAttribute(element, name, value);
  }
  element.append(
    ...children
      .flat()
      .filter((child) => child || child === 0)
      .map(asNode),
  );
  return element;
}

/** @param {any} child */
const asNode = (child) => (child instanceof Node ? child : String(child));

/**
 * Sets an attribute only where it differs, so that nothing is laid out in vain.
 * @param {Element} element
 * @param {string} name
 * @param {unknown} value
 */
export function setAttribute(element, name, value) {
  const text = value === true ? "" : String(value);
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/**
 * @param {HTMLElement} element
 * @param {Record<string, string | number>} properties
 */
export function setStyle(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    const text = String(value);
    if (element.style.getPropertyValue(name) !== text) element.style.setProperty(name, text);
  }
}

/**
 * Sets text only where it differs, so that nothing is laid out in vain.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * An icon for decoration; its button carries the name.
 * @param {keyof typeof PATHS} name
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/**
 * Makes the children of `parent` those of `keys`, in this order, and keeps the elements of keys that stay.
 * @template T
 * @param {Element} parent
 * @param {Map<string, T & {root: HTMLElement}>} known what is shown now, by key
 * @param {string[]} keys what is to be shown
 * @param {(key: string) => T & {root: HTMLElement}} make
 */
export function reconcile(parent, known, keys, make) {
  const wanted = new Set(keys);
  for (const [key, item] of known) {
    if (wanted.has(key)) continue;
    item.root.remove();
    known.delete(key);
  }
  let next = parent.firstElementChild;
  for (const key of keys) {
    let item = known.get(key);
    if (!item) known.set(key, (item = make(key)));
    if (item.root === next) next = next.nextElementSibling;
    else parent.insertBefore(item.root, next);
  }
}

const voices = {
  polite: h("div", { class: "unseen", role: "status" }),
  assertive: h("div", { class: "unseen", role: "alert" }),
};

/** The elements that screen readers listen to. */
export const announcers = () => [voices.polite, voices.assertive];

/**
 * Tells a screen reader.
 * @param {string} text
 * @param {"polite" | "assertive"} [manner]
 */
export function announce(text, manner = "polite") {
  const voice = voices[manner];
  voice.textContent = "";
  // What lies outside an open dialog is not read.
  const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  if (voice.parentElement !== place) place.append(voice);
  // A change in a later frame is read again, also when the words are the same.
  requestAnimationFrame(() => (voice.textContent = text));
}
