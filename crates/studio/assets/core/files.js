/** @file Files that users bring along: their upload, with its progress, and the ones that the project has. */

import { ApiError, once, send } from "./api.js";
import { savedKey } from "./session.js";

/**
 * @typedef {object} FileObject A file as the service has it.
 * @property {string} id
 * @property {number} bytes
 * @property {string} filename
 * @property {number} created_at Unix seconds
 * @property {number} expires_at Unix seconds
 * @property {string} url a signed address, which opens without a key
 */

/** @typedef {"picture" | "sound"} Kind */

/** The service's bounds on files (docs/api.md): it breaks off an upload that is larger. */
const BYTES_MAX = { picture: 30_000_000, sound: 15_000_000 };
/** What the purpose of a file is called in OpenAI's API. */
const PURPOSES = { picture: "vision", sound: "user_data" };
const SOUNDS = /\.(wav|mp3|m4a|aac|flac|ogg|oga|opus|weba)$/i;
/** So many are offered to choose from. */
const RECENT_MAX = 24;

/** Uploads go one after the other: the service takes few at a time, and none that is too slow. @type {Promise<unknown>} */
let latest = Promise.resolve();

/** What a file seems to be; `undefined`: neither. @param {File} file @returns {Kind | undefined} */
export function kindOf({ type }) {
  if (type.startsWith("image/")) return "picture";
  // The service takes the sound of a film.
  return /^(audio|video)\//.test(type) ? "sound" : undefined;
}

/** Why a file need not be sent at all. @param {File} file @param {Kind} kind */
export function complaint(file, kind) {
  if (file.type && kindOf(file) !== kind) return `“${file.name}” is not a ${kind}.`;
  if (!file.size) return `“${file.name}” is empty.`;
  const max = BYTES_MAX[kind];
  return file.size > max ? `“${file.name}” is too large: at most ${max / 1e6} MB.` : "";
}

/**
 * Uploads a file once. It rejects with an {@link ApiError}, or with the signal's reason.
 * @param {File} file
 * @param {Kind} kind
 * @param {{onProgress: (share: number) => void, onRetry: () => void, signal: AbortSignal}} events
 * @returns {Promise<FileObject>}
 */
export function upload(file, kind, { onProgress, onRetry, signal }) {
  const turn = latest.then(() => {
    signal.throwIfAborted();
    return once((key) => attempt(file, PURPOSES[kind], key, onProgress, signal), onRetry, signal);
  });
  latest = turn.catch(() => {});
  return turn;
}

/**
 * `fetch` does not tell how much it has sent.
 * @param {File} file
 * @param {string} purpose
 * @param {string} idempotencyKey
 * @param {(share: number) => void} onProgress
 * @param {AbortSignal} signal
 * @returns {Promise<FileObject>}
 */
function attempt(file, purpose, idempotencyKey, onProgress, signal) {
  const form = new FormData();
  // Before the file: the service reads the parts in their order.
  form.append("purpose", purpose);
  form.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", new URL("v1/files", document.baseURI));
  request.responseType = "json";
  request.setRequestHeader("idempotency-key", idempotencyKey);
  const key = savedKey();
  if (key) request.setRequestHeader("authorization", `Bearer ${key}`);
  return new Promise((resolve, reject) => {
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onerror = () => reject(new ApiError(0, { message: "The service does not answer." }));
    request.onabort = () => reject(signal.reason);
    request.onload = () => {
      const { status, response } = request;
      if (status >= 200 && status < 300 && response) return resolve(response);
      reject(new ApiError(status, response?.error ?? {}, Number(request.getResponseHeader("retry-after")) || undefined));
    };
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

/**
 * The newest files of the project that may be of a kind.
 * @param {Kind} kind
 * @returns {Promise<FileObject[]>}
 */
export async function recent(kind) {
  const response = await send(`v1/files?order=desc&limit=${RECENT_MAX}`, { cache: "no-store" });
  /** @type {{data: FileObject[]}} */
  const { data } = await response.json();
  return data.filter(({ filename }) => SOUNDS.test(filename) === (kind === "sound"));
}
