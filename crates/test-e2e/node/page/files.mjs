// Pictures and sounds of the visitor's own: chosen, dropped, pasted and chosen again, and what the page says when one cannot
// be used.

import { action, assert, choose, enter, hasFocus, small, tile, user } from "./browser.mjs";
import { judge } from "./look.mjs";

/** So slow that the upload of a large picture can be seen, and stopped, and just not too slow for the service: bytes per second. */
const SLOW = 40_000;

/** A file as the browser's own dialog hands it over. */
const file = async (path, name, mimeType) => {
  const answer = await fetch(`${user.host}/${path}`);
  return { name, mimeType, buffer: Buffer.from(await answer.arrayBuffer()) };
};

const field = (page, name) => page.getByRole("textbox", { name, exact: true });
const row = (page, name) => page.locator(".url-row").filter({ has: field(page, name) });

/** Chooses a file with the button of a row, as the visitor does. */
async function pick(page, name, files) {
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: `Choose a file: ${name.toLowerCase()}`, exact: true }).click(),
  ]);
  await chooser.setFiles(files);
}

/** Waits until a row has the address of an uploaded file; returns it. */
async function uploaded(page, name) {
  const input = await field(page, name).elementHandle();
  await page.waitForFunction((one) => /\/v1\/files\/file_[0-9a-z]{26}\/content\?/.test(one.value), input);
  return input.evaluate((one) => one.value);
}

/** What the browser puts into an event of a drop, or of a paste. */
const transfer = (page, files) =>
  page.evaluateHandle((files) => {
    const made = new DataTransfer();
    for (const { name, mimeType, bytes } of files)
      made.items.add(new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], name, { type: mimeType }));
    return made;
  }, files.map(({ name, mimeType, buffer }) => ({ name, mimeType, bytes: buffer.toString("base64") })));

/** Whether the page does not scroll sideways. */
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

async function visit(options) {
  const { page, close } = await enter({ host: user.host, expected: /status of 400/, ...options });
  const where = options.width ? "by phone" : "wide";
  const photo = await file("photo.png", "My photo.png", "image/png");
  if (options.width) await page.getByRole("button", { name: "New video" }).click();
  await page.getByLabel("Prompt").fill("A kite over a beach");
  await small(page);
  await choose(page, "Pictures", "First frame");
  const first = row(page, "First frame");

  // A slow upload shows its picture and how far it is; it can be stopped.
  const network = await page.context().newCDPSession(page);
  const slow = (uploadThroughput) =>
    network.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput });
  await network.send("Network.enable");
  await slow(SLOW);
  await pick(page, "First frame", await file("large.png", "My photo.png", "image/png"));
  await first.getByText(/^Uploading My photo\.png, \d+ %$/).waitFor();
  await first.locator(".preview img").evaluate((image) => image.decode());
  await page.waitForFunction(() => Number(document.querySelector(".upload .bar").getAttribute("aria-valuenow")) > 0);
  assert(await hasFocus(first.getByRole("button", { name: "Cancel" })), "the focus left the field");
  assert(await fits(page), "the page scrolls sideways");
  await judge(page, `an upload, ${where}`);
  await page.getByRole("button", { name: "Generate" }).click();
  await first.getByText("This file is still on its way.").waitFor();
  await first.getByRole("button", { name: "Cancel" }).click();
  await first.locator(".preview .icon").waitFor();
  assert((await field(page, "First frame").inputValue()) === "", "a stopped upload leaves an address");
  await slow(-1);

  await pick(page, "First frame", photo);
  const url = await uploaded(page, "First frame");
  await first.getByText(/^My photo\.png, \d.*B, kept for 24 h\.$/).waitFor();
  const again = page.getByRole("button", { name: "Choose a file: first frame" });
  assert(await hasFocus(again), "the focus is lost after the upload");
  await page.reload();
  if (options.width) await page.getByRole("button", { name: "New video" }).click();
  await first.locator(".preview img").evaluate((image) => image.decode());
  assert((await field(page, "First frame").inputValue()) === url, "the reload has lost the file");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.locator(".tile[data-status=completed]").first().waitFor();
  return { page, close, photo, url };
}

