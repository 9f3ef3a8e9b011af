/** @file The title of the page: how far the videos are that are being made, for whoever looks at another tab. */

import { plural } from "../core/format.js";
import * as tasks from "../core/tasks.js";

const NAME = "Kinora Studio";

/** Keeps it current. */
export function followTitle() {
  tasks.listen(() => {
    const words = titleOf(tasks.unfinished());
    if (document.title !== words) document.title = words;
  });
}

/** @param {import("../core/api.js").Task[]} unfinished */
function titleOf(unfinished) {
  if (!unfinished.length) return NAME;
  const videos = plural(unfinished.length, "video");
  if (unfinished.every((task) => task.status === "queued")) return `${videos} waiting · ${NAME}`;
  const progress = unfinished.reduce((sum, task) => sum + task.progress, 0) / unfinished.length;
  const share = `${Math.floor(progress)} %`;
  return `${unfinished.length > 1 ? `${share} of ${videos}` : share} · ${NAME}`;
}
