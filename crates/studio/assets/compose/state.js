/** @file The state of the form: its beginning, what it lacks before a submit, and what an earlier request makes of it. */

import { shapeOf, sizeName } from "../core/models.js";

/** @typedef {import("../core/request.js").Form} Form */
/** @typedef {import("../core/models.js").Model} Model */

const SEED_MAX = 4_294_967_295;
const NO_PICTURE = "Choose a picture, or give its address.";

/** @returns {Form} */
export const fresh = (/** @type {Model} */ model) => ({
  model: model.id,
  prompt: "",
  negative: "",
  pictures: "words",
  first: "",
  last: "",
  images: [""],
  audios: [],
  shape: "16:9",
  size: "720p",
  seconds: model.capabilities.seconds_default,
  sound: true,
  draft: false,
  seed: "",
  strength: 0.6,
  source: null,
});

/**
 * What is wrong with the seed, if anything.
 * @param {Form} form
 */
export const seedComplaint = ({ seed }) =>
  /^\d*$/.test(seed) && Number(seed) <= SEED_MAX ? "" : `A whole number from 0 to ${SEED_MAX}.`;

/** The way of giving pictures that stays when the model changes. @param {Form} form @param {Model} model */
export function possibleWay(form, { capabilities: can }) {
  if (form.pictures === "both" && !can.last_frame) return can.first_frame ? "first" : "words";
  if (form.pictures === "first" && !can.first_frame) return "words";
  if (form.pictures === "references" && !can.reference_images_max) return "words";
  if (form.pictures === "words" && !can.text_to_video) return can.first_frame ? "first" : "references";
  return form.pictures;
}

/**
 * What a form lacks, before the service is asked: the field and a sentence.
 * @param {Form} form
 * @returns {[string, string] | null}
 */
export function firstMissing(form) {
  if (!form.prompt.trim()) return ["prompt", form.source ? "Say what should change." : "Describe the video."];
  if (seedComplaint(form)) return ["seed", seedComplaint(form)];
  if (form.source) return null;
  if ((form.pictures === "first" || form.pictures === "both") && !form.first.trim())
    return ["first_frame", NO_PICTURE];
  if (form.pictures === "both" && !form.last.trim()) return ["last_frame", NO_PICTURE];
  if (form.pictures === "references" && !form.images.some((url) => url.trim()))
    return ["reference_images", NO_PICTURE];
  return null;
}

/** The form's state that an earlier request stands for. @param {Record<string, any>} body @returns {Partial<Form>} */
export function formOf(body) {
  const first = body.first_frame ?? "";
  return {
    prompt: body.prompt ?? "",
    negative: body.negative_prompt ?? "",
    pictures: body.reference_images ? "references" : body.last_frame ? "both" : first ? "first" : "words",
    first,
    last: body.last_frame ?? "",
    images: body.reference_images ?? [""],
    audios: body.reference_audios ?? [],
    ...(body.size && { shape: shapeOf(body.size), size: sizeName(body.size) }),
    ...(body.aspect_ratio === "adaptive" && { shape: "adaptive", size: body.resolution }),
    ...(body.seconds && { seconds: body.seconds }),
    sound: body.generate_audio !== false,
    draft: body.draft === true,
    seed: body.seed === undefined ? "" : String(body.seed),
    strength: body.edit_strength ?? 0.6,
  };
}
