/** @file The form for a new video. It holds the state; its parts show it and say what changes. */

import { ApiError, submit, usage } from "../core/api.js";
import { announce, h, icon, setAttribute, setText } from "../core/dom.js";
import { refusalWords } from "../core/failure.js";
import { plural, shortened } from "../core/format.js";
import { SEND } from "../core/keyboard.js";
import { whyNot } from "../core/models.js";
import { rememberPrompt } from "../core/kept.js";
import { leftWords } from "../core/prices.js";
import { bodyOf } from "../core/request.js";
import { keepForm, keptForm, rememberRequest } from "../core/session.js";
import * as tasks from "../core/tasks.js";
import { submitFour } from "../core/variations.js";
import { toast } from "../view/toast.js";
import { field, remark, toggle } from "./controls.js";
import { takesFiles } from "./drop.js";
import { priceWords } from "./price.js";
import { modelChoice } from "./model.js";
import { picturesPart } from "./pictures.js";
import { fitted, shapePart, sizeOf } from "./shape.js";
import { sourcePart } from "./source.js";
import { firstMissing, formOf, fresh, possibleWay, seedComplaint } from "./state.js";
import { wordsPart } from "./words.js";

/** @typedef {import("../core/request.js").Form} Form */
/** @typedef {import("../core/models.js").Model} Model */
/** @typedef {import("../core/api.js").Task} Task */

const PROMPT_MAX = 5000;
const NEGATIVE_MAX = 2500;

/**
 * @param {Model[]} models
 * @param {{onSubmitted: (task: Task) => void, onClose: () => void}} events
 */
