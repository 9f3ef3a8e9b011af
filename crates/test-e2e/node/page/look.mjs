// How the page feels: what a first visit loads and whether anything moves, frames while scrolling through many tasks, and
// what axe-core says of it.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

import { assert, enter, open, plays, signIn, user } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LOAD_BYTES_MAX = 150_000;
/**
 * What the page may do until it can be used. On one machine this is a time, and a small one (`ready` is printed), but no
 * clock of a busy machine is a measure of it.
 */
const LOAD_FILES_MAX = 80;
const DOOR_ELEMENTS_MAX = 60;
const LOAD_CALLS_MAX = 6;
const SHIFT_MAX = 0.01;
/** Visits after the first, and scrolls: one pass without a long task shows that the page does not cause them. */
const PASSES = 8;
/** What a task of the page may take of a processor, so that no frame waits for it. */
const LONG_TASK_MS = 50;
const TASKS = 500;

/** Waits until the first posters are there. */
const posters = (page) =>
  page
    .locator(".tile[data-status=completed] img")
    .first()
    .evaluate((image) => image.decode());

/**
 * Processor times of the tasks that the page's main thread runs during `act`, in milliseconds. By the clock of a busy machine
 * any task can be long; the thread's own time is the page's.
 * @param {import("playwright-core").Page} page
 * @param {() => Promise<unknown>} act
 */
async function work(page, act) {
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ["disabled-by-default-devtools.timeline"] });
  await act();
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const of = ({ pid, tid }) => `${pid} ${tid}`;
  const main = new Set(traceEvents.filter(({ args }) => args?.name === "CrRendererMain").map(of));
  const tasks = traceEvents.filter((event) => event.name === "RunTask" && main.has(of(event)));
  assert(tasks.length > 10, `${tasks.length} tasks were recorded`);
  const times = tasks.map(({ tdur }) => Math.round(tdur / 1000));
  return { tasks: times.length, longest: Math.max(...times), long: times.filter((time) => time > LONG_TASK_MS) };
}

/** What a visit has loaded and done so far. */
const measure = (page) =>
  page.evaluate(() => {
    const entries = (type) => {
      const observer = new PerformanceObserver(() => {});
      observer.observe({ type, buffered: true });
      return observer.takeRecords();
    };
    const shifts = entries("layout-shift").filter((one) => !one.hadRecentInput);
    const own = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")].filter(
      (entry) => !entry.name.includes("/v1/"),
    );
    const sum = (of) => own.reduce((all, entry) => all + entry[of], 0);
    return {
      ready: Math.round(performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd),
      now: Math.round(performance.now()),
      files: own.length,
      bytes: sum("encodedBodySize"),
      transferred: sum("transferSize"),
      elements: document.querySelectorAll("body *").length,
      shift: shifts.reduce((all, one) => all + one.value, 0),
      shifted: shifts.flatMap((one) => one.sources.map(({ node }) => node?.className ?? String(node))),
    };
  });

const isStill = ({ shift, shifted }, when) =>
  assert(shift < SHIFT_MAX, `${when}, the layout shifted by ${shift}: ${shifted}`);

/** A first visit is light and short of work, nothing of it moves, and a second one loads nothing again. */
export async function load() {
  const { page, close } = await open({ still: false });
  await page.getByLabel("API key").waitFor();
  const door = await measure(page);
  console.log("sign-in:", door);
  assert(door.elements > 5 && door.elements < DOOR_ELEMENTS_MAX, `${door.elements} elements before the sign-in`);
  await signIn(page);
  await posters(page);
  const first = await measure(page);
  console.log("first load:", first);
  assert(first.bytes > 0 && first.bytes < LOAD_BYTES_MAX, `${first.bytes} bytes`);
  // Nothing is loaded late: all is on its way before anything runs.
  assert(first.files === door.files && first.files < LOAD_FILES_MAX, `${door.files}, then ${first.files} files`);
  isStill(first, "after the sign-in");
  let calls = [];
  page.on("request", (request) => calls.push(request.url().slice(user.page.length)));
  const visits = [];
  while (visits.length < PASSES && visits.every(({ long }) => long.length)) {
    calls = [];
    const visit = await work(page, async () => {
      await page.reload();
      await posters(page);
    });
    visits.push(visit);
    const again = await measure(page);
    console.log("second load:", again);
    const page_itself = again.transferred < 2_000;
    assert(page_itself, `a second visit loads ${again.transferred} bytes again`);
    // There was no input: whatever moves, moves by itself.
    isStill(again, "at a reload");
    const api = calls.filter((url) => url.startsWith("/v1/") && !url.includes("/content"));
    assert(api.length > 1 && api.length <= LOAD_CALLS_MAX, `calls until the first picture: ${api.join(" ")}`);
  }
  console.log("visits:", visits);
  assert(
    visits.some(({ long }) => !long.length),
    "every visit had a long task",
  );
  await close();
}

