/**
 * @file The calls of the HTTP API. Paths are relative to the page, so that the service also works behind a proxy
 * that gives it a folder of a site.
 */

import { idempotencyKey, savedKey } from "./session.js";

/**
 * @typedef {object} Task The task object of docs/api.md, as far as this page reads it.
 * @property {string} id
 * @property {string} model
 * @property {"queued" | "in_progress" | "completed" | "failed"} status
 * @property {number} progress 0 to 100
 * @property {number} created_at Unix seconds
 * @property {string} prompt
 * @property {string} seconds a number, or `auto`
 * @property {string} size `WIDTHxHEIGHT`, or `adaptive`
 * @property {number} seed
 * @property {number} [started_at]
 * @property {number} [completed_at]
 * @property {number} [expires_at]
 * @property {number} [queue_position]
 * @property {string} [result_url]
 * @property {string} [thumbnail_url]
 * @property {string} [last_frame_url]
 * @property {{code: string, message: string, param?: string}} [error]
 * @property {boolean} [draft]
 * @property {string} [draft_task_id]
 * @property {string} [edit_task_id]
 * @property {number} [duration]
 * @property {number} [fps]
 * @property {number} [frames]
 * @property {boolean} [has_audio]
 * @property {string} [engine]
 * @property {{code: string, message: string}[]} [warnings]
 * @property {import("./prices.js").Cost} [cost]
 */

/** A refusal of the service, or its silence (`status` 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{message?: string, code?: string, param?: string | null}} error
   * @param {number} [retrySeconds]
   */
  constructor(status, error, retrySeconds) {
    super(error.message ?? `The service answered ${status}.`);
    this.status = status;
    this.code = error.code ?? "";
    this.param = error.param ?? "";
    this.retrySeconds = retrySeconds;
  }

  /** Whether the same request may succeed later. */
  get isPassing() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Pauses in milliseconds between attempts to send a request that must arrive once. */
const PAUSES_MS = [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000, 8000];

/** @param {number} ms */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Sends a request with the key.
 * @param {string} path such as `v1/videos`
 * @param {RequestInit} [options]
 * @param {string} [key]
 */
export async function send(path, options = {}, key = savedKey() ?? "") {
  const headers = new Headers(options.headers);
  if (key) headers.set("authorization", `Bearer ${key}`);
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), { ...options, headers, credentials: "omit" });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    throw new ApiError(0, { message: "The service does not answer." });
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const after = Number(response.headers.get("retry-after")) || undefined;
  throw new ApiError(response.status, body.error ?? {}, after);
}

/** @param {string} path @param {RequestInit} [options] @param {string} [key] */
const json = async (path, options, key) => (await send(path, options, key)).json();

/**
 * The models that a key may use, and what it may do.
 * @param {string} [key]
 * @returns {Promise<{data: import("./models.js").Model[], scopes: string[]}>}
 */
export const models = (key) => json("v1/models", {}, key);

/**
 * What the key and its project have used of their budgets.
 * @returns {Promise<import("./prices.js").Usage>}
 */
export const usage = () => json("v1/usage");

/**
 * The key that the code of a sign-in link is worth, once.
 * @param {string} code
 * @returns {Promise<string>}
 */
export async function redeem(code) {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ code });
  return (await json("studio/sign-in", { method: "POST", headers, body }, "")).key;
}

/**
 * @typedef {object} Operations The whole service, for operators.
 * @property {number} at Unix seconds
 * @property {{model: string, waiting: number, running: number, oldest_waiting_seconds: number | null}[]} queue
 * @property {{id: string, project: string, model: string, progress: number, seconds: number, worker: string}[]} running
 * @property {OperationsWorker[]} workers
 * @property {Pause[]} paused
 * @property {{completed: number, failed: number}} last_minute
 */

/** @typedef {{model: string | null, since: number, reason: string | null}} Pause `null` stands for all models. */

/**
 * @typedef {object} OperationsWorker
 * @property {string} id
 * @property {string} host
 * @property {string} state
 * @property {{model: string, engine: string, device: string | null}[]} models
 * @property {number} slots
 * @property {number} running
 * @property {number} seen_seconds_ago
 * @property {OperationsDevice[]} devices
 * @property {OperationsPlace[]} places
 */

/**
 * @typedef {object} OperationsPlace A device or a server of an engine.
 * @property {string} engine
 * @property {string} name
 * @property {"available" | "paused" | "quarantined"} state
 * @property {number} running
 * @property {number} attempts
 * @property {number} failures
 * @property {number} quarantined_seconds
 * @property {string | null} last_error
 */