export function composer(models, { onSubmitted, onClose }) {
  let form = { ...fresh(models[0]), ...keptForm() };
  let isSending = false;
  const model = () => models.find((one) => one.id === form.model) ?? models[0];

  const modelPart = modelChoice(models, (value) => change({ model: value }));
  const count = h("span", { class: "count" });
  const prompt = field(
    "Prompt",
    h("textarea", {
      class: "input prompt",
      rows: 4,
      dir: "auto",
      maxlength: PROMPT_MAX,
      required: true,
      id: "prompt",
      placeholder: "A red balloon drifts over a calm sea at dawn",
      oninput: () => change({ prompt: prompt.control.value }),
    }),
    count,
  );
  const words = wordsPart((prompt) => change({ prompt }));
  prompt.root.append(words.root);
  const source = sourcePart(change);
  const pictures = picturesPart(change);
  const shape = shapePart(change);
  const sound = toggle("Sound", "A sound track that fits the scene", (sound) => change({ sound }));
  const draft = toggle("Draft first", "A quick 480p preview; make it final when you like it", (draft) =>
    change({ draft }),
  );
  const negative = field(
    "Leave out",
    h("textarea", {
      class: "input",
      rows: 2,
      dir: "auto",
      maxlength: NEGATIVE_MAX,
      placeholder: "rain, fog",
      oninput: () => change({ negative: negative.control.value }),
    }),
  );
  const seed = field(
    "Seed",
    h("input", {
      class: "input",
      inputmode: "numeric",
      autocomplete: "off",
      placeholder: "Random",
      oninput: () => change({ seed: seed.control.value.trim() }),
    }),
  );
  const more = h(
    "details",
    { class: "more" },
    h("summary", {}, "More"),
    h("div", { class: "part" }, negative.root, seed.root),
  );
  const failure = remark([]);
  const price = h("p", { class: "hint composer-price", hidden: true });
  let left = "";
  const button = h(
    "button",
    { type: "submit", class: "button is-primary is-wide" },
    h("span", {}, "Generate"),
    h("kbd", { "aria-hidden": "true" }, SEND),
  );
  const four = h(
    "button",
    { type: "button", class: "button", onclick: (/** @type {Event} */ event) => send(event, true) },
    "Four variations",
  );
  const close = h(
    "button",
    { type: "button", class: "icon-button composer-close", "aria-label": "Close", onclick: onClose },
    icon("close"),
  );
  const root = h(
    "form",
    { class: "composer", "aria-label": "New video", novalidate: true, onsubmit: send },
    h("div", { class: "composer-head" }, h("h2", {}, "New video"), close),
    h(
      "div",
      { class: "composer-body" },
      source.root,
      modelPart.root,
      prompt.root,
      pictures.root,
      shape.root,
      sound.root,
      draft.root,
      more,
    ),
    h("div", { class: "composer-foot" }, failure.root, price, h("div", { class: "composer-buttons" }, button, four)),
  );
  root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  });

  takesFiles(root, pictures.take);

  /** @param {Partial<Form>} part */
  function change(part) {
    form = { ...form, ...part };
    if (part.source && !model().capabilities.edit)
      form.model = models.find((one) => one.capabilities.edit)?.id ?? form.model;
    form = { ...form, ...fitted(form, model().capabilities), pictures: possibleWay(form, model()) };
    keepForm(form);
    show();
  }

  function show() {
    const can = model().capabilities;
    const isEdit = form.source !== null;
    modelPart.show(form, model());
    source.show(form);
    if (prompt.control.value !== form.prompt) prompt.control.value = form.prompt;
    prompt.remark.show("");
    words.show(form.prompt);
    prompt.control.placeholder = isEdit
      ? "The same at night, snow falls"
      : "A red balloon drifts over a calm sea at dawn";
    setText(count, form.prompt.length > PROMPT_MAX * 0.8 ? `${form.prompt.length} of ${PROMPT_MAX}` : "");
    pictures.show(form, models, model());
    shape.show(form, models, model());
    sound.show(form.sound, isEdit ? "An edit has no sound." : whyNot(models, model(), (one) => one.audio_output));
    draft.show(form.draft, isEdit ? "An edit is made in one go." : whyNot(models, model(), (one) => one.draft));
    if (negative.control.value !== form.negative) negative.control.value = form.negative;
    negative.off(whyNot(models, model(), (one) => one.negative_prompt));
    if (seed.control.value !== form.seed) seed.control.value = form.seed;
    seed.remark.show(seedComplaint(form), true);
    failure.show("");
    setText(price, [priceWords(form, model()), left].filter(Boolean).join(" "));
    price.hidden = !price.textContent;
    setText(
      button.firstElementChild,
      isEdit ? "Make the edit" : form.draft && can.draft ? "Generate draft" : "Generate",
    );
    document.body.classList.toggle("is-editing", isEdit);
  }

  /** Shows what the budget has left, of a model that costs anything. */
  async function showBudget() {
    if (!models.some((one) => one.prices)) return;
    left = await usage().then(leftWords, () => "");
    show();
  }

  /** @param {Event} event @param {boolean} [isFour] with four seeds */
  async function send(event, isFour = false) {
    event.preventDefault();
    if (isSending) return;
    const waits = pictures.uploading();
    if (waits) return complainAt(waits, "This file is still on its way. Wait for it, or cancel the upload.");
    const missing = firstMissing(form);
    if (missing) return complain(...missing);
    isSending = true;
    for (const one of [button, four]) setAttribute(one, "aria-disabled", "true");
    const label = button.firstElementChild;
    const before = label.textContent;
    setText(label, "Sending…");
    const body = bodyOf(form, model().capabilities, sizeOf(form, model().capabilities));
    const onRetry = () => setText(label, "Service away, trying again…");
    try {
      const task = await (isFour ? sendFour(body, onRetry) : sendOne(body, onRetry));
      rememberPrompt(form.prompt.trim());
      if (form.source) change({ source: null, prompt: "" });
      showBudget();
      onSubmitted(task);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      complain(error.param, refusalWords(error));
    } finally {
      isSending = false;
      for (const one of [button, four]) setAttribute(one, "aria-disabled", null);
      if (label.textContent?.endsWith("…")) setText(label, before);
    }
  }

  /** @param {Record<string, unknown>} body @param {() => void} onRetry */
  async function sendOne(body, onRetry) {
    const task = await submit(body, onRetry);
    rememberRequest(task.id, body);
    tasks.put([task]);
    const ahead = task.queue_position;
    announce(ahead ? `Accepted. ${plural(ahead, "task")} before it.` : "Accepted.");
    return task;
  }

  /** @param {Record<string, unknown>} body @param {() => void} onRetry */
  async function sendFour(body, onRetry) {
    const { accepted, words, isPart } = await submitFour(body, onRetry);
    toast(words, { isError: isPart });
    return accepted[0];
  }

  /** Shows a refusal where it belongs. @param {string} param @param {string} text */
  function complain(param, text) {
    if (param === "seed" || param === "negative_prompt") more.open = true;
    complainAt(find(param), text);
  }

  /** @param {ReturnType<typeof find>} control `undefined`: the form as a whole @param {string} text */
  function complainAt(control, text) {
    (control?.remark ?? failure).show(text, true);
    announce(text, "assertive");
    const target = control && ("control" in control ? control.control : control.root.querySelector("input"));
    target?.focus();
    (control?.root ?? failure.root).scrollIntoView({ block: "nearest" });
  }

  /** @param {string} param */
  function find(param) {
    if (param === "prompt") return prompt;
    if (param === "negative_prompt") return negative;
    if (param === "seed") return seed;
    return pictures.find(param) ?? shape.find(param);
  }

  more.open = Boolean(form.seed || form.negative);
  change({ model: model().id });
  showBudget();
  // What others have made since tells more of the models.
  tasks.listen(() => modelPart.show(form, model()));
  return {
    root,
    focus: () => prompt.control.focus(),
    /** @param {string} text */
    suggest(text) {
      change({ prompt: text });
      prompt.control.focus();
    },
    /** Starts an edit of a task's video. @param {Task} task */
    edit(task) {
      change({ source: task, prompt: "", images: [""] });
      announce(`Editing “${shortened(task.prompt, 40)}”.`);
      prompt.control.focus();
    },
    /** Fills the form with an earlier request. @param {Record<string, any>} body */
    fill(body) {
      const chosen = models.find((one) => one.id === body.model) ?? model();
      change({ ...fresh(chosen), ...formOf(body) });
      prompt.control.focus();
    },
    /** Takes what the service says of its models now. @param {Model[]} next */
    update(next) {
      for (const { id, available, paused } of next)
        Object.assign(models.find((one) => one.id === id) ?? {}, { available, paused });
      modelPart.show(form, model());
    },
    canEdit: models.some((one) => one.capabilities.edit),
  };
}
