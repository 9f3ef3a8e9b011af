/**
 * @file What a model can do, from its card in `GET /v1/models`: the shapes and sizes that it offers, and why a control
 * of the form is off.
 */

import { plural } from "./format.js";

/**
 * @typedef {object} Capabilities
 * @property {string[]} sizes
 * @property {number} seconds_min
 * @property {number} seconds_max
 * @property {number} seconds_default
 * @property {number[]} [seconds]
 * @property {boolean} text_to_video
 * @property {boolean} first_frame
 * @property {boolean} last_frame
 * @property {number} reference_images_max
 * @property {number} reference_audios_max
 * @property {boolean} audio_output
 * @property {boolean} auto_duration
 * @property {boolean} negative_prompt
 * @property {boolean} draft
 * @property {boolean} edit
 */

/** @typedef {{id: string, available: boolean, paused?: {reason: string | null}, engine?: string, capabilities: Capabilities, prices?: import("./prices.js").Prices}} Model */

const NAMED = ["21:9", "16:9", "4:3", "1:1", "3:4", "9:16"];
/** The short sides that the API knows by a name. */
const CLASSES = [480, 720, 1080];
/** How far a size may be from the shape whose name it gets: 854x480 is 16:9. */
const TOLERANCE = 0.02;

/** @param {string} shape */
export const ratio = (shape) => {
  const [width, height] = shape.split(":").map(Number);
  return width / height;
};

/** The shape of a size, such as `16:9`. @param {string} size */
export function shapeOf(size) {
  const [width, height] = size.split("x").map(Number);
  const near = NAMED.find((name) => Math.abs(width / height / ratio(name) - 1) < TOLERANCE);
  if (near) return near;
  const divisor = (/** @type {number} */ a, /** @type {number} */ b) => (b ? divisor(b, a % b) : a);
  const by = divisor(width, height);
  return `${width / by}:${height / by}`;
}

/**
 * The sizes of a model by their shape, the widest first, each from small to large.
 * @param {Capabilities} can
 * @returns {Map<string, string[]>}
 */
export function shapes(can) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  const pixels = (/** @type {string} */ size) =>
    size
      .split("x")
      .map(Number)
      .reduce((a, b) => a * b);
  for (const size of [...can.sizes].sort((a, b) => pixels(a) - pixels(b))) {
    const shape = shapeOf(size);
    found.set(shape, [...(found.get(shape) ?? []), size]);
  }
  return new Map([...found].sort(([a], [b]) => ratio(b) - ratio(a)));
}

/**
 * A size's name: `720p` where the API has one, else its pixels.
 * @param {string} size
 */
export function sizeName(size) {
  const [width, height] = size.split("x").map(Number);
  const side = Math.min(width, height);
  return CLASSES.includes(side) && NAMED.includes(shapeOf(size)) ? `${side}p` : `${width}×${height}`;
}

/**
 * The resolutions for which `adaptive` works: those of which every shape is offered.
 * @param {Capabilities} can
 */
export function adaptiveResolutions(can) {
  if (!can.first_frame && !can.reference_images_max) return [];
  const offered = shapes(can);
  const complete = (/** @type {string} */ name) =>
    NAMED.every((shape) => offered.get(shape)?.some((size) => sizeName(size) === name));
  return CLASSES.map((side) => `${side}p`).filter(complete);
}

/**
 * The lengths of a model in whole seconds, ascending.
 * @param {Capabilities} can
 */
export const lengths = (can) =>
  can.seconds ?? Array.from({ length: can.seconds_max - can.seconds_min + 1 }, (_, n) => can.seconds_min + n);

/**
 * How a picture may be given: each way, and whether the model takes it.
 * @param {Capabilities} can
 */
export const pictureWays = (can) => [
  { value: "words", label: "None", takes: can.text_to_video },
  { value: "first", label: "First frame", takes: can.first_frame },
  { value: "both", label: "First + last", takes: can.first_frame && can.last_frame },
  { value: "references", label: "References", takes: can.reference_images_max > 0 },
];

/** What a model can do beyond a video of words, in one line. @param {Capabilities} can */
export function strengths(can) {
  const parts = [
    can.first_frame && (can.last_frame ? "first and last frames" : "a first frame"),
    can.reference_images_max > 0 && `up to ${plural(can.reference_images_max, "reference picture")}`,
    can.reference_audios_max > 0 && `sounds to follow`,
    can.audio_output && "a sound track",
    can.draft && "drafts",
    can.edit && "edits",
  ].filter(Boolean);
  const last = parts.pop();
  const list = parts.length ? `${parts.join(", ")} and ${last}` : last;
  const span = `${can.seconds_min} to ${can.seconds_max} s`;
  return list ? `${span}, with ${list}.` : `${span}.`;
}

/**
 * Names the models that have a feature, for a control that the chosen model lacks.
 * @param {Model[]} models
 * @param {Model} model the chosen one
 * @param {(can: Capabilities) => boolean} has
 */
export function whyNot(models, model, has) {
  if (has(model.capabilities)) return "";
  const others = models.filter((one) => has(one.capabilities)).map((one) => one.id);
  const hint = others.length ? ` Use ${others.join(" or ")}.` : "";
  return `Not supported by ${model.id}.${hint}`;
}
