// What people do with the Studio, by clicks and keys alone.

import { action, assert, ask, choose, enter, hasFocus, open } from "./browser.mjs";
import { plays, reaches, signIn, small, tile, user } from "./browser.mjs";

const PHONE = { width: 390, height: 844 };

/** A wrong key is refused with words; the right one leads to an empty gallery, and from there to a video. */
async function visit(options) {
  const { page, close } = await open(options);
  await signIn(page, "kinora_wrong");
  await page.getByText("does not know this key").first().waitFor();
  assert(await hasFocus(page.getByLabel("API key")), "the focus left the key");
  assert(!(await page.evaluate(() => sessionStorage.getItem("kinora.key"))), "a wrong key was kept");
  await signIn(page);
  await page.getByRole("heading", { name: "Your first video" }).waitFor();
  assert(!(await page.getByRole("button", { name: "Service" }).count()), "the operators' view is offered to everybody");
  await page.getByRole("button", { name: "A red balloon" }).click();
  await small(page);
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "A red balloon", "completed");
  await page
    .locator(".tile img")
    .first()
    .evaluate((image) => image.decode());
  if (!options.width) {
    await tile(page, "A red balloon").locator(".frame").hover();
    await page.locator(".sheet").waitFor();
  }
  await tile(page, "A red balloon").locator(".tile-open").click();
  await plays(page);
  const [download] = await Promise.all([page.waitForEvent("download"), action(page, "download").click()]);
  assert(/^video_\w{26}\.mp4$/.test(download.suggestedFilename()), download.suggestedFilename());
  await action(page, "code").click();
  for (const [language, words] of [
    ["Python", "create_and_poll("],
    ["JavaScript", "client.videos.create("],
    ["curl", "/v1/videos \\"],
  ]) {
    await page.getByRole("button", { name: language, exact: true }).click();
    const code = await page.locator("dialog[open] code").textContent();
    assert(code.includes(words) && code.includes("A red balloon drifts"), code);
    assert(!code.includes(user.key), "the key is in the code");
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  assert(await hasFocus(tile(page, "A red balloon").locator(".tile-open")), "the focus did not come back");
  assert(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(user.key), "the key outlives the tab");
  await close();
}

export const first_visit = () => visit({});
export const first_visit_by_phone = () => visit(PHONE);

/** A draft is made final, and both are seen side by side. */
export async function draft_to_final() {
  const { page, close } = await enter();
  await page.getByLabel("Prompt").fill("A lighthouse in a storm");
  await choose(page, "Shape", "1:1");
  await page.getByRole("slider", { name: "Length" }).press("Home");
  await page.getByRole("switch", { name: "Draft first" }).check();
  await page.getByRole("button", { name: "Generate draft" }).click();
  await reaches(page, "A lighthouse", "completed");
  await tile(page, "A lighthouse").locator(".tile-open").click();
  await action(page, "final").click();
  await page.locator(".viewer[open] .status[data-status=completed]", { hasText: /^Done$/ }).waitFor();
  await plays(page);
  assert(
    (await page.locator(".viewer[open] .facts").textContent()).includes("720 × 720"),
    "the final has not the size that was asked for",
  );
  await action(page, "compare-origin").click();
  await page.waitForFunction(() => {
    const videos = [...document.querySelectorAll(".compare[open] video")];
    return videos.length === 2 && videos.every((video) => video.readyState >= 2 && video.currentTime > 0);
  });
  await close();
}

/** The form says why a model cannot do something, and an edit changes an earlier video. */
async function change(options) {
  const { page, close } = await enter(options);
  const isPhone = Boolean(options.width);
  if (isPhone) await page.getByRole("button", { name: "New video" }).click();
  await choose(page, "Model", "kinora-b1");
  assert(await page.getByRole("switch", { name: "Draft first" }).isDisabled(), "kinora-b1 makes no drafts");
  await page.getByText("Not supported by kinora-b1. Use kinora-a1.").first().waitFor();
  await choose(page, "Model", "kinora-a1");
  await page.getByLabel("Prompt").fill("A paper boat crosses a pond");
  await small(page);
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "A paper boat", "completed");
  await tile(page, "A paper boat").locator(".tile-open").click();
  if (isPhone) await action(page, "edit").click();
  else await page.keyboard.press("e");
  assert(await page.getByRole("slider", { name: "Length" }).isDisabled(), "an edit has the length of its source");
  await page.getByLabel("Prompt").fill("The same at night, snow falls");
  if (isPhone) await page.getByRole("button", { name: "Make the edit" }).click();
  else await page.keyboard.press("Control+Enter");
  await reaches(page, "The same at night", "completed");
  await tile(page, "The same at night").locator(".tile-open").click();
  await page.getByText("Edit of a video").waitFor();
  await plays(page);
  await action(page, "again").click();
  await page.waitForFunction(() => document.querySelectorAll(".tile[data-status=completed]").length === 3);
  await plays(page);
  await close();
}

export const edit = () => change({});
export const edit_by_phone = () => change(PHONE);

