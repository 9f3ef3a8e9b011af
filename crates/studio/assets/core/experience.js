/**
 * @file What the tasks that this page knows tell of the models: how long a video took lately, and which are sketches.
 */

import * as tasks from "./tasks.js";

/** So many of the newest videos tell how long one takes. */
const LATELY = 9;
/** The engine that paints by rules. */
const SKETCHER = "storyboard";

/** Why the page calls a video a sketch. */
export const SKETCH = "sketch: this model has no neural engine";

/** Whether an engine paints by rules: its name, or its name and version. @param {string} [engine] */
export const sketches = (engine = "") => engine.split("/")[0] === SKETCHER;

/**
 * The engine of a model: as it named itself in the newest task that has begun, otherwise by its name in the service.
 * @param {import("./models.js").Model} model
 */
export const engineOf = ({ id, engine }) => tasks.all().find((task) => task.model === id && task.engine)?.engine ?? engine;

/**
 * The seconds that the middle one of a model's newest videos took; `undefined` where there is none.
 * @param {string} model
 * @param {boolean} isDraft
 */
export function lately(model, isDraft) {
  const took = [];
  for (const task of tasks.all()) {
    if (task.model !== model || task.status !== "completed" || Boolean(task.draft) !== isDraft) continue;
    if (task.started_at && task.completed_at) took.push(task.completed_at - task.started_at);
    if (took.length === LATELY) break;
  }
  return took.sort((a, b) => a - b)[Math.floor(took.length / 2)];
}
