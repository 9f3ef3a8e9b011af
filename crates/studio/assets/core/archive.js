/** @file Many videos in one ZIP archive on the visitor's disk: which, under which names, and where the bytes go. */

import { ApiError, result } from "./api.js";
import { bytes } from "./format.js";
import { fits, zip } from "./zip.js";

/** @typedef {import("./api.js").Task} Task */

/** What the page itself keeps in memory before the browser takes it over, which may put it on disk. */
const PART_BYTES = 8_000_000;
/** Questions for sizes at a time. */
const LOOKS = 6;
const NAME_MAX = 60;

/** A name that every system takes: what the video shows, and the id, which no other has. @param {Task} task */
export function nameOf({ id, prompt }) {
  const words = [...prompt.replace(/[\p{C}\p{Z}\s"*/:<>?\\|]+/gu, " ").trim()].slice(0, NAME_MAX).join("");
  return `${words.replace(/^[. ]+|[. ]+$/g, "")} ${id}.mp4`.trim();
}

/**
 * Where the archive goes: a file that the visitor chooses, which is written as it arrives, or, where the browser has no
 * such thing, one that the browser saves at the end.
 * @param {string} name
 */
async function openTarget(name) {
  if (!("showSaveFilePicker" in window)) return collected(name);
  const handle = await window.showSaveFilePicker({
    suggestedName: name,
    types: [{ description: "ZIP archive", accept: { "application/zip": [".zip"] } }],
  });
  const file = await handle.createWritable();
  return {
    write: (/** @type {Uint8Array} */ chunk) => file.write(chunk),
    close: () => file.close(),
    async discard() {
      await file.abort();
      // The choice has made an empty file.
      await handle.remove?.();
    },
  };
}

/** @param {string} name */
function collected(name) {
  /** @type {Blob[]} */
  const parts = [];
  /** @type {Uint8Array[]} */
  let latest = [];
  let size = 0;
  function pack() {
    parts.push(new Blob(latest));
    latest = [];
    size = 0;
  }
  return {
    async write(/** @type {Uint8Array} */ chunk) {
      latest.push(chunk);
      size += chunk.length;
      if (size > PART_BYTES) pack();
    },
    async close() {
      pack();
      const url = URL.createObjectURL(new Blob(parts, { type: "application/zip" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = name;
      link.click();
      // The browser has begun to save it by then.
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    },
    async discard() {},
  };
}

/**
 * The files of tasks with their sizes, and the tasks whose file is not there.
 * @param {Task[]} tasks
 * @param {AbortSignal} signal
 */
async function measured(tasks, signal) {
  /** @type {{task: Task, name: string, bytes: number}[]} */
  const files = [];
  let lost = 0;
  const waiting = [...tasks];
  async function look() {
    for (let task = waiting.shift(); task; task = waiting.shift()) {
      try {
        const { headers } = await result(task.result_url, { method: "HEAD", signal });
        files.push({ task, name: nameOf(task), bytes: Number(headers.get("content-length")) });
      } catch (error) {
        if (!(error instanceof ApiError) || error.isPassing) throw error;
        lost += 1;
      }
    }
  }
  await Promise.all(Array.from({ length: LOOKS }, look));
  return { files: files.sort((a, b) => (a.task.id < b.task.id ? -1 : 1)), lost };
}

/**
 * Saves the videos of completed tasks.
 * @param {Task[]} tasks
 * @param {{signal: AbortSignal, onProgress: (share: number) => void}} options
 * @returns {Promise<{saved: number, lost: number}>} `lost`: tasks whose file the service does not have any more
 * @throws {ApiError | RangeError | DOMException} a refusal; videos that are too large together; a stop by the signal, or
 *   by the visitor who chose no file
 */
export async function saveAll(tasks, { signal, onProgress }) {
  // First: a browser asks only right after a click.
  const target = await openTarget(`kinora-${new Date().toISOString().slice(0, 10)}.zip`);
  try {
    const { files, lost } = await measured(tasks, signal);
    const all = files.reduce((sum, file) => sum + file.bytes, 0);
    if (!fits(files)) throw new RangeError(`These videos have ${bytes(all)} together, and a ZIP holds 4 GB: choose fewer.`);
    if (!files.length) throw new RangeError("None of these videos is there any more.");
    let written = 0;
    for await (const chunk of zip(opened(files, signal))) {
      signal.throwIfAborted();
      await target.write(chunk);
      written += chunk.length;
      onProgress(Math.min(1, written / all));
    }
    await target.close();
    return { saved: files.length, lost };
  } catch (error) {
    await target.discard().catch(() => {});
    throw error;
  }
}

/** @param {{task: Task, name: string}[]} files @param {AbortSignal} signal */
async function* opened(files, signal) {
  for (const { task, name } of files) {
    const { body } = await result(task.result_url, { signal });
    const modified = new Date((task.completed_at ?? task.created_at) * 1000);
    yield { name, modified, body: /** @type {ReadableStream<Uint8Array>} */ (body) };
  }
}
