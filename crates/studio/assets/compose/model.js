/** @file The choice of a model, and what the page knows of the chosen one. */

import { h, setText } from "../core/dom.js";
import { engineOf, lately, sketches } from "../core/experience.js";
import { span } from "../core/format.js";
import { strengths } from "../core/models.js";
import { choices, field } from "./controls.js";

/** @typedef {import("../core/request.js").Form} Form */
/** @typedef {import("../core/models.js").Model} Model */

/** Up to so many models are buttons beside each other; more are a list. */
const BUTTONS_MAX = 3;

/**
 * @param {Model[]} models
 * @param {(value: string) => void} onChange
 */
export function modelChoice(models, onChange) {
  const isFew = models.length <= BUTTONS_MAX;
  const buttons = isFew ? choices("Model", onChange) : null;
  const select = h(
    "select",
    { class: "input", onchange: () => onChange(select.value) },
    models.map((one) => h("option", { value: one.id }, one.id)),
  );
  const part = buttons ?? field("Model", select);
  const engine = h("span");
  const strong = h("span");
  const time = h("span", { class: "card-time" });
  const card = h("p", { class: "hint model-card" }, engine, strong, time);
  const root = h("div", { class: "model" }, part.root, card);
  return {
    root,
    /** @param {Form} form @param {Model} model */
    show(form, model) {
      const reason = (/** @type {Model} */ one) =>
        form.source && !one.capabilities.edit ? `${one.id} makes no edits.` : "";
      if (buttons)
        buttons.show(
          models.map((one) => ({ value: one.id, label: one.id, reason: reason(one) })),
          model.id,
        );
      else {
        select.value = model.id;
        for (const option of select.options)
          option.disabled = models.some((one) => one.id === option.value && reason(one));
      }
      if (model.paused) part.remark.show(pausedWords(model.paused.reason));
      else if (!model.available) part.remark.show("No worker serves this model now; a task will wait for one.");
      setText(engine, engineWords(engineOf(model)));
      setText(strong, strengths(model.capabilities));
      const seconds = lately(model.id, form.draft && model.capabilities.draft);
      setText(time, seconds === undefined ? "" : `About ${span(seconds)} here lately.`);
      time.hidden = seconds === undefined;
    },
  };
}

/** @param {string | null} reason */
const pausedWords = (reason) => `This model is paused${reason ? `: ${reason}` : ""}. A task will wait until it is resumed.`;

/** @param {string} [engine] */
const engineWords = (engine) =>
  sketches(engine) ? "Sketches: painted by rules in seconds, without a neural engine." : engine ? `Engine: ${engine}.` : "";