/** Scrolls from the top to the end and back; returns how far that is in pixels. */
const scroll = (page) =>
  page.evaluate(async () => {
    const root = document.documentElement;
    const end = root.scrollHeight - innerHeight;
    const turn = () => new Promise(requestAnimationFrame);
    for (let at = 0; at < end; at += 140) (scrollTo(0, at), await turn());
    for (let at = end; at > 0; at -= 420) (scrollTo(0, at), await turn());
    await turn();
    await turn();
    return end;
  });

/** A gallery of many videos, each with its poster, scrolls without a long task. */
export async function many() {
  const { page, close } = await enter({ still: false });
  const scrolls = [];
  let end = 0;
  while (scrolls.length < PASSES && scrolls.every(({ long }) => long.length)) {
    // Each pass meets its pictures anew.
    if (scrolls.length) await page.reload();
    await page.waitForFunction((count) => document.querySelectorAll(".tile").length === count, TASKS);
    scrolls.push(await work(page, async () => (end = await scroll(page))));
  }
  console.log("scrolls:", scrolls);
  assert(end > 5000, "there was nothing to scroll");
  assert(
    scrolls.some(({ long }) => !long.length),
    "every scroll had a long task",
  );
  await everyPoster(page);
  await page.getByLabel("Search").fill("kite number 77");
  await page.waitForFunction(() => document.querySelectorAll(".tile").length === 1);
  await close();
}

/** All posters are pictures of their own, and all can be seen. */
async function everyPoster(page) {
  const seen = await page.evaluate(async () => {
    const images = [...document.querySelectorAll(".tile[data-status=completed] img")];
    for (const image of images) image.loading = "eager";
    await Promise.all(images.map((image) => image.decode()));
    const isSeen = (image) => image.naturalWidth > 0;
    return { posters: images.filter(isSeen).length, addresses: new Set(images.map((image) => image.src)).size };
  });
  assert(seen.posters === TASKS && seen.addresses === TASKS, JSON.stringify(seen));
}

/**
 * What axe-core finds serious or critical, also whether the names of controls hold the words that are seen. Where colours
 * are forced, it takes the page's own for those of the text, which the system has replaced.
 */
export async function judge(page, where) {
  await page.evaluate(AXE);
  const isForced = await page.evaluate(() => matchMedia("(forced-colors: active)").matches);
  const rules = { "label-content-name-mismatch": { enabled: true }, "color-contrast": { enabled: !isForced } };
  const options = { resultTypes: ["violations"], rules };
  const { violations } = await page.evaluate((options) => globalThis.axe.run(document, options), options);
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const words = bad.map(
    (one) =>
      `${where}: ${one.id}: ${one.help}\n${one.nodes.map((node) => `  ${node.html}\n  ${node.failureSummary}`).join("\n")}`,
  );
  assert(!bad.length, words.join("\n"));
}

/** Nothing serious is wrong for people who use assistive technology, in either colour scheme and width. */
export async function accessible() {
  for (const [width, dark] of [
    [1280, false],
    [1280, true],
    [390, false],
    [390, true],
  ]) {
    const name = `${width} ${dark ? "dark" : "light"}`;
    const { page, close } = await open({ width, dark });
    await judge(page, `sign-in ${name}`);
    await page.emulateMedia({ forcedColors: "active" });
    await judge(page, `sign-in ${name}, forced colours`);
    await page.emulateMedia({ forcedColors: "none" });
    await signIn(page);
    await page.locator(".tile[data-status=completed]").first().waitFor();
    await page.locator(".tile[data-status=failed]").first().waitFor();
    await judge(page, `gallery ${name}`);
    if (width < 600) await page.getByRole("button", { name: "New video" }).click();
    await page.getByRole("group", { name: "Pictures", exact: true }).getByText("References").click();
    await page.getByText("More", { exact: true }).click();
    await judge(page, `form ${name}`);
    if (width < 600) await page.getByRole("button", { name: "Close" }).click();
    await page.keyboard.press("Escape");
    await page.locator(".tile[data-status=completed] .tile-open").first().click();
    await plays(page);
    await judge(page, `viewer ${name}`);
    await page.locator("[data-action=code]").click();
    await judge(page, `code ${name}`);
    await page.keyboard.press("Escape");
    await page.locator("[data-action=compare]").click();
    await page.locator(".tile[data-status=completed] .tile-open").nth(1).click();
    await page.locator(".compare[open]").waitFor();
    await judge(page, `comparison ${name}`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await judge(page, `help ${name}`);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Service" }).click();
    await page.getByRole("table", { name: "Devices" }).getByText("loaded, idle").waitFor();
    await judge(page, `service ${name}`);
    await close();
  }
}
