// Pictures of the page, for docs/studio and for the eyes of whoever changes it: into the folder KINORA_PICTURES, as
// SCREEN-WIDTH-SCHEME.png. `docs/screenshots` prepares a service and runs this.

import { enter, open, plays, user } from "./browser.mjs";

const FOLDER = process.env.KINORA_PICTURES;

/** What is being made in the pictures: long, so that it still is. */
const LONG = { model: "kinora-a1", seconds: 15, size: "1920x1080" };
const SCENES = ["A balloon over mountains at sunset", "A whale under a starry sky", "A windmill in a field of tulips"];
/** From here on it can be seen what it becomes. */
const PROGRESS = 20;

const call = (method, path, body) =>
  fetch(`${user.page}/v1/videos${path}`, {
    method,
    headers: { authorization: `Bearer ${user.key}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  }).then((answer) => answer.json());

export async function screenshots() {
  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ]) {
    for (const dark of [false, true]) await screens({ width, height, dark }, `${width}-${dark ? "dark" : "light"}`);
  }
}

async function screens(options, variant) {
  const shoot = (page, screen) => page.screenshot({ path: `${FOLDER}/${screen}-${variant}.png` });
  const door = await open(options);
  await shoot(door.page, "signin");
  await door.close();
  const { page, close } = await enter(options);
  await making(page, () => shoot(page, "gallery"));
  await form(page, options, () => shoot(page, "form"));
  await page.getByLabel("Search").fill("a submarine");
  await page.getByRole("heading", { name: "Nothing found" }).waitFor();
  await shoot(page, "nothing");
  await page.getByRole("button", { name: "Clear search" }).click();
  await finished(page, (screen) => shoot(page, screen));
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await shoot(page, "help");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Service" }).click();
  await page.getByRole("table", { name: "Workers" }).waitFor();
  await shoot(page, "service");
  await close();
}

const poster = (page) =>
  page
    .locator(".tile[data-status=completed] img")
    .first()
    .evaluate((image) => image.decode());

/** The gallery while three videos are made, or wait. */
async function making(page, shoot) {
  const tasks = [];
  for (const prompt of SCENES) tasks.push(await call("POST", "", { ...LONG, prompt }));
  await page.locator(".tile[data-status=in_progress] img.is-preview:not([hidden])").first().waitFor();
  await page.waitForFunction((wanted) => {
    const words = [...document.querySelectorAll(".frame-words")].map((one) => one.textContent);
    return words.some((one) => Number(/Making, (\d+) %/.exec(one)?.[1]) >= wanted);
  }, PROGRESS);
  await poster(page);
  await page.evaluate(() => scrollTo(0, 0));
  await shoot();
  for (const task of tasks) await call("DELETE", `/${task.id}`);
  await page.reload();
  await poster(page);
}

/** The form with an address in it. */
async function form(page, { width }, shoot) {
  if (width < 600) await page.getByRole("button", { name: "New video" }).click();
  await page.getByLabel("Prompt").fill("A red balloon drifts over a calm sea at dawn");
  await page.getByRole("group", { name: "Pictures", exact: true }).getByText("References").click();
  await shoot();
  await page.getByRole("group", { name: "Pictures", exact: true }).getByText("None").click();
  await page.getByLabel("Prompt").fill("");
  if (width < 600) await page.getByRole("button", { name: "Close" }).click();
}

/** The viewer of a video, its code, a failure, and the comparison. */
async function finished(page, shoot) {
  const tile = (words) => page.locator(".tile").filter({ hasText: words }).locator(".tile-open").first();
  await tile("A portrait").click();
  await shoot("failure");
  await page.keyboard.press("Escape");
  await tile("A red balloon").click();
  await plays(page);
  // Without the browser's own controls, which come and go by the time.
  await page.locator(".viewer video").evaluate((video) => (video.controls = false));
  await shoot("viewer");
  await page.locator("[data-action=code]").click();
  await shoot("code");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await tile("A paper boat").click();
  await page.locator("[data-action=compare]").click();
  await tile("The same at night").click();
  await page.waitForFunction(() => {
    const videos = [...document.querySelectorAll(".compare[open] video")];
    return videos.length === 2 && videos.every((video) => video.readyState >= 2 && video.currentTime > 1);
  });
  await shoot("compare");
  await page.keyboard.press("Escape");
}
