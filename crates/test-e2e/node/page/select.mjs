// Many videos at once: what is selected, its archive, its end; favourites; and the words that the form offers.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { action, assert, choose, enter, hasFocus, small, tile, user } from "./browser.mjs";
import { judge } from "./look.mjs";

const count = (page, number) =>
  page.waitForFunction((wanted) => document.querySelectorAll(".tile").length === wanted, number);
const tray = (page) => page.getByRole("region", { name: "Selection" });
const begin = (page) => page.getByRole("button", { name: "Select", exact: true }).click();
const pick = (page, words) => tile(page, words).locator(".tile-open").click();
/** Whether a tile is one of the chosen. */
const isChosen = async (page, words) =>
  (await tile(page, words).locator(".tile-open").getAttribute("aria-pressed")) === "true";

/** The hashes of the service's own copies, by id. */
async function originals() {
  const headers = { authorization: `Bearer ${user.key}` };
  const { data } = await (await fetch(`${user.page}/v1/videos?limit=100`, { headers })).json();
  const found = new Map();
  for (const { id, status } of data) {
    if (status !== "completed") continue;
    const answer = await fetch(`${user.page}/v1/videos/${id}/content`, { headers });
    found.set(id, hash(Buffer.from(await answer.arrayBuffer())));
  }
  return found;
}

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Unpacks an archive with Python, which checks each sum; returns the hashes of its files by the ids in their names. */
function unpacked(path) {
  const folder = mkdtempSync(join(tmpdir(), "kinora-archive-"));
  for (const words of [
    ["-t", path],
    ["-e", path, folder],
  ]) {
    const { status, stdout, stderr } = spawnSync("python3", ["-m", "zipfile", ...words], { encoding: "utf8" });
    // It tells of a sum that is wrong, and ends well.
    assert(status === 0 && !stdout.includes("corrupted"), `${stdout}${stderr}`);
  }
  return new Map(
    readdirSync(folder).map((name) => [/video_\w{26}/.exec(name)?.[0], hash(readFileSync(join(folder, name)))]),
  );
}

/** Whether two maps are the same. */
const same = (a, b) => a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);

/** The finished ones of a selection are saved as one archive, whole, by either way in which a browser saves files. */
export async function archive() {
  for (const hasPicker of [false, true]) {
    const { page, close } = await enter();
    await page.evaluate(choosesFiles, hasPicker);
    await count(page, 3);
    await begin(page);
    await tray(page).getByText("Choose videos").waitFor();
    assert(await tray(page).getByRole("button", { name: "Delete" }).isDisabled(), "nothing can be deleted");
    await pick(page, "A lighthouse");
    await tray(page).getByText("1 selected").waitFor();
    assert((await isChosen(page, "A lighthouse")) && !(await isChosen(page, "A picture of nothing")), "a tile looks wrong");
    await judge(page, "a selection");
    await tray(page).getByRole("button", { name: "All" }).click();
    await tray(page).getByText("3 selected").waitFor();
    const save = tray(page).getByRole("button", { name: "Download 2 videos as ZIP" });
    const path = hasPicker ? await savedByPicker(page, save) : await savedByBrowser(page, save);
    const [found, wanted] = [unpacked(path), await originals()];
    assert(wanted.size === 2 && same(found, wanted), `${[...found]} instead of ${[...wanted]}`);
    await page.getByText("Saved 2 videos.").first().waitFor();
    assert(await hasFocus(save), "the focus is lost");

    // More than an archive holds is told before a byte of it is loaded.
    await page.route("**/content?**", (route) =>
      route.request().method() === "HEAD"
        ? route.fulfill({ status: 200, headers: { "content-length": "2200000000" } })
        : route.abort(),
    );
    await save.click();
    await page.getByText("These videos have 4.4 GB together, and a ZIP holds 4 GB: choose fewer.").first().waitFor();
    await page.keyboard.press("Escape");
    await tray(page).waitFor({ state: "hidden" });
    assert(await hasFocus(page.getByRole("button", { name: "Select", exact: true })), "the focus did not come back");
    await close();
  }
}

/** Takes the browser's way to choose a file away, or has it choose one of the page's own, without a question. */
function choosesFiles(hasPicker) {
  if (!hasPicker) {
    delete window.showSaveFilePicker;
    return;
  }
  window.showSaveFilePicker = async ({ suggestedName }) => {
    const folder = await navigator.storage.getDirectory();
    globalThis.chosen = await folder.getFileHandle(suggestedName, { create: true });
    return globalThis.chosen;
  };
}

