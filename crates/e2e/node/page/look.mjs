// How the page feels: what a first visit loads and whether anything moves, frames while scrolling through many tasks, and
// what axe-core says of it.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

import { assert, enter, open, plays, signIn } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LOAD_BYTES_MAX = 150_000;
/** Scrolls of which one must be without a long frame: what else the machine does can only add some. */
const SCROLLS = 8;
const TASKS = 500;

/** A first visit is light, nothing of it moves, and a second one loads nothing again. */
export async function load() {
  const { page, close } = await open({ still: false });
  await signIn(page);
  await page
    .locator(".tile[data-status=completed] img")
    .first()
    .evaluate((image) => image.decode());
  const measured = await page.evaluate(() => {
    const shifts = new PerformanceObserver(() => {});
    shifts.observe({ type: "layout-shift", buffered: true });
    const shift = shifts.takeRecords().reduce((sum, one) => sum + (one.hadRecentInput ? 0 : one.value), 0);
    const own = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")].filter(
      (entry) => !entry.name.includes("/v1/"),
    );
    const ready = Math.round(performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
    return { shift, ready, bytes: own.reduce((sum, entry) => sum + entry.encodedBodySize, 0), files: own.length };
  });
  console.log("first load:", measured);
  assert(measured.bytes > 0 && measured.bytes < LOAD_BYTES_MAX, `${measured.bytes} bytes`);
  assert(measured.shift < 0.01, `the layout shifted by ${measured.shift}`);
  await page.reload();
  await page.locator(".tile").first().waitFor();
  const again = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .filter((entry) => entry.name.includes("/studio/"))
      .reduce((sum, entry) => sum + entry.transferSize, 0),
  );
  assert(again === 0, `a second visit loads ${again} bytes again`);
  await close();
}

/** One scroll from the top to the end and back; the long frames (over 50 ms) of it. */
const scroll = (page) =>
  page.evaluate(async () => {
    const frames = new PerformanceObserver(() => {});
    frames.observe({ type: "long-animation-frame" });
    const root = document.documentElement;
    const end = root.scrollHeight - innerHeight;
    const turn = () => new Promise(requestAnimationFrame);
    for (let at = 0; at < end; at += 140) (scrollTo(0, at), await turn());
    for (let at = end; at > 0; at -= 420) (scrollTo(0, at), await turn());
    await turn();
    await turn();
    return { end, long: frames.takeRecords().map((frame) => Math.round(frame.duration)) };
  });

/** A gallery of many tasks scrolls without a long frame. */
export async function many() {
  const { page, close } = await enter({ still: false });
  await page.waitForFunction((count) => document.querySelectorAll(".tile").length === count, TASKS);
  const scrolls = [];
  for (let n = 0; n < SCROLLS && !scrolls.some((one) => !one.long.length); n += 1) scrolls.push(await scroll(page));
  console.log("scrolls:", JSON.stringify(scrolls));
  assert(scrolls[0].end > 5000, "there was nothing to scroll");
  assert(
    scrolls.some((one) => !one.long.length),
    "every scroll had a long frame",
  );
  await page.getByLabel("Search").fill("kite number 77");
  await page.waitForFunction(() => document.querySelectorAll(".tile").length === 1);
  await close();
}

/** What axe-core finds serious or critical. */
async function judge(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
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
    await page.getByRole("table", { name: "Workers" }).waitFor();
    await judge(page, `service ${name}`);
    await close();
  }
}
