/** @file What can be done with a task, by its state. The viewer shows these, and their keys work there. */

import * as api from "../core/api.js";
import { here } from "../core/api.js";
import { copy } from "../core/clipboard.js";
import { h } from "../core/dom.js";
import { isUnfinished, moment, shortened } from "../core/format.js";
import { isFavourite, toggleFavourite } from "../core/kept.js";
import { poke } from "../core/live.js";
import { anotherTake, finalOf, requestFor } from "../core/request.js";
import { rememberRequest } from "../core/session.js";
import * as tasks from "../core/tasks.js";
import { submitFour } from "../core/variations.js";
import { showCode } from "./code.js";
import { confirm } from "./dialog.js";
import { toast } from "./toast.js";

/** @typedef {import("../core/api.js").Task} Task */

/**
 * @typedef {object} Action
 * @property {string} name
 * @property {string} label
 * @property {keyof typeof import("../core/icons.js").PATHS} icon
 * @property {string} key
 * @property {boolean} [isMain]
 * @property {boolean} [isDanger]
 * @property {boolean} [isOn] of one that is a switch
 * @property {() => unknown} run
 */

/**
 * @typedef {object} Desk What actions need of the page.
 * @property {(id: string) => void} open
 * @property {(id: string) => void} compare chooses it as the first, or the second, of two
 * @property {(first: string, second: string) => void} compareBoth
 * @property {(task: Task) => void} edit
 * @property {(body: Record<string, unknown>) => void} fill
 * @property {() => void} closeViewer
 * @property {() => void} toTop shows the newest videos
 * @property {boolean} canEdit whether some model makes edits
 * @property {(model: string) => boolean} makesFinals
 * @property {(model: string) => boolean} takesFirstFrames
 */

const UNSEEN_PARTS = "References and settings that the service does not show were left out.";

/** Runs an action and shows its refusal. @param {() => Promise<unknown>} act */
async function showing(act) {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof api.ApiError)) throw error;
    toast(error.message, { isError: true });
  }
}

/** Submits a body and shows its task. @param {Record<string, unknown>} body @param {Desk} desk @param {string} words */
const start = (body, desk, words) =>
  showing(async () => {
    const task = await api.submit(body, () => toast("The service is away; trying again."));
    rememberRequest(task.id, body);
    tasks.put([task]);
    poke();
    desk.open(task.id);
    toast(words);
  });

/** @param {Task} task */
function download(task) {
  // Where the result store answers itself, the browser may open the video instead of saving it: in a tab of its own.
  const link = h("a", { href: here(task.result_url), download: `${task.id}.mp4`, target: "_blank", rel: "noopener" });
  link.click();
}

/** @param {Task} task @param {Desk} desk */
async function discard(task, desk) {
  const name = shortened(task.prompt, 60);
  if (!(await confirm("Delete this video?", `“${name}” and its files will be gone for everybody.`, "Delete"))) return;
  await showing(async () => {
    await api.remove(task.id);
    desk.closeViewer();
    tasks.bury(task.id);
    toast("Deleted.");
  });
}

/** @param {Task} task */
async function stop(task) {
  const lost = task.progress ? `“${shortened(task.prompt, 60)}” is ${task.progress} % done; that is lost.` : "";
  const text = lost || `“${shortened(task.prompt, 60)}” will not be made.`;
  if (!(await confirm("Cancel this video?", text, "Cancel video", "Keep making it"))) return;
  await showing(async () => {
    tasks.put([await api.cancel(task.id)]);
    toast("Cancelled.");
  });
}

/** @param {Task} task @param {Desk} desk */
function again(task, desk) {
  const { body, isWhole } = anotherTake(task);
  return start(body, desk, isWhole ? "The same with another seed." : `The same with another seed. ${UNSEEN_PARTS}`);
}

/** @param {Task} task @param {Desk} desk */
const four = (task, desk) =>
  showing(async () => {
    const { body, isWhole } = anotherTake(task);
    const { words, isPart } = await submitFour(body, () => toast("The service is away; trying again."));
    poke();
    desk.closeViewer();
    desk.toTop();
    toast(isWhole ? words : `${words} ${UNSEEN_PARTS}`, { isError: isPart });
  });

