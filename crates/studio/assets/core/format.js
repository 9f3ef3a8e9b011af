/** @file Numbers and times as people read them. */

const STATUS_WORDS = { queued: "Waiting", in_progress: "Making", completed: "Done", failed: "Failed" };

/** @param {import("./api.js").Task} task */
export const isUnfinished = (task) => task.status === "queued" || task.status === "in_progress";

/** @param {import("./api.js").Task} task */
export const isCancelled = (task) => task.error?.code === "cancelled";

/** @param {import("./api.js").Task} task */
export const statusWord = (task) => (isCancelled(task) ? "Cancelled" : STATUS_WORDS[task.status]);

/**
 * Width and height of a size; those of 16:9 while a size is not known.
 * @param {string} size
 * @returns {[number, number]}
 */
export function sides(size) {
  const [width, height] = size.split("x").map(Number);
  return width && height ? [width, height] : [16, 9];
}

/** @param {string} seconds as the task object has them */
export const length = (seconds) => (seconds === "auto" ? "auto length" : `${Math.round(Number(seconds) * 10) / 10} s`);

/** @param {string} size */
export const sizeText = (size) => size.replace("x", " × ");

/**
 * @param {number} unixSeconds
 * @param {number} [nowMs]
 */
export function ago(unixSeconds, nowMs = Date.now()) {
  const seconds = Math.max(0, nowMs / 1000 - unixSeconds);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(unixSeconds * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** @param {number} unixSeconds */
export const moment = (unixSeconds) =>
  new Date(unixSeconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** @param {number} seconds */
export function span(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.round(minutes / 6) / 10} h`;
}

/** Memory, in the decimal units of the configuration; no line ends within. @param {number} count of megabytes */
export const megabytes = (count) => (count < 1000 ? `${count}\u00a0MB` : `${Math.round(count / 100) / 10}\u00a0GB`);

/** The size of a file; no line ends within. @param {number} count of bytes */
export function bytes(count) {
  if (count < 1e6) return `${Math.max(1, Math.round(count / 1000))}\u00a0kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(1)}\u00a0MB` : `${(count / 1e9).toFixed(1)}\u00a0GB`;
}

/** @param {number} count @param {string} noun */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/**
 * A short form of a prompt, for names of things.
 * @param {string} text
 * @param {number} [max]
 */
export function shortened(text, max = 80) {
  const letters = [...text];
  return letters.length <= max
    ? text
    : `${letters
        .slice(0, max - 1)
        .join("")
        .trimEnd()}…`;
}
