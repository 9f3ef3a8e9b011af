/** @file From the form's state, or from an earlier task, to the body of a submit. */

import { requestOf } from "./session.js";

/** @typedef {import("./api.js").Task} Task */

/**
 * @typedef {object} Form The state of the form.
 * @property {string} model
 * @property {string} prompt
 * @property {string} negative
 * @property {"words" | "first" | "both" | "references"} pictures
 * @property {string} first
 * @property {string} last
 * @property {string[]} images
 * @property {string[]} audios
 * @property {string} shape such as `16:9`, or `adaptive`
 * @property {string} size such as `720p` or `256×256`: a name of `sizeName`
 * @property {number | "auto"} seconds
 * @property {boolean} sound
 * @property {boolean} draft
 * @property {string} seed digits, or empty for a random one
 * @property {number} strength
 * @property {Task | null} source the task whose video is edited
 */

const SEED_MAX = 4_294_967_295;

/** @param {string[]} urls */
const filled = (urls) => urls.map((url) => url.trim()).filter(Boolean);

/** @param {Form} form */
function pictures(form) {
  const images = filled(form.images);
  if (form.source) return images.length ? { reference_images: images } : {};
  if (form.pictures === "words") return {};
  if (form.pictures === "references") {
    const audios = filled(form.audios);
    return { reference_images: images, ...(audios.length && { reference_audios: audios }) };
  }
  return {
    first_frame: form.first.trim(),
    ...(form.pictures === "both" && { last_frame: form.last.trim() }),
  };
}

/**
 * The body that a form asks for. What the model does not take is left out.
 * @param {Form} form
 * @param {import("./models.js").Capabilities} can
 * @param {string | undefined} size the size that the form's shape and name of a size mean
 * @returns {Record<string, unknown>}
 */
export function bodyOf(form, can, size) {
  const negative = can.negative_prompt ? form.negative.trim() : "";
  const shared = {
    model: form.model,
    prompt: form.prompt.trim(),
    ...(negative && { negative_prompt: negative }),
    ...pictures(form),
    ...(form.seed && { seed: Number(form.seed) }),
  };
  if (form.source) return { ...shared, edit_task_id: form.source.id, edit_strength: form.strength };
  return {
    ...shared,
    seconds: form.seconds,
    ...(size ? { size } : { aspect_ratio: "adaptive", resolution: form.size }),
    ...(can.audio_output && !form.sound && { generate_audio: false }),
    ...(can.draft && form.draft && { draft: true }),
  };
}

/** @param {Task} draft */
export const finalOf = (draft) => ({ model: draft.model, draft_task_id: draft.id });

/**
 * The request that led to a task, as far as it is known: whole where this tab sent it, otherwise what the task object
 * shows.
 * @param {Task} task
 * @returns {{body: Record<string, unknown>, isWhole: boolean}}
 */
export function requestFor(task) {
  const remembered = requestOf(task.id);
  // A final takes its seed from the draft.
  if (remembered?.draft_task_id) return { body: remembered, isWhole: true };
  if (remembered) return { body: { ...remembered, seed: task.seed }, isWhole: true };
  if (task.draft_task_id) return { body: { model: task.model, draft_task_id: task.draft_task_id }, isWhole: true };
  const shared = { model: task.model, prompt: task.prompt, seed: task.seed };
  if (task.edit_task_id) return { body: { ...shared, edit_task_id: task.edit_task_id }, isWhole: false };
  const seconds = task.seconds === "auto" ? "auto" : Number(task.seconds);
  return {
    body: {
      ...shared,
      seconds,
      ...(task.size === "adaptive" || task.draft ? {} : { size: task.size }),
      ...(task.draft && { draft: true }),
    },
    isWhole: false,
  };
}

/** A seed that nobody has chosen. */
export const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0] % SEED_MAX;

/**
 * The same request with another seed. A final has no seed of its own: the same scene with another seed is a new
 * request.
 * @param {Task} task
 * @returns {{body: Record<string, unknown>, isWhole: boolean}}
 */
export function anotherTake(task) {
  const { body, isWhole } = requestFor(task);
  const seed = randomSeed();
  if (!("draft_task_id" in body)) return { body: { ...body, seed }, isWhole };
  const draft = requestOf(String(body.draft_task_id));
  if (draft) {
    const { draft: _, ...rest } = draft;
    return { body: { ...rest, seed }, isWhole: true };
  }
  const { model, prompt, size } = task;
  return { body: { model, prompt, size, seconds: Number(task.seconds), seed }, isWhole: false };
}
