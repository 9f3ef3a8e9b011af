/**
 * @file Keeps the tasks current. Where the service pushes events, one stream brings every change; elsewhere one list
 * request after another does, as long as tasks are unfinished, with pauses that grow while nothing changes. A service
 * that is away is asked again until it is back.
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

let pauseMs = POLL_MS;
let hasStream = true;
let lastEvent = "";
/** @type {string | undefined} the last id of the oldest page; `undefined` when there are no older ones */
let older;
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
 * Takes a page, and drops what should be on it and is not: another client has deleted it.
 * @param {{data: import("./api.js").Task[], has_more: boolean, last_id: string | null}} page newest first
 * @param {string} [after] where it began
 */
function take(page, after) {
  const ids = new Set(page.data.map((task) => task.id));
  const first = after ?? page.data[0]?.id ?? "";
  const last = page.has_more ? (page.last_id ?? "") : "";
  const isMissing = (/** @type {string} */ id) => id < first && id > last && !ids.has(id);
  tasks.drop(
    tasks
      .all()
      .map((task) => task.id)
      .filter(isMissing),
  );
  tasks.put(page.data);
  return page;
}

/** The newest tasks and all unfinished ones. */
async function refresh() {
  let page = take(await list(PAGE));
  const isCovered = (/** @type {string} */ id) => !page.has_more || id >= (page.last_id ?? "");
  let waiting = tasks.unfinished().filter((task) => !isCovered(task.id));
  while (waiting.length) {
    const known = tasks.all();
    const start = known[known.findIndex((task) => task.id === waiting[0].id) - 1].id;
    page = take(await list(PAGE_MAX, start), start);
    waiting = waiting.filter((task) => !isCovered(task.id));
  }
}

/** The first look: all tasks, up to a bound. */
async function load() {
  const page = take(await list(PAGE_MAX));
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
    for await (const record of records(response.body)) {
      if (record.id) lastEvent = record.id;
      if (record.event === "video.updated") tasks.put([JSON.parse(record.data)]);
    }
  } finally {
    clearInterval(queue);
  }
}

/** One turn: a stream as long as it lasts, or one look and a pause. */
async function follow(/** @type {() => void} */ onOpen) {
  if (hasStream) {
    try {
      await stream(onOpen);
      return;
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500;
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
  document.addEventListener("visibilitychange", () => document.hidden || poke());
  addEventListener("online", poke);
  for (;;) {
    try {
      if (isLoaded) await refresh();
      else await load();
      if (!isLoaded) loadHistory().catch(() => {});
      isLoaded = true;
      for (;;) {
        await follow(() => onState("live"));
        retryMs = RETRY_MS;
        if (hasStream) await refresh();
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
