/** @file The bar at the top: the name, the state of the connection, help and sign-out. */

import { h, icon, setText } from "../core/dom.js";

/** @typedef {import("../core/live.js").State} State */

const WORDS = { connecting: "Connecting…", live: "", reconnecting: "Reconnecting…", "signed-out": "" };

/** The name, drawn: a shutter's blade and the letter. */
function mark() {
  return h("span", { class: "mark", "aria-hidden": "true" });
}

/**
 * @param {keyof typeof import("../core/icons.js").PATHS} name
 * @param {string} label
 * @param {string} title
 * @param {() => void} onClick
 */
const iconButton = (name, label, title, onClick) =>
  h("button", { type: "button", class: "icon-button", "aria-label": label, title, onclick: onClick }, icon(name));

/**
 * @param {{
 *   onHelp: () => void,
 *   onCreate: () => void,
 *   onService: (() => void) | null,
 *   onLeave: (() => void) | null,
 * }} events those without a function have no button
 */
export function header({ onHelp, onCreate, onService, onLeave }) {
  const state = h("span", { class: "connection", role: "status" });
  const root = h(
    "header",
    { class: "top" },
    h("a", { class: "skip", href: "#prompt" }, "Skip to the form"),
    h("h1", { class: "name" }, mark(), "Kinora ", h("span", {}, "Studio")),
    state,
    h(
      "div",
      { class: "top-buttons" },
      h(
        "button",
        { type: "button", class: "button is-primary new-button", onclick: onCreate },
        icon("add"),
        "New video",
      ),
      onService && iconButton("service", "Service", "Queue, workers and devices", onService),
      iconButton("help", "Keyboard help", "Keyboard", onHelp),
      onLeave && iconButton("leave", "Sign out", "Sign out", onLeave),
    ),
  );
  return {
    root,
    /** @param {State} now */
    show(now) {
      setText(state, WORDS[now]);
      state.dataset.state = now;
    },
  };
}
