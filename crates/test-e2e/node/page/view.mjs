// Finished videos, large: what the viewer and the comparison show, and how they open.

import { action, assert, enter, plays } from "./browser.mjs";

const muted = (page) => page.locator(".viewer[open] video").evaluate((video) => video.muted);
const open = (page, n) => page.locator(".tile[data-status=completed] .tile-open").nth(n);

/** Sets the sound of the player as its own button does, and waits until the page has heard of it. */
const mute = (page, isMuted) =>
  page.locator(".viewer[open] video").evaluate(
    (video, isMuted) =>
      new Promise((resolve) => {
        video.addEventListener("volumechange", resolve, { once: true });
        video.muted = isMuted;
      }),
    isMuted,
  );

/** A player begins without sound until its user wants some; the page remembers it. Facts and actions have their place. */
export async function viewing() {
  const { page, close } = await enter();
  await open(page, 1).waitFor();
  await open(page, 0).click();
  await plays(page);
  assert(await muted(page), "a video is loud before anybody wants to hear it");
  await mute(page, false);
  await page.keyboard.press("ArrowRight");
  await plays(page);
  assert(!(await muted(page)), "the next video is silent again");
  // Its address opens the viewer again.
  await page.reload();
  await plays(page);
  assert(!(await muted(page)), "the choice is forgotten with the page");
  await mute(page, true);
  await page.keyboard.press("ArrowLeft");
  await plays(page);
  assert(await muted(page), "a video is loud although its user wants silence");

  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const id = await page.locator(".viewer[open] .fact-id span").textContent();
  await page.getByRole("button", { name: "Copy the ID" }).click();
  await page.getByText("Copied.").first().waitFor();
  assert((await page.evaluate(() => navigator.clipboard.readText())) === id, "another text is on the clipboard");
  const lines = await page.locator(".fact-id span").evaluate((span) => span.offsetHeight / span.getClientRects().length);
  assert(lines < 24, `the id is ${lines} pixels high`);
  const widths = await page
    .locator(".viewer[open] .actions .button:not(.is-primary)")
    .evaluateAll((buttons) => buttons.map((button) => Math.round(button.getBoundingClientRect().width)));
  assert(widths.length > 3 && new Set(widths).size === 1, `the actions have the widths ${widths}`);
  await close();
}

/** The comparison shows each video in its own shape, the time, and all facts without a scroll. */
export async function comparing() {
  const { page, close } = await enter();
  await open(page, 1).waitFor();
  await open(page, 0).click();
  await action(page, "compare").click();
  await open(page, 1).click();
  await page.waitForFunction(() => {
    const videos = [...document.querySelectorAll(".compare[open] video")];
    return videos.length === 2 && videos.every((video) => video.readyState >= 2);
  });
  const found = await page.locator(".compare[open]").evaluate((root) => {
    const shapes = [...root.querySelectorAll("video")].map((video) => {
      const box = video.parentElement.getBoundingClientRect();
      return box.width / box.height / (video.videoWidth / video.videoHeight);
    });
    const sides = root.querySelector(".compare-sides");
    return { shapes, hidden: sides.scrollHeight - sides.clientHeight, facts: root.querySelectorAll(".facts dd").length };
  });
  assert(found.facts > 8 && found.hidden <= 0, `${found.hidden} pixels of ${found.facts} facts are hidden`);
  assert(
    found.shapes.every((shape) => Math.abs(shape - 1) < 0.02),
    `the videos stand in other shapes: ${found.shapes}`,
  );
  await page.getByLabel("Time of the video").filter({ hasText: /^\d+\.\d \/ \d+\.\d s$/ }).waitFor();
  await close();
}

/** The picture grows from its tile into the viewer, and only where its user likes motion. */
export async function motion() {
  for (const still of [false, true]) {
    const { page, close } = await enter({ still });
    await open(page, 0).waitFor();
    await page.evaluate(() => {
      const start = document.startViewTransition.bind(document);
      globalThis.begun = [];
      document.startViewTransition = (change) => {
        const transition = start(change);
        globalThis.begun.push(transition.finished);
        return transition;
      };
    });
    await open(page, 0).click();
    await plays(page);
    const begun = await page.evaluate(async () => (await Promise.all(globalThis.begun)).length);
    assert(begun === (still ? 0 : 1), `${begun} transitions, although motion is ${still ? "not " : ""}wanted`);
    const named = await page.locator("[style*=view-transition-name]").count();
    assert(!named, `${named} elements keep the name of the transition`);
    await page.keyboard.press("Escape");
    await page.locator(".viewer[open]").waitFor({ state: "detached" });
    await close();
  }
}