export async function own_files_by_phone() {
  const { page, close } = await visit({ width: 360, height: 740 });
  await tile(page, "A kite").locator(".tile-open").click();
  await action(page, "go-on").click();
  const words = page.locator(".toast").filter({ hasText: "Starts from the last frame" });
  const generate = page.getByRole("button", { name: "Generate" });
  const [message, button] = [await words.boundingBox(), await generate.boundingBox()];
  assert(message.y + message.height <= button.y, "the message covers the button that it is about");
  await generate.click();
  await page.waitForFunction(() => document.querySelectorAll(".tile[data-status=completed]").length === 2);
  await close();
}

export async function own_files() {
  const { page, close, photo } = await visit({});
  await tile(page, "A kite").locator(".tile-open").click();
  await action(page, "download").waitFor();
  await page.keyboard.press("Escape");

  // One that was uploaded before.
  await choose(page, "Pictures", "References");
  await page.getByRole("button", { name: "Recent files: reference picture 1" }).click();
  const recent = page.getByRole("dialog", { name: "Recent files" });
  await recent.getByRole("button", { name: /^My photo\.png/ }).locator("img").evaluate((image) => image.decode());
  await judge(page, "recent files");
  await recent.getByRole("button", { name: /^My photo\.png/ }).click();
  await uploaded(page, "Reference picture 1");
  await row(page, "Reference picture 1").locator(".preview img").evaluate((image) => image.decode());

  // Several that are dropped get rows of their own; one is pasted.
  const other = await file("other.jpg", "other.jpg", "image/jpeg");
  const dropped = await transfer(page, [{ ...photo, name: "one.png" }, other]);
  const target = page.locator(".url-list").first();
  await target.dispatchEvent("dragover", { dataTransfer: dropped });
  await page.locator(".composer.is-over").waitFor();
  await target.dispatchEvent("drop", { dataTransfer: dropped });
  await uploaded(page, "Reference picture 2");
  await uploaded(page, "Reference picture 3");
  assert(!(await page.locator(".is-over").count()), "the form still waits for a drop");
  await page.getByRole("button", { name: "Remove reference picture 2" }).click();
  await row(page, "Reference picture 2").getByText(/^other\.jpg, /).waitFor();
  await page.getByLabel("Prompt").evaluate((area, clipboardData) => {
    area.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, await transfer(page, [other]));
  await uploaded(page, "Reference picture 3");

  await refusals(page, other);
  await page.getByRole("button", { name: "Add sound" }).click();
  await pick(page, "Reference sound 1", await file("tone.wav", "tone.wav", "audio/wav"));
  await uploaded(page, "Reference sound 1");
  await page.waitForFunction(() => document.querySelector(".preview-sound audio")?.duration > 1);
  await page.getByLabel("Prompt").fill("A whale under the stars");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.locator(".tile[data-status=completed]").filter({ hasText: "A whale" }).first().waitFor();
  await close();
}

/** What cannot be used is said at its field: by the page where it need not be sent, otherwise by the service. */
async function refusals(page, picture) {
  await page.getByRole("button", { name: "Add picture" }).click();
  const name = "Reference picture 4";
  const said = (words) => row(page, name).locator(".remark.is-error").getByText(words).waitFor();
  await pick(page, name, { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") });
  await said("“notes.txt” is not a picture.");
  // Made in the page: it is a lot to hand over.
  await row(page, name).evaluate((element) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([new Uint8Array(30_000_001)], "huge.png", { type: "image/png" }));
    element.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  });
  await said("“huge.png” is too large: at most 30 MB.");
  await pick(page, name, { ...picture, name: "torn.jpg", buffer: picture.buffer.subarray(0, 300) });
  await row(page, name).locator(".remark.is-error").filter({ hasNotText: "huge" }).waitFor();
  assert((await field(page, name).getAttribute("aria-invalid")) === "true", "a picture that was refused looks well");
  await page.getByRole("button", { name: `Remove ${name.toLowerCase()}` }).click();
}
