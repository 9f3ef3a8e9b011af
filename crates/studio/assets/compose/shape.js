/** @file The part of the form for shape, size and length. */

import { h, setStyle, setText } from "../core/dom.js";
import { adaptiveResolutions, lengths, ratio, shapes, sizeName, whyNot } from "../core/models.js";
import { choices, field, newId } from "./controls.js";

/** @typedef {import("../core/request.js").Form} Form */
/** @typedef {import("../core/models.js").Capabilities} Capabilities */

const OF_SOURCE = "Taken from the video that you edit.";

/**
 * The size that a form means; `undefined` for `adaptive`.
 * @param {Form} form
 * @param {Capabilities} can
 */
export function sizeOf(form, can) {
  if (form.shape === "adaptive") return undefined;
  return shapes(can)
    .get(form.shape)
    ?.find((size) => sizeName(size) === form.size);
}

/**
 * The form with a shape, a size and a length that the model has; nearest to those that it had.
 * @param {Form} form
 * @param {Capabilities} can
 * @returns {Partial<Form>}
 */
export function fitted(form, can) {
  const offered = shapes(can);
  const adaptive = adaptiveResolutions(can);
  const shape =
    offered.has(form.shape) || (form.shape === "adaptive" && adaptive.length) ? form.shape : [...offered.keys()][0];
  const names = shape === "adaptive" ? adaptive : (offered.get(shape) ?? []).map(sizeName);
  const size = names.includes(form.size) ? form.size : names.includes("720p") ? "720p" : names[0];
  const all = lengths(can);
  const isAuto = form.seconds === "auto";
  const wanted = isAuto ? can.seconds_default : Number(form.seconds);
  const near = all.reduce((best, one) => (Math.abs(one - wanted) < Math.abs(best - wanted) ? one : best));
  return { shape, size, seconds: isAuto && can.auto_duration ? "auto" : near };
}

/** A little frame of the shape. @param {string} shape */
function glyph(shape) {
  const frame = h("span", { class: shape === "adaptive" ? "glyph is-adaptive" : "glyph" });
  const by = shape === "adaptive" ? 1 : ratio(shape);
  setStyle(frame, { "--glyph-width": Math.min(1, by), "--glyph-height": Math.min(1, 1 / by) });
  return frame;
}

/**
 * @param {(change: Partial<Form>) => void} change
 */
export function shapePart(change) {
  const shape = choices("Shape", (value) => change({ shape: value }), { className: "has-glyphs" });
  const size = choices("Size", (value) => change({ size: value }));
  const output = h("output", { class: "value" });
  const range = h("input", {
    type: "range",
    class: "range",
    oninput: () => change({ seconds: all[Number(range.value)] }),
  });
  const length = field("Length", range, output);
  const autoId = newId("auto");
  const auto = h("input", {
    type: "checkbox",
    id: autoId,
    onchange: () => change({ seconds: auto.checked ? "auto" : fixed }),
  });
  const autoNote = h("span", { class: "hint" });
  const autoLine = h("div", { class: "check" }, auto, h("label", { for: autoId }, "Let the model choose ", autoNote));
  length.root.append(autoLine);
  const root = h("div", { class: "part" }, shape.root, size.root, length.root);
  /** @type {number[]} */
  let all = [];
  let fixed = 5;

  return {
    root,
    /** @param {Form} form @param {import("../core/models.js").Model[]} models @param {import("../core/models.js").Model} model */
    show(form, models, model) {
      const can = model.capabilities;
      const offered = shapes(can);
      const isEdit = form.source !== null;
      const off = isEdit ? OF_SOURCE : "";
      const adaptive = adaptiveResolutions(can);
      const hasPicture = form.pictures !== "words";
      const noMatch = adaptive.length
        ? hasPicture
          ? ""
          : "“As picture” needs a picture."
        : whyNot(models, model, (one) => adaptiveResolutions(one).length > 0);
      const options = [...offered.keys()].map((value) => ({ value, label: value, picture: glyph(value), reason: "" }));
      options.push({ value: "adaptive", label: "As picture", picture: glyph("adaptive"), reason: noMatch });
      shape.show(options, form.shape, off);
      const names = form.shape === "adaptive" ? adaptive : (offered.get(form.shape) ?? []).map(sizeName);
      size.show(
        names.map((value) => ({ value, label: value })),
        form.size,
        off,
      );

      all = lengths(can);
      const isAuto = form.seconds === "auto";
      if (!isAuto) fixed = Number(form.seconds);
      range.min = 0;
      range.max = all.length - 1;
      range.value = Math.max(0, all.indexOf(fixed));
      length.off(off);
      range.disabled = isEdit || isAuto;
      range.setAttribute("aria-valuetext", `${fixed} seconds`);
      setStyle(range, { "--filled": all.length > 1 ? Number(range.value) / (all.length - 1) : 1 });
      setText(output, isEdit ? "as source" : isAuto ? "auto" : `${fixed} s`);
      auto.checked = isAuto;
      auto.disabled = isEdit || !can.auto_duration;
      autoLine.classList.toggle("is-off", auto.disabled);
      setText(autoNote, isEdit ? "" : whyNot(models, model, (one) => one.auto_duration));
    },
    /** The control of a field of the API. @param {string} param */
    find(param) {
      if (param === "seconds") return length;
      if (param === "size" || param === "resolution") return size;
      return param === "aspect_ratio" ? shape : undefined;
    },
  };
}
