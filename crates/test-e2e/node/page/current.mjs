// How the Studio stays current where no event helps: its own clock, ends before its stream, deletions by others.

import { action, ask, assert, enter, isLive, open, signIn, tile } from "./browser.mjs";

const MINUTE_MS = 61_000;

/** A finished video grows old while the page is open. */
export async function ages() {
  const { page, close } = await enter({ clock: true });
  const facts = tile(page, "A paper boat").locator(".tile-facts");
  await facts.waitFor();
  await page.clock.fastForward(MINUTE_MS);
  await facts.filter({ hasText: /[1-9]\d* min ago/ }).waitFor();
  const name = await tile(page, "A paper boat").locator(".tile-open").textContent();
  assert(/min ago/.test(name), name);
  await close();
}

/** A task that ends after the first look and before the stream is open does not stay unfinished. */
export async function missed_end() {
  const { page, close } = await open({ clock: true });
  await ask("begin");
  let isHeld = false;
  await page.route("**/v1/videos/events", async (route) => {
    if (!isHeld) {
      isHeld = true;
      await page.locator(".tile[data-status=in_progress]").waitFor();
      await ask("end");
      // No later look may help.
      await page.clock.pauseAt(Date.now() + MINUTE_MS / 4);
    }
    await route.continue();
  });
  await signIn(page);
  await page.locator(".tile[data-status=failed]").waitFor();
  await close();
}

/** What somebody else deletes goes away here too, also from the viewer, also the newest. */
export async function deleted_elsewhere() {
  const { page, close } = await enter({ clock: true });
  await isLive(page);
  await page.waitForFunction(() => document.querySelectorAll(".tile").length === 2);
  await page.locator(".tile .tile-open").first().click();
  await action(page, "download").waitFor();
  await ask("delete");
  await page.clock.fastForward(MINUTE_MS);
  await page.waitForFunction(() => document.querySelectorAll(".tile").length === 1);
  await page.locator(".viewer[open]").waitFor({ state: "detached" });
  await close();
}

/** The keys of the form are those of the visitor's keyboard. */
export async function apple() {
  const { page, close } = await enter({ platform: "MacIntel" });
  await page.locator(".composer kbd", { hasText: "⌘ ↵" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).getByText("⌘ Enter").waitFor();
  await page.keyboard.press("Escape");
  await page.getByLabel("Prompt").fill("A kite over a beach");
  await page.keyboard.press("Meta+Enter");
  await tile(page, "A kite").waitFor();
  await close();
}
