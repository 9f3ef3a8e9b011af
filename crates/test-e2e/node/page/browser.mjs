// Debian's Chromium, driven by Playwright: one browser with one page of the Studio, watched for whatever a healthy page
// does not do.

import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--autoplay-policy=no-user-gesture-required",
];
// Far longer than anything should take.
const PATIENCE_MS = 240_000;

/**
 * Who visits: the address of a service, a key of it, another host that the user's addresses lead to, a link that signs in, and
 * the file that leads to it.
 */
export const user = { page: "", key: "", host: "", link: "", file: "" };

/** Fails with words when `condition` does not hold. */
export function assert(condition, words) {
  if (!condition) throw new Error(words);
}

/** What the program that has started us says. */
export const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

let browser;

/** One for all scenarios, since it takes a second of a processor to start: each page gets a profile of its own. */
const launched = async () =>
  (browser ??= await chromium.launch({
    executablePath: process.env.KINORA_CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS,
  }));

/** Closes the browser. */
export const quit = () => browser?.close();

/** Asks the test that has started us to do something with the service, and waits until it is done. */
export async function ask(word) {
  console.log(`ask ${word}`);
  assert(!(await lines.next()).done, "the test has gone");
}

/**
 * Opens the Studio. `expected` names the messages of the browser's console that this scenario provokes, `host` another
 * host that its user's addresses lead to. With `clock`, the page's clock can be put forward; `platform` is what the
 * browser says of its keyboard.
 * @param {{width?: number, height?: number, dark?: boolean, scale?: number, still?: boolean, expected?: RegExp,
 *   path?: string, host?: string, clock?: boolean, platform?: string}} [options]
 */
export async function open({
  width = 1280,
  height = 900,
  dark = false,
  scale = 1,
  still = true,
  expected = /^$/,
  path = "/",
  host = user.page,
  clock = false,
  platform = "",
} = {}) {
  const context = await (await launched()).newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    deviceScaleFactor: scale,
    reducedMotion: still ? "reduce" : "no-preference",
    locale: "en-GB",
    hasTouch: width < 600,
    isMobile: width < 600,
  });
  if (clock) await context.clock.install();
  if (platform)
    await context.addInitScript((value) => Object.defineProperty(navigator, "platform", { get: () => value }), platform);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.stack}`));
  page.on("console", (message) => {
    // The first look without a key, and a service without a stream.
    const usual = /status of 401/.test(message.text()) || message.location().url.endsWith("/v1/videos/events");
    if (message.type() === "error" && !usual && !expected.test(message.text()))
      wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    const isKnown = [user.page, host].some((one) => url.startsWith(`${one}/`));
    if (!isKnown && !/^(blob|data):/.test(url)) wrong.push(`a request elsewhere: ${url}`);
  });
  await page.goto(user.page + path);
  return {
    page,
    /** Ends the scenario; fails if the page did what it should not. */
    async close() {
      await context.close();
      assert(!wrong.length, wrong.join("\n"));
    },
  };
}

/** Signs in with a key. */
export async function signIn(page, key = user.key) {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Opens the page and signs in. */
export async function enter(options) {
  const session = await open(options);
  await signIn(session.page);
  await session.page
    .getByRole("button", { name: "Generate" })
    .or(session.page.getByRole("button", { name: "New video" }))
    .first()
    .waitFor();
  return session;
}

/** Chooses in a group of radio buttons. */
export const choose = (page, group, option) =>
  page.getByRole("group", { name: group, exact: true }).getByText(option, { exact: true }).click();

/** Makes the form ask for what is made quickest. */
export async function small(page) {
  await choose(page, "Size", "480p");
  await choose(page, "Shape", "1:1");
  await page.getByRole("slider", { name: "Length" }).focus();
  await page.keyboard.press("Home");
}

/** The tile of the newest task whose prompt begins with `words`. */
export const tile = (page, words) => page.locator(".tile").filter({ hasText: words }).first();

/** Waits until a tile shows this status. */
export const reaches = (page, words, status) =>
  page.locator(`.tile[data-status=${status}]`).filter({ hasText: words }).first().waitFor();

/** A button of the viewer. */
export const action = (page, name) => page.locator(`.viewer[open] [data-action=${name}]`);

/** Whether what `locator` finds has the focus. */
export const hasFocus = (locator) => locator.evaluate((element) => element === document.activeElement);

/** Waits until the page hears from the service. */
export const isLive = (page) => page.locator("html[data-connection=live]").waitFor();

/** Waits until the video of the viewer plays. */
export const plays = (page) =>
  page.waitForFunction(() => {
    const video = document.querySelector(".viewer[open] video");
    return video && video.readyState >= 2 && video.currentTime > 0;
  });
