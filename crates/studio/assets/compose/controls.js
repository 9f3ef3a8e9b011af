/**
 * @file The controls of the form. Each is made once and then told what to show: whether it is on, why it is off, and
 * what the service has against its value.
 */

import { h, setAttribute, setText } from "../core/dom.js";

let made = 0;
/** An id that no other element has. @param {string} stem */
export const newId = (stem) => `${stem}-${(made += 1)}`;

/**
 * A line under a control: why it is off, or what is wrong with it.
 * @param {HTMLElement[]} controls what the line describes
 */
export function remark(controls) {
  const root = h("p", { class: "remark", id: newId("remark"), hidden: true });
  return {
    root,
    /** @param {string} text @param {boolean} [isError] */
    show(text, isError = false) {
      setText(root, text);
      root.hidden = !text;
      const isWrong = isError && text !== "";
      root.classList.toggle("is-error", isWrong);
      for (const control of controls) {
        setAttribute(control, "aria-describedby", text ? root.id : null);
        setAttribute(control, "aria-invalid", isWrong ? "true" : null);
      }
    },
  };
}

/**
 * A label over a control, and a remark under it.
 * @param {string} label
 * @param {any} control an input, with or without an id
 * @param {HTMLElement | null} [aside] at the end of the label's line
 */
export function field(label, control, aside = null) {
  control.id ||= newId("field");
  const note = remark([control]);
  const head = h("div", { class: "field-head" }, h("label", { for: control.id }, label), aside);
  const root = h("div", { class: "field" }, head, control, note.root);
  return {
    root,
    control,
    remark: note,
    /** @param {string} reason empty: it is on */
    off(reason) {
      control.disabled = Boolean(reason);
      root.classList.toggle("is-off", Boolean(reason));
      note.show(reason);
    },
  };
}

/**
 * @typedef {object} Choice
 * @property {string} value
 * @property {string} label
 * @property {string} [reason] why it cannot be chosen
 * @property {Node} [picture]
 */

/**
 * A group of radio buttons that look like one segmented control.
 * @param {string} label
 * @param {(value: string) => void} onChange
 * @param {{className?: string}} [options]
 */
export function choices(label, onChange, { className = "" } = {}) {
  const name = newId("choice");
  const list = h("div", { class: `choices ${className}` });
  const root = h("fieldset", { class: "field" }, h("legend", {}, label), list);
  const note = remark([root]);
  root.append(note.root);
  let shown = "";
  return {
    root,
    remark: note,
    /** @param {Choice[]} options @param {string} value @param {string} [offReason] */
    show(options, value, offReason = "") {
      const key = JSON.stringify(options.map(({ value, label, reason }) => [value, label, reason]));
      if (key !== shown) {
        shown = key;
        list.replaceChildren(...options.map((one) => radio(name, one, onChange)));
      }
      for (const input of list.querySelectorAll("input")) input.checked = input.value === value;
      root.disabled = Boolean(offReason);
      root.classList.toggle("is-off", Boolean(offReason));
      const reasons = new Set(options.map((one) => one.reason).filter(Boolean));
      note.show(offReason || [...reasons].join(" "));
    },
  };
}

/** @param {string} name @param {Choice} option @param {(value: string) => void} onChange */
function radio(name, { value, label, reason, picture }, onChange) {
  const input = h("input", { type: "radio", name, value, disabled: Boolean(reason), onchange: () => onChange(value) });
  return h(
    "label",
    { class: "choice", title: reason || null },
    input,
    h("span", { class: "choice-face" }, picture, label),
  );
}

/**
 * A switch.
 * @param {string} label
 * @param {string} hint what it does
 * @param {(isOn: boolean) => void} onChange
 */
export function toggle(label, hint, onChange) {
  const id = newId("switch");
  const input = h("input", {
    type: "checkbox",
    role: "switch",
    id,
    class: "switch",
    onchange: () => onChange(input.checked),
  });
  const note = remark([input]);
  const words = h("label", { for: id }, label, h("span", { class: "hint" }, hint));
  const root = h("div", { class: "toggle" }, words, input, note.root);
  return {
    root,
    control: input,
    remark: note,
    /** @param {boolean} isOn @param {string} [offReason] */
    show(isOn, offReason = "") {
      input.checked = isOn && !offReason;
      input.disabled = Boolean(offReason);
      root.classList.toggle("is-off", Boolean(offReason));
      note.show(offReason);
    },
  };
}
