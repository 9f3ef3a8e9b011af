/**
 * @file Words for the prompt: of the camera and the light, and the last prompts. They are put into the prompt itself,
 * where one sees them and can change them.
 */

import { h, icon, setAttribute } from "../core/dom.js";
import { shortened } from "../core/format.js";
import { lastPrompts } from "../core/kept.js";
import { newId } from "./controls.js";

/** What film makers call it, and models have read. @type {[string, string[]][]} */
const PRESETS = [
  ["Camera", ["slow push in", "pull back", "pan left", "pan right", "orbit shot", "tracking shot", "handheld"]],
  ["View", ["wide shot", "close-up", "low angle", "aerial view", "shallow depth of field"]],
  ["Light", ["golden hour", "blue hour", "soft window light", "backlit", "overcast", "neon light", "candlelight"]],
];

/** A text without what has a meaning in a pattern. @param {string} text */
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\-]/g, "\\$&");

/** Where a prompt has some words as one of its parts. @param {string} prompt @param {string} words */
const place = (prompt, words) => new RegExp(`(^|[,.;]\\s*)${escaped(words)}(?=$|\\s*[,.;])`, "i").exec(prompt.trim());

/** A prompt with the words at its end, or without them where it has them. @param {string} prompt @param {string} words */
function toggled(prompt, words) {
  const text = prompt.trim();
  const found = place(text, words);
  if (!found) return text ? `${text.replace(/[,.;\s]+$/, "")}, ${words}` : words;
  return `${text.slice(0, found.index)}${text.slice(found.index + found[0].length)}`.replace(/^[,;\s]+/, "");
}

/**
 * @param {(prompt: string) => void} onChange
 */
export function wordsPart(onChange) {
  let prompt = "";
  const chips = PRESETS.flatMap(([, all]) => all).map((words) =>
    h("button", { type: "button", class: "chip", onclick: () => onChange(toggled(prompt, words)) }, words),
  );
  const presets = panel(
    ...PRESETS.map(([name, all]) =>
      h(
        "div",
        { class: "chips", role: "group", "aria-label": name },
        h("span", { class: "hint", "aria-hidden": "true" }, name),
        chips.filter((chip) => all.includes(chip.textContent)),
      ),
    ),
  );
  const list = h("ul", { class: "prompts" });
  const note = h("p", { class: "hint" });
  const prompts = panel(list, note);
  const presetsOpener = opener("final", "Camera and light", presets);
  const promptsOpener = opener("recent", "Last prompts", prompts);
  const root = h(
    "div",
    { class: "words" },
    h("div", { class: "words-openers" }, presetsOpener, promptsOpener),
    presets,
    prompts,
  );

  /** @param {...Node} children */
  function panel(...children) {
    return h("div", { class: "words-panel", id: newId("words"), hidden: true }, ...children);
  }

  /** @param {"final" | "recent"} name of an icon @param {string} label @param {HTMLElement} opens */
  function opener(name, label, opens) {
    return h(
      "button",
      {
        type: "button",
        class: "button is-quiet",
        "aria-expanded": "false",
        "aria-controls": opens.id,
        onclick: () => open(opens.hidden ? opens : null),
      },
      icon(name),
      label,
    );
  }

  /** One at most is open. @param {HTMLElement | null} wanted */
  function open(wanted) {
    presets.hidden = wanted !== presets;
    prompts.hidden = wanted !== prompts;
    setAttribute(presetsOpener, "aria-expanded", String(!presets.hidden));
    setAttribute(promptsOpener, "aria-expanded", String(!prompts.hidden));
    if (wanted === prompts) drawPrompts();
  }

  function drawPrompts() {
    const known = lastPrompts();
    note.textContent = known.length
      ? "The last 20 that were accepted, kept in this browser until you sign out."
      : "Prompts that the service accepts appear here. They are kept in this browser until you sign out.";
    list.replaceChildren(...known.map((text) => h("li", {}, line(text))));
  }

  /** @param {string} text */
  const line = (text) =>
    h(
      "button",
      { type: "button", class: "prompts-line", dir: "auto", title: text, onclick: () => take(text) },
      shortened(text, 120),
    );

  /** @param {string} text */
  function take(text) {
    open(null);
    promptsOpener.focus();
    onChange(text);
  }

  return {
    root,
    /** @param {string} next the prompt as it is now */
    show(next) {
      prompt = next;
      for (const chip of chips) setAttribute(chip, "aria-pressed", String(Boolean(place(prompt, chip.textContent))));
    },
  };
}