/**
 * @typedef {object} OperationsDevice A device whose memory engines share.
 * @property {string} name
 * @property {number} memory_megabytes
 * @property {number} used_megabytes
 * @property {number} swaps
 * @property {OperationsDeviceEngine[]} engines
 */

/**
 * @typedef {object} OperationsDeviceEngine
 * @property {string} engine
 * @property {string[]} models
 * @property {number} memory_megabytes
 * @property {"away" | "working" | "idle" | "leaving"} state
 */

/** @returns {Promise<Operations>} */
export const operations = () => json("v1/operations", { cache: "no-store" });

/**
 * Pauses or resumes a model.
 * @param {"pause" | "resume"} action
 * @param {string | null} model `null` for all models
 * @returns {Promise<Operations>}
 */
export const control = (action, model) =>
  json(`v1/operations/${action}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model }),
  });

/**
 * A page of tasks, newest first.
 * @param {number} limit at most 100
 * @param {string} [after]
 * @returns {Promise<{data: Task[], has_more: boolean, last_id: string | null}>}
 */
export const list = (limit, after) => json(`v1/videos?limit=${limit}${after ? `&after=${after}` : ""}`);

/** @param {string} id @returns {Promise<Task>} */
export const read = (id) => json(`v1/videos/${id}`);

/** @param {string} id @returns {Promise<Task>} */
export const cancel = (id) => json(`v1/videos/${id}/cancel`, { method: "POST" });

/** @param {string} id */
export const remove = (id) => json(`v1/videos/${id}`, { method: "DELETE" });

/**
 * Does something once, however often it has to be sent: while the service is away, it is repeated under the same
 * `Idempotency-Key`.
 * @template T
 * @param {(key: string) => Promise<T>} attempt
 * @param {(error: ApiError) => void} onRetry called before each pause
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function once(attempt, onRetry, signal) {
  const key = idempotencyKey();
  for (const pause of [...PAUSES_MS, 0]) {
    try {
      return await attempt(key);
    } catch (error) {
      if (!(error instanceof ApiError) || !error.isPassing || !pause) throw error;
      onRetry(error);
      await sleep(pause);
      signal?.throwIfAborted();
    }
  }
  throw new ApiError(0, {});
}

/**
 * Submits a request once.
 * @param {Record<string, unknown>} body
 * @param {(error: ApiError) => void} onRetry called before each pause
 * @returns {Promise<Task>}
 */
export const submit = (body, onRetry) =>
  once((key) => {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    return json("v1/videos", { method: "POST", headers, body: JSON.stringify(body) });
  }, onRetry);

/**
 * A condition that keeps the service from leading us to the result store, whose host scripts may not reach: no file has
 * this tag.
 */
const UNDIRECTED = { "if-none-match": '"none"' };

/**
 * What is at a signed address of a task. It needs no key, and counts for no key's rate.
 * @param {string | undefined} url
 * @param {RequestInit} [options]
 */
export const result = (url, options) =>
  send(here(url), { ...options, headers: UNDIRECTED, cache: "no-store" }, "");

/**
 * A picture of a task that has no signed address: a preview, or the spritesheet.
 * @param {string} id
 * @param {"thumbnail" | "spritesheet"} variant
 */
export async function picture(id, variant) {
  const path = `v1/videos/${id}/content?variant=${variant}`;
  const headers = { ...UNDIRECTED, prefer: "return=minimal" };
  const response = await send(path, { headers, cache: "no-store" });
  if (response.status === 204) throw new ApiError(204, { message: "There is no picture yet." });
  return URL.createObjectURL(await response.blob());
}

/** The path of a result or of an uploaded file, within an address that the service has signed. */
const SIGNED = /\/v1\/(?:videos\/video|files\/file)_[0-9a-z]{26}\/content\?.*$/;

/** Whether an address is of a result or an uploaded file. @param {string} url */
export const isSigned = (url) => SIGNED.test(url);

/**
 * The address of a result or an uploaded file on the page's own host: the service may be reached by another name than
 * that of `base_url`, and the signature holds for either.
 * @param {string | undefined} url
 */
export function here(url = "") {
  const path = SIGNED.exec(url)?.[0];
  return path ? new URL(path.slice(1), document.baseURI).href : url;
}

/** Names that every machine has for itself: those of a service without a `base_url`. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** The address of a result for somebody else. @param {string} url */
export const elsewhere = (url) => (LOOPBACK.includes(new URL(url).hostname) ? here(url) : url);

/** The address of this page that opens a task. @param {string} id */
export const pageOf = (id) => new URL(`#${id}`, document.baseURI).href;
