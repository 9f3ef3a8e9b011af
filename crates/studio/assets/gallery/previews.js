/**
 * @file The pictures of tasks that need the key: previews of running tasks, and spritesheets for the hover preview.
 * Tiles and the viewer share them.
 */

import { picture } from "../core/api.js";
import * as tasks from "../core/tasks.js";

/** The service makes a new preview every second or two. */
const AGE_MS = 1500;
const SHEETS_MAX = 40;
/** The spritesheet's layout: a square grid of at most 5 x 5 cells (docs/api.md). */
const GRID_SIDE_MAX = 5;

/** @type {Map<string, {url: string, askedMs: number}>} */
const previews = new Map();
/** @type {Map<string, Promise<string>>} */
const sheets = new Map();
/** @type {Set<(id: string) => void>} */
const listeners = new Set();

/** @param {(id: string) => void} listener called when a task's preview changes */
export const listen = (listener) => listeners.add(listener);

/** The address of a running task's last preview; empty where there is none yet. @param {string} id */
export const previewOf = (id) => previews.get(id)?.url ?? "";

/** @param {string} id */
async function load(id) {
  const known = previews.get(id) ?? { url: "", askedMs: -Infinity };
  if (performance.now() - known.askedMs < AGE_MS) return;
  previews.set(id, { ...known, askedMs: performance.now() });
  try {
    const url = await picture(id, "thumbnail");
    if (!previews.has(id)) return URL.revokeObjectURL(url);
    const old = previews.get(id)?.url;
    previews.set(id, { url, askedMs: performance.now() });
    for (const listener of listeners) listener(id);
    if (old) setTimeout(() => URL.revokeObjectURL(old), AGE_MS);
  } catch {
    // There is none yet, or no longer.
  }
}

tasks.listen((changed) => {
  for (const id of changed) {
    const task = tasks.get(id);
    if (task?.status === "in_progress" && task.progress > 0) load(id);
    else if (task?.status !== "in_progress") release(id);
  }
});

/** @param {string} id */
function release(id) {
  const known = previews.get(id);
  previews.delete(id);
  // The poster takes its place in the meantime.
  if (known?.url) setTimeout(() => URL.revokeObjectURL(known.url), 10_000);
}

/**
 * The address of a completed task's spritesheet.
 * @param {string} id
 */
export function sheetOf(id) {
  const known = sheets.get(id);
  if (known) return known;
  const loading = picture(id, "spritesheet");
  sheets.set(id, loading);
  loading.catch(() => sheets.delete(id));
  if (sheets.size > SHEETS_MAX) {
    const [oldest, url] = sheets.entries().next().value ?? [];
    sheets.delete(oldest);
    url?.then(URL.revokeObjectURL, () => {});
  }
  return loading;
}

/**
 * The columns and rows of a task's spritesheet.
 * @param {import("../core/api.js").Task} task
 */
export function gridOf(task) {
  const cells = Math.min(task.frames ?? GRID_SIDE_MAX ** 2, GRID_SIDE_MAX ** 2);
  const columns = Math.min(GRID_SIDE_MAX, Math.ceil(Math.sqrt(cells)));
  return { cells, columns, rows: Math.ceil(cells / columns) };
}