async function savedByBrowser(page, save) {
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  assert(/^kinora-\d{4}-\d\d-\d\d\.zip$/.test(download.suggestedFilename()), download.suggestedFilename());
  return download.path();
}

async function savedByPicker(page, save) {
  await save.click();
  await page.getByText("Saved 2 videos.").first().waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.evaluate(async () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await globalThis.chosen.getFile());
      link.download = "chosen.zip";
      link.click();
    }),
  ]);
  return download.path();
}

/** A selection is deleted as a whole, after a question; what a filter hides is not in it. */
export async function delete_many() {
  const { page, close } = await enter({ width: 360, height: 740 });
  await count(page, 3);
  await begin(page);
  await pick(page, "A picture of nothing");
  await pick(page, "A lighthouse");
  await tray(page).getByText("2 selected").waitFor();
  assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
  const box = await tray(page).boundingBox();
  assert(box.x >= 0 && box.x + box.width <= 360, `the tray goes from ${box.x} to ${box.x + box.width}`);
  await judge(page, "a selection by phone");
  await page.getByLabel("Search").fill("lighthouse");
  await tray(page).getByText("1 selected").waitFor();
  await page.getByLabel("Search").fill("");
  await pick(page, "A picture of nothing");
  await tray(page).getByRole("button", { name: "Delete" }).click();
  const question = page.getByRole("dialog", { name: "Delete 2 videos?" });
  assert(await hasFocus(question.getByRole("button", { name: "Keep" })), "the question begins at what is lost");
  await question.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Deleted 2 videos.").first().waitFor();
  await count(page, 1);
  await tray(page).waitFor({ state: "hidden" });
  await page.reload();
  await count(page, 1);
  await close();
}

/** Favourites are a filter, searched like the others, and last over visits until the sign-out. */
export async function favourites() {
  const { page, close } = await enter();
  await count(page, 3);
  const filter = page.getByRole("group", { name: "Filter" }).getByRole("button", { name: /^Favourites/ });
  assert(!(await filter.count()), "the filter is offered without a favourite");
  await tile(page, "A lighthouse").locator(".tile-open").click();
  await page.keyboard.press("s");
  await page.getByText("A favourite, in this browser only.").first().waitFor();
  assert((await action(page, "favourite").getAttribute("aria-pressed")) === "true", "the viewer does not show it");
  await page.keyboard.press("Escape");
  await tile(page, "A paper boat").hover();
  await page.getByRole("button", { name: /^Favourite: A paper boat/ }).click();
  await page.reload();
  await filter.click();
  await count(page, 2);
  await page.getByText("Favourites are kept in this browser only").waitFor();
  await page.getByLabel("Search").fill("lighthouse");
  await count(page, 1);
  await page.getByRole("button", { name: /^Favourite: A lighthouse/ }).click();
  await page.getByText("Among the favourites, none matches").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").waitFor();
  assert((await page.evaluate(() => localStorage.getItem("kinora.favourites"))) === null, "they outlive the sign-out");
  await close();
}

/** Words of camera and light go into the prompt and out of it; prompts that were accepted come back. */
export async function words() {
  const { page, close } = await enter();
  const prompt = page.getByLabel("Prompt", { exact: true });
  const chip = (name) => page.locator(".chip", { hasText: name });
  await small(page);
  await prompt.fill("A kite over a beach.");
  await page.getByRole("button", { name: "Camera and light" }).click();
  await chip("golden hour").click();
  await chip("slow push in").click();
  assert((await prompt.inputValue()) === "A kite over a beach, golden hour, slow push in", await prompt.inputValue());
  assert((await chip("golden hour").getAttribute("aria-pressed")) === "true", "a word of the prompt does not look so");
  await judge(page, "words for the prompt");
  await chip("golden hour").click();
  assert((await prompt.inputValue()) === "A kite over a beach, slow push in", await prompt.inputValue());
  await page.getByRole("button", { name: "Generate" }).click();
  await tile(page, "A kite").waitFor();
  await prompt.fill("Something else");
  await page.reload();
  await choose(page, "Size", "480p");
  const last = page.getByRole("button", { name: "Last prompts" });
  await last.click();
  await page.locator(".prompts").getByRole("button", { name: "A kite over" }).click();
  assert((await prompt.inputValue()) === "A kite over a beach, slow push in", await prompt.inputValue());
  assert(await hasFocus(last), "the focus is lost");
  await close();
}
