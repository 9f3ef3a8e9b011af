/** @file Failures in the words of this page: of pictures and sounds, and not of fields of the API. */

/** @typedef {import("./api.js").Task} Task */

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
/** @type {Record<string, string>} */
const NAMES = {
  first_frame: "The first picture",
  input_reference: "The first picture",
  last_frame: "The last picture",
  reference_images: "The reference pictures",
  reference_audios: "The reference sounds",
  file: "The file",
  prompt: "The prompt",
  negative_prompt: "What to leave out",
  seed: "The seed",
  seconds: "The length",
  size: "The size",
  edit_task_id: "The video to edit",
  draft_task_id: "The draft",
};

/** What the page calls a field. @param {string} [param] */
function nameOf(param = "") {
  const [, list, index] = param.match(/^(reference_images|reference_audios)\[(\d+)\]$/) ?? [];
  if (!list) return NAMES[param];
  const noun = list === "reference_images" ? "picture" : "sound";
  return `The ${ORDINALS[Number(index)] ?? `${Number(index) + 1}th`} reference ${noun}`;
}

/**
 * A message of the service about a field, in words of this page.
 * @param {string} message
 * @param {string} [param] the field
 * @param {string} [code]
 */
export function inWords(message, param, code = "") {
  const name = nameOf(param);
  if (!param || !name) return message;
  const quoted = message.replaceAll(`'${param}'`, name);
  if (!quoted.startsWith(`${param}: `)) return quoted;
  const isAway = code === "reference_unreachable" || code === "reference_timeout";
  const verb = isAway ? "could not be fetched" : "cannot be used";
  return `${name} ${verb}: ${quoted.slice(param.length + 2)}`;
}

/**
 * A refusal of the service in words of this page.
 * @param {import("./api.js").ApiError} error
 */
export function refusalWords({ message, param, code, retrySeconds }) {
  const words = inWords(message, param, code);
  return retrySeconds ? `${words} Try again in ${retrySeconds} s.` : words;
}

/** Why a task failed. @param {Task} task */
export const reasonOf = ({ error }) => (error ? inWords(error.message, error.param, error.code) : "");
