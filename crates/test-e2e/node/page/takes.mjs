// From one video to the next: four variations, going on from its end, and links to show it to somebody.

import { action, assert, choose, enter, plays, reaches, small, tile, user } from "./browser.mjs";

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

/** Four variations are four tasks with four seeds, from the form and from a video; what is refused of them is told. */
export async function variations() {
  const { page, close } = await enter({ expected: /status of 429/ });
  const keys = [];
  let refused = 0;
  await page.route("**/v1/videos", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    keys.push(route.request().headers()["idempotency-key"]);
    if (refused-- <= 0) return route.continue();
    return route.fulfill({ status: 429, json: { error: { code: "queue_full", message: "The queue is full." } } });
  });
  await page.getByLabel("Prompt").fill("A kite over a beach");
  await small(page);
  await page.getByText("More", { exact: true }).click();
  await page.getByLabel("Seed").fill("7");
  await page.getByRole("button", { name: "Four variations" }).click();
  await page.getByText("Making four variations.").first().waitFor();
  const made = (count) =>
    page.waitForFunction((count) => document.querySelectorAll(".tile[data-status=completed]").length === count, count);
  await made(4);
  assert(keys.length === 4 && new Set(keys).size === 4, `the keys were ${keys}`);

  await tile(page, "A kite").locator(".tile-open").click();
  await action(page, "four").click();
  await page.locator(".viewer[open]").waitFor({ state: "detached" });
  await made(8);
  const seeds = new Set();
  for (const body of await tasks()) seeds.add(body.seed);
  assert(seeds.size === 8 && seeds.has(7), `the seeds are ${[...seeds]}`);

  refused = 3;
  await page.getByRole("button", { name: "Four variations" }).click();
  await page.locator(".toast.is-error", { hasText: "Only 1 of 4 variations were accepted. The queue is full." }).waitFor();
  await made(9);
  refused = 4;
  await page.getByRole("button", { name: "Four variations" }).click();
  await page.locator(".composer-foot .remark.is-error", { hasText: "The queue is full." }).waitFor();
  await close();
}

const tasks = async () => {
  const headers = { authorization: `Bearer ${user.key}` };
  return (await (await fetch(`${user.page}/v1/videos?limit=100`, { headers })).json()).data;
};

/** The links of a video: its file opens without a key, its page opens it in Studio, also in a tab that is open already. */
export async function links() {
  const { page, close } = await enter();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tile(page, "A lighthouse").locator(".tile-open").click();
  await action(page, "link").click();
  await page.getByText("Everybody who has it can see the video until").first().waitFor();
  const file = await fetch(await clipboard(page));
  assert(file.ok && file.headers.get("content-type") === "video/mp4", `the link answers ${file.status}`);
  await action(page, "page-link").click();
  await page.getByText("It opens this video in Studio").first().waitFor();
  const link = await clipboard(page);
  assert(/#video_[0-9a-z]{26}$/.test(link), link);
  await page.keyboard.press("Escape");
  // To the address where the page is already, a link leads nowhere.
  await page.waitForFunction(() => !location.hash);
  await page.evaluate((link) => location.assign(link), link);
  await plays(page);
  await page.locator(".viewer[open] .side-prompt", { hasText: "A lighthouse" }).waitFor();
  // A failed task has a page, but no file.
  await page.keyboard.press("Escape");
  await page.locator(".tile[data-status=failed] .tile-open").click();
  await action(page, "page-link").waitFor();
  assert(!(await action(page, "link").count()), "a failed task has a link to its video");
  await close();
}

/** The end of a video is the beginning of the next, with the same prompt. */
export async function going_on() {
  const { page, close } = await enter();
  await page.getByLabel("Prompt").fill("A paper boat crosses a pond");
  await small(page);
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "A paper boat", "completed");
  await page.getByLabel("Prompt").fill("Another scene");
  await choose(page, "Size", "720p");
  await tile(page, "A paper boat").locator(".tile-open").click();
  await action(page, "go-on").click();
  assert((await page.getByLabel("Prompt").inputValue()) === "A paper boat crosses a pond", "the prompt is another one");
  const first = page.getByRole("textbox", { name: "First frame" });
  const last = (await tasks())[0].last_frame_url;
  assert((await first.inputValue()) === last, `the first frame is ${await first.inputValue()}`);
  await page.locator(".url-row .preview img").first().evaluate((image) => image.decode());
  const chosen = await page
    .locator("input[type=radio]:checked")
    .evaluateAll((inputs) => inputs.map((input) => input.value));
  assert(chosen.slice(1).join() === "first,1:1,480p", chosen.join());
  await page.getByLabel("Prompt").fill("The boat reaches the shore");
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "The boat reaches", "completed");
  await close();
}
