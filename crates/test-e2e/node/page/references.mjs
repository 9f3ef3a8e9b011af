// Pictures and sounds by their addresses: what the form shows of them, what the service says, and what becomes of them.

import { action, assert, choose, enter, hasFocus, small, tile, user } from "./browser.mjs";

/** Previews, what is wrong with an address before the submit and after it, sounds, and the picture's own shape. */
export async function references() {
  const { page, close } = await enter({ host: user.host, expected: /Failed to load resource/ });
  await page.getByLabel("Prompt").fill("A kite over a beach");
  await small(page);
  await choose(page, "Pictures", "References");
  const picture = (n) => page.getByLabel(`Reference picture ${n}`, { exact: true });
  const row = (n) => page.locator(".url-row").filter({ has: picture(n) });
  const add = page.getByRole("button", { name: "Add picture" });
  await picture(1).fill(`${user.host}/photo.png`);
  const [width, height] = await row(1)
    .locator(".preview img")
    .evaluate(async (image) => (await image.decode(), [image.naturalWidth, image.naturalHeight]));
  assert(width === 640 && height === 480, `the preview has ${width} × ${height}`);

  await add.click();
  assert(await hasFocus(picture(2)), "the focus is not in the new row");
  await picture(2).fill(`${user.host}/none.png`);
  await row(2).getByText("Your browser cannot show this address.").waitFor();
  await row(2).locator(".preview.is-broken").waitFor();
  await picture(2).fill(`${user.host}/small.png`);
  await row(2).getByText("200 × 200 is too small").waitFor();
  assert((await picture(2).getAttribute("aria-invalid")) === "true", "a picture that is too small looks well");
  await picture(2).fill("");
  await add.click();
  await picture(3).fill("kite.png");
  await row(3).getByText("Write a whole http or https address.").waitFor();

  // An empty row is not sent: what the service counts as the second is the third here.
  await page.getByRole("button", { name: "Generate" }).click();
  await row(3).locator(".remark.is-error").filter({ hasText: "not an absolute URL" }).waitFor();
  assert(await hasFocus(picture(3)), "the focus is not at what is wrong");
  assert(!(await row(1).locator(".remark.is-error:visible").count()), "another row is blamed");
  await page.getByRole("button", { name: "Remove reference picture 3" }).click();
  await page.getByRole("button", { name: "Remove reference picture 2" }).click();
  await sounds(page);
  await choose(page, "Shape", "As picture");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.locator(".tile[data-status=completed]").first().waitFor();
  await tile(page, "A kite").locator(".tile-open").click();
  await action(page, "download").waitFor();
  const facts = await page.locator(".viewer[open] .facts").innerText();
  assert(facts.includes("640 × 480"), `the video has not the shape of its picture: ${facts}`);
  await close();
}

/** A sound can be heard before it is sent; one that is not there is told. */
async function sounds(page) {
  const sound = page.getByLabel("Reference sound 1", { exact: true });
  await page.getByRole("button", { name: "Add sound" }).click();
  await sound.fill(`${user.host}/none.wav`);
  await page.locator(".url-sound").getByText("Your browser cannot show this address.").waitFor();
  await sound.fill(`${user.host}/tone.wav`);
  await page.waitForFunction(() => document.querySelector(".preview-sound audio")?.duration > 1);
  await page.locator(".url-sound").getByText("Your browser cannot").waitFor({ state: "hidden" });
}
