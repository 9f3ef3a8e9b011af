/**
 * @file Keeps the tasks current. Where the service pushes events, one stream brings every change; elsewhere one list
 * request after another does, as long as tasks are unfinished, with pauses that grow while nothing changes. Once a
 * minute a look at the lists finds what others have deleted. A service that is away is asked again until it is back.
 */

import { ApiError, list, send, sleep } from "./api.js";
import { records } from "./sse.js";
import * as tasks from "./tasks.js";

/** @typedef {"connecting" | "live" | "reconnecting" | "signed-out"} State */

const PAGE = 20;
const PAGE_MAX = 100;
/** How many tasks are loaded without being asked for. */
const HISTORY_MAX = 1000;
const POLL_MS = 1000;
const POLL_MS_MAX = 6000;
const POLL_GROWTH = 1.4;
/** While nothing is unfinished: tasks of other clients of the project still appear. */
const IDLE_MS = 15_000;
const HIDDEN_MS = 30_000;
const RETRY_MS = 500;
const RETRY_MS_MAX = 5000;
/** A stream brings no change of places in the queue. */
const QUEUE_MS = 5000;
/** Nor does it tell of tasks that others delete: these are looked for. */
const SWEEP_MS = 60_000;

let pauseMs = POLL_MS;
let hasStream = true;
let lastEvent = "";
/** @type {string | undefined} the last id of the oldest page; `undefined` when there are no older ones */
let older;
/** @type {string | undefined} the id after which the next sweep looks at older tasks */
let swept;
/** Ends the current pause. */
let wake = () => {};

/** Looks again at once, for example after a submit. */
export function poke() {
  pauseMs = POLL_MS;
  wake();
}

/** Whether the service has older tasks than those that are loaded. */
export const hasOlder = () => older !== undefined;

/** Loads the next older page. */
export async function loadOlder() {
  if (!older) return;
  const page = await list(PAGE_MAX, older);
  older = page.has_more ? (page.last_id ?? undefined) : undefined;
  tasks.put(page.data);
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve(undefined);
    };
  });
}

/**
 * Asks for a page, and drops what should be on it and is not: another client has deleted it.
 * @param {number} limit
 * @param {string} [after] where it begins
 */
async function look(limit, after) {
  // The answer may be older than a task that is accepted while it is on its way.
  const known = tasks.all().map((task) => task.id);
  const page = await list(limit, after);
  const ids = new Set(page.data.map((task) => task.id));
  const last = page.has_more ? (page.last_id ?? "") : "";
  tasks.drop(known.filter((id) => (!after || id < after) && id > last && !ids.has(id)));
  tasks.put(page.data);
  return page;
}

/** The newest tasks and all unfinished ones. @param {number} [limit] how many of the newest */
async function refresh(limit = PAGE) {
  const newest = await look(limit);
  let page = newest;
  const isCovered = (/** @type {string} */ id) => !page.has_more || id >= (page.last_id ?? "");
  let waiting = tasks.unfinished().filter((task) => !isCovered(task.id));
  while (waiting.length) {
    const known = tasks.all();
    const start = known[known.findIndex((task) => task.id === waiting[0].id) - 1].id;
    page = await look(PAGE_MAX, start);
    waiting = waiting.filter((task) => !isCovered(task.id));
  }
  return newest;
}

/** Looks at the newest hundred, and at one page of the older ones that are known, in turn. */
async function sweep() {
  const { has_more: hasMore, last_id: last } = await refresh(PAGE_MAX);
  const oldest = tasks.all().at(-1)?.id ?? "";
  if (!hasMore || !last || last <= oldest) return;
  const start = swept && swept > oldest && swept < last ? swept : last;
  swept = (await look(PAGE_MAX, start)).last_id ?? undefined;
}

/** The first look: all tasks, up to a bound. */
async function load() {
  const page = await look(PAGE_MAX);
  older = page.has_more ? (page.last_id ?? undefined) : undefined;
}

async function loadHistory() {
  while (older && tasks.count() < HISTORY_MAX) await loadOlder();
}

/**
 * Reads events until the stream ends.
 * @param {() => void} onOpen
 */
async function stream(onOpen) {
  const headers = new Headers({ accept: "text/event-stream" });
  if (lastEvent) headers.set("last-event-id", lastEvent);
  const response = await send("v1/videos/events", { headers, cache: "no-store" });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || !response.body) {
    await response.body?.cancel();
    throw new ApiError(404, {});
  }
  onOpen();
  const queue = setInterval(() => {
    if (tasks.all().some((task) => task.status === "queued")) refresh().catch(() => {});
  }, QUEUE_MS);
  try {
    // A stream begins with what is unfinished: no event tells of a task that ended between the last look and now.
    await refresh();
    for await (const record of records(response.body)) {
      if (record.id) lastEvent = record.id;
      if (record.event === "video.updated") tasks.put([JSON.parse(record.data)]);
    }
  } finally {
    clearInterval(queue);
    // Where nothing was read of it yet; otherwise it has ended already.
    response.body.cancel().catch(() => {});
  }
}

/** One turn: a stream as long as it lasts, or one look and a pause. */
async function follow(/** @type {() => void} */ onOpen) {
  if (hasStream) {
    let isOpen = false;
    try {
      await stream(() => ((isOpen = true), onOpen()));
      // A service that stops ends each stream at once.
      await pause(RETRY_MS);
      return;
    } catch (error) {
      const isRefused = !isOpen && error instanceof ApiError && error.status >= 400 && error.status < 500;
      if (!isRefused || error.status === 401) throw error;
      // With too many streams open, polling has its turn.
      if (error.status !== 429) hasStream = false;
    }
  }
  onOpen();
  const before = tasks.revision();
  const isBusy = tasks.unfinished().length > 0;
  await pause(document.hidden ? HIDDEN_MS : isBusy ? pauseMs : IDLE_MS);
  await refresh();
  pauseMs = tasks.revision() === before ? Math.min(POLL_MS_MAX, pauseMs * POLL_GROWTH) : POLL_MS;
}

/**
 * Runs until the key is refused.
 * @param {(state: State) => void} onState
 */
export async function run(onState) {
  let retryMs = RETRY_MS;
  let isLoaded = false;
  onState("connecting");
  setInterval(() => isLoaded && !document.hidden && sweep().catch(() => {}), SWEEP_MS);
  document.addEventListener("visibilitychange", () => document.hidden || poke());
  addEventListener("online", poke);
  for (;;) {
    try {
      if (!isLoaded) {
        await load();
        loadHistory().catch(() => {});
      } else if (!hasStream) await refresh();
      isLoaded = true;
      for (;;) {
        await follow(() => onState("live"));
        retryMs = RETRY_MS;
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return onState("signed-out");
      onState("reconnecting");
      const seconds = error instanceof ApiError ? error.retrySeconds : undefined;
      await sleep(error instanceof ApiError && error.status === 429 && seconds ? seconds * 1000 : retryMs);
      retryMs = Math.min(RETRY_MS_MAX, retryMs * 2);
    }
  }
}