/** What a task shows of its request. @param {Task} task */
const shown = ({ model, prompt, size, seconds }) => ({ model, prompt, size, seconds: Number(seconds) });

/** @param {Task} task @param {Desk} desk */
function reuse(task, desk) {
  const { body, isWhole } = requestFor(task);
  desk.fill("draft_task_id" in body ? { ...shown(task), seed: task.seed } : body);
  if (!isWhole) toast(UNSEEN_PARTS);
}

/**
 * Fills the form for what comes next: the same prompt, and this video's end as the beginning.
 * @param {Task} task
 * @param {Desk} desk
 */
function goOn(task, desk) {
  const { negative_prompt, generate_audio } = requestFor(task).body;
  desk.fill({ ...shown(task), negative_prompt, generate_audio, first_frame: task.last_frame_url });
  toast("Starts from the last frame. Say what happens next.");
}

/** @param {string} id */
function star(id) {
  const isOn = toggleFavourite(id);
  toast(isOn ? "A favourite, in this browser only." : "No favourite any more.");
}

/** @param {string} text @param {string} words */
const copyLink = (text, words) => copy(text).then(() => toast(`Copied. ${words}`));

/** @param {Task} task */
function copyResult(task) {
  const until = task.expires_at ? ` until ${moment(task.expires_at)}` : "";
  return copyLink(api.elsewhere(task.result_url ?? ""), `Everybody who has it can see the video${until}.`);
}

/**
 * @param {Task} task
 * @param {Desk} desk
 * @returns {Action[]}
 */
export function actionsOf(task, desk) {
  /** @type {Action[]} */
  const shared = [
    { name: "again", label: "Another seed", icon: "again", key: "r", run: () => again(task, desk) },
    { name: "four", label: "Four variations", icon: "four", key: "v", run: () => four(task, desk) },
    { name: "reuse", label: "Use in form", icon: "form", key: "u", run: () => reuse(task, desk) },
    {
      name: "code",
      label: "Copy as code",
      icon: "code",
      key: "c",
      run: () => showCode(requestFor(task), UNSEEN_PARTS),
    },
    {
      name: "page-link",
      label: "Copy page link",
      icon: "link",
      key: "p",
      run: () => copyLink(api.pageOf(task.id), "It opens this video in Studio, for people with a key of the project."),
    },
  ];
  if (isUnfinished(task)) {
    // The key that deletes a finished task: it may end between a look and a key, and either way there is a question.
    /** @type {Action} */
    const cancel = { name: "cancel", label: "Cancel", icon: "close", key: "Delete", run: () => stop(task) };
    return [cancel, ...shared.filter(({ name }) => name === "code" || name === "page-link")];
  }
  /** @type {Action} */
  const remove = {
    name: "delete",
    label: "Delete",
    icon: "trash",
    key: "Delete",
    isDanger: true,
    run: () => discard(task, desk),
  };
  /** @type {Action} */
  const favourite = {
    name: "favourite",
    label: "Favourite",
    icon: "star",
    key: "s",
    isOn: isFavourite(task.id),
    run: () => star(task.id),
  };
  if (task.status === "failed") return [...shared, remove];
  /** @type {(Action | false | "" | undefined)[]} */
  const all = [
    task.draft &&
      desk.makesFinals(task.model) && {
        name: "final",
        label: "Make final",
        icon: "final",
        key: "f",
        isMain: true,
        run: () => start(finalOf(task), desk, "Making the final."),
      },
    { name: "download", label: "Download", icon: "download", key: "d", isMain: !task.draft, run: () => download(task) },
    desk.canEdit && { name: "edit", label: "Edit", icon: "edit", key: "e", run: () => desk.edit(task) },
    { name: "compare", label: "Compare", icon: "compare", key: "x", run: () => desk.compare(task.id) },
    task.last_frame_url &&
      desk.takesFirstFrames(task.model) && {
        name: "go-on",
        label: "Continue video",
        icon: "onward",
        key: "g",
        run: () => goOn(task, desk),
      },
    ...shared.slice(0, -1),
    { name: "link", label: "Copy video link", icon: "link", key: "l", run: () => copyResult(task) },
    ...shared.slice(-1),
    favourite,
    remove,
  ];
  return /** @type {Action[]} */ (all.filter(Boolean));
}
