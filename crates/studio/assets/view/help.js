/** @file The help overlay: the keys, and a switch that turns single keys off (WCAG 2.1.4). */

import { h } from "../core/dom.js";
import { SEND_WORDS } from "../core/keyboard.js";
import { toggle } from "../compose/controls.js";
import { closeButton, dialog } from "./dialog.js";

const SETTING = "kinora.keys";

/** @type {[string, [string, string][]][]} */
const KEYS = [
  [
    "Anywhere",
    [
      ["N", "New video"],
      ["/", "Search"],
      ["?", "This help"],
      ["Esc", "Close, or stop comparing or selecting"],
    ],
  ],
  ["In the form", [[SEND_WORDS, "Generate"]]],
  [
    "In the gallery",
    [
      ["Arrows", "Move"],
      ["Enter", "Open"],
    ],
  ],
  [
    "In a video",
    [
      ["← →", "Newer, older"],
      ["Space", "Play or pause"],
      ["D", "Download"],
      ["F", "Make final"],
      ["E", "Edit"],
      ["R", "Another seed"],
      ["V", "Four variations"],
      ["G", "Continue video"],
      ["U", "Use in form"],
      ["X", "Compare"],
      ["C", "Copy as code"],
      ["S", "Favourite"],
      ["L", "Copy video link"],
      ["P", "Copy page link"],
      ["Delete", "Delete, or cancel (it asks)"],
    ],
  ],
];

/** Whether single keys are shortcuts; the visitor's choice stays in this browser. */
export const hasKeys = () => localStorage.getItem(SETTING) !== "off";

export function showHelp() {
  const root = dialog("Keyboard", "dialog is-help", () => root.remove());
  const keys = toggle("Single keys", "Turn them off if they get in the way of speech input", (isOn) =>
    localStorage.setItem(SETTING, isOn ? "on" : "off"),
  );
  keys.show(hasKeys());
  root.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", {}, "Keyboard"),
      closeButton(() => root.close()),
    ),
    h(
      "div",
      { class: "keys" },
      KEYS.map(([title, rows]) =>
        h(
          "section",
          {},
          h("h3", {}, title),
          h(
            "dl",
            {},
            rows.map(([key, words]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, words))),
          ),
        ),
      ),
    ),
    keys.root,
  );
  root.showModal();
}
