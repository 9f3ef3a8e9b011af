/** @file The tasks that this page knows, newest first, and who wants to hear of their changes. */

import { isUnfinished } from "./format.js";
import * as eta from "./eta.js";

/** @typedef {import("./api.js").Task} Task */

/** @type {Map<string, Task>} */
const tasks = new Map();
/** @type {Set<(changed: Set<string>) => void>} */
const listeners = new Set();
/** Ids that were deleted here: an answer that is still on its way must not bring them back. */
const gone = new Set();

/** @param {string} id */
export const get = (id) => tasks.get(id);

/** All tasks, newest first: ids sort by creation. */
export const all = () => [...tasks.values()].sort((a, b) => (a.id < b.id ? 1 : -1));

/** The unfinished ones, newest first. */
export const unfinished = () => all().filter(isUnfinished);

export const count = () => tasks.size;

/** @param {(changed: Set<string>) => void} listener */
export const listen = (listener) => listeners.add(listener);

let changes = 0;

/** A number that grows with every change. */
export const revision = () => changes;

/** @param {Set<string>} changed */
function tell(changed) {
  if (!changed.size) return;
  changes += 1;
  for (const listener of listeners) listener(changed);
}

/**
 * Takes tasks as the service has sent them.
 * @param {Task[]} sent
 */
export function put(sent) {
  const changed = new Set();
  for (const task of sent) {
    const known = tasks.get(task.id);
    // An ended task doesn't change any more but for its addresses; an older answer may arrive late.
    const isOld = known && !isUnfinished(known) && isUnfinished(task);
    if (isOld || gone.has(task.id) || same(known, task)) continue;
    tasks.set(task.id, task);
    eta.note(task);
    changed.add(task.id);
  }
  tell(changed);
}

/**
 * Takes out tasks that the service does not list any more.
 * @param {Iterable<string>} ids
 */
export function drop(ids) {
  tell(new Set([...ids].filter((id) => tasks.delete(id))));
}

/**
 * Takes out a task that was deleted here, for good.
 * @param {string} id
 */
export function bury(id) {
  gone.add(id);
  drop([id]);
}

/** @param {Task | undefined} a @param {Task} b */
const same = (a, b) => a !== undefined && JSON.stringify(a) === JSON.stringify(b);
