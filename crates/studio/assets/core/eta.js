/**
 * @file How long a running task is expected to take: by the pace of its progress as this page has seen it. The
 * service makes no such promise, so the page says "about".
 */

/** Progress below which the pace says nothing yet. */
const PROGRESS_MIN = 5;

/** @type {Map<string, {ms: number, progress: number}>} */
const begun = new Map();

/**
 * Notes a task's progress.
 * @param {import("./api.js").Task} task
 * @param {number} [nowMs]
 */
export function note(task, nowMs = Date.now()) {
  if (task.status !== "in_progress") begun.delete(task.id);
  else if (!begun.has(task.id)) begun.set(task.id, { ms: nowMs, progress: task.progress });
}

/**
 * The seconds left, or `undefined` while the pace is unknown.
 * @param {import("./api.js").Task} task
 * @param {number} [nowMs]
 */
export function secondsLeft(task, nowMs = Date.now()) {
  const first = begun.get(task.id);
  if (!first || task.progress < PROGRESS_MIN) return undefined;
  const since = task.started_at && first.progress > PROGRESS_MIN ? task.started_at * 1000 : first.ms;
  const done = since === first.ms ? task.progress - first.progress : task.progress;
  const tookMs = nowMs - since;
  if (done < PROGRESS_MIN || tookMs < 1000) return undefined;
  return ((100 - task.progress) * tookMs) / done / 1000;
}
