/** @file What is said of an unfinished task: its place in the queue, its progress and the time left. */

import { secondsLeft } from "../core/eta.js";
import { plural, span } from "../core/format.js";

/** @param {import("../core/api.js").Task} task */
export function progressWords(task) {
  if (task.status === "queued") {
    if (task.queue_position === undefined) return "Waiting";
    return task.queue_position ? `Waiting, ${plural(task.queue_position, "task")} ahead` : "Next in line";
  }
  const left = secondsLeft(task);
  return left === undefined ? `Making, ${task.progress} %` : `Making, ${task.progress} %, about ${span(left)} left`;
}