/** A running video shows its preview and its progress, and a cancel ends it, after a question. */
export async function cancel() {
  const { page, close } = await enter();
  const question = page.getByRole("dialog", { name: "Cancel this video?" });
  let cancels = 0;
  page.on("request", (request) => (cancels += request.url().endsWith("/cancel") ? 1 : 0));
  await page.getByLabel("Prompt").fill("A ship crosses an ocean");
  await choose(page, "Size", "480p");
  await page.getByRole("slider", { name: "Length" }).press("End");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.locator(".tile[data-status=in_progress] img.is-preview:not([hidden])").waitFor();
  await page.locator(".frame-words", { hasText: /Making, \d+ %, about \d+ s left/ }).waitFor();
  await page.waitForFunction(() => /^\d+ % · Kinora Studio$/.test(document.title));
  await page.getByLabel("Prompt").fill("A second one that waits");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.locator(".frame-words", { hasText: "Next in line" }).waitFor();
  await page.waitForFunction(() => /^\d+ % of 2 videos · /.test(document.title));
  await page.getByRole("button", { name: "A second one" }).click();
  await action(page, "cancel").click();
  await question.getByText("will not be made").waitFor();
  await question.getByRole("button", { name: "Cancel video" }).click();
  await page.locator(".viewer[open] .status", { hasText: "Cancelled" }).waitFor();
  // What is being made comes first.
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("progressbar").waitFor();
  // The key that compares finished videos does nothing here.
  await page.keyboard.press("x");
  await page.keyboard.press("Delete");
  assert(await hasFocus(question.getByRole("button", { name: "Keep making it" })), "the question begins at what is lost");
  await page.keyboard.press("Enter");
  await question.waitFor({ state: "detached" });
  await page.getByRole("progressbar").waitFor();
  assert(cancels === 1, `${cancels} requests to cancel`);
  await page.keyboard.press("Backspace");
  await question.getByText(/is \d+ % done/).waitFor();
  await question.getByRole("button", { name: "Cancel video" }).click();
  await page.locator(".viewer[open] .status", { hasText: "Cancelled" }).waitFor();
  assert(cancels === 2, `${cancels} requests to cancel`);
  assert((await page.title()) === "Kinora Studio", await page.title());
  await close();
}

/** A service that dies and comes back: the page says so, goes on, and sends what was asked for meanwhile. */
export async function restart() {
  const { page, close } = await enter({ expected: /Failed to load resource|ERR_/ });
  await page.getByLabel("Prompt").fill("A train leaves a station");
  await small(page);
  await page.getByRole("slider", { name: "Length" }).press("End");
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "A train", "in_progress");
  await ask("kill");
  await page.getByText("Reconnecting…").waitFor();
  await page.getByRole("slider", { name: "Length" }).press("Home");
  await page.getByLabel("Prompt").fill("Sent while the service was away");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.getByText("Service away, trying again…").waitFor();
  await ask("start");
  await reaches(page, "Sent while", "completed");
  await reaches(page, "A train", "completed");
  await page.getByText("Reconnecting…").waitFor({ state: "hidden" });
  assert((await page.locator(".tile").count()) === 2, "a request was lost, or sent twice");
  await close();
}

/** A request whose answer is lost on the way is sent again under the same key, and accepted once. */
export async function lost_answer() {
  const { page, close } = await enter({ expected: /Failed to load resource|ERR_FAILED/ });
  let lost = 0;
  await page.route("**/v1/videos", async (route) => {
    if (route.request().method() !== "POST" || lost) return route.continue();
    lost += 1;
    const answer = await route.fetch();
    assert(answer.ok(), "the service did not accept it");
    return route.abort();
  });
  await page.getByLabel("Prompt").fill("A kite over a beach");
  await small(page);
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "A kite", "completed");
  await page.reload();
  await reaches(page, "A kite", "completed");
  assert(lost === 1 && (await page.locator(".tile").count()) === 1, "the request was accepted twice");
  await close();
}

/** An earlier request fills the form with all its settings, and a deleted video is gone. */
export async function reuse_and_delete() {
  const { page, close } = await enter();
  await page.getByLabel("Prompt").fill("A kite over a beach");
  await small(page);
  await page.getByText("More", { exact: true }).click();
  await page.getByLabel("Leave out").fill("rain");
  await page.getByRole("button", { name: "Generate" }).click();
  await reaches(page, "A kite", "completed");
  await page.getByLabel("Prompt").fill("Another scene");
  await page.getByLabel("Leave out").fill("");
  await tile(page, "A kite").locator(".tile-open").click();
  await page.keyboard.press("u");
  const values = await Promise.all(["Prompt", "Leave out", "Seed"].map((label) => page.getByLabel(label).inputValue()));
  assert(values[0] === "A kite over a beach" && values[1] === "rain" && /^\d+$/.test(values[2]), values.join());
  const chosen = await page
    .locator("input[type=radio]:checked")
    .evaluateAll((inputs) => inputs.map((input) => input.value));
  assert(chosen.join() === "kinora-a1,words,1:1,480p", chosen.join());
  await tile(page, "A kite").locator(".tile-open").click();
  await page.keyboard.press("Delete");
  await page.getByRole("dialog", { name: "Delete this video?" }).getByRole("button", { name: "Delete" }).click();
  await page.getByText("Your first video").waitFor();
  await page.getByLabel("Seed").fill("12x");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.getByText("A whole number from 0").first().waitFor();
  await close();
}
