// The gallery by its filters, its search and its keys, and what it says of tasks that failed.

import { assert, ask, enter, hasFocus, isLive, tile } from "./browser.mjs";

const count = (page, number) =>
  page.waitForFunction((wanted) => document.querySelectorAll(".tile").length === wanted, number);
const open = (page, n) => page.locator(".tile-open").nth(n);

/** Filters and the search show what they say, tell when there is nothing, and lead back. */
export async function filters() {
  const { page, close } = await enter();
  await count(page, 3);
  const bar = page.getByRole("group", { name: "Filter" });
  const filter = (name) => bar.getByRole("button", { name: new RegExp(`^${name}`) });
  for (const [name, status, number] of [
    ["Failed", "failed", 1],
    ["Done", "completed", 2],
  ]) {
    await filter(name).click();
    await count(page, number);
    assert((await filter(name).getAttribute("aria-pressed")) === "true", `${name} does not look chosen`);
    assert((await page.locator(`.tile[data-status=${status}]`).count()) === number, `${name} shows others`);
    assert((await filter(name).innerText()).includes(String(number)), `${name} has another count`);
  }
  assert(!(await filter("Drafts").count()), "a filter without tasks is offered");
  await page.keyboard.press("/");
  await page.keyboard.type("lighthouse");
  await count(page, 1);
  await page.keyboard.type(" zebra");
  await page.getByRole("heading", { name: "Nothing found" }).waitFor();
  await page.getByText("Among the finished videos, none").waitFor();
  await page.getByRole("button", { name: "Clear search and filter" }).click();
  await count(page, 3);
  assert(await hasFocus(page.getByLabel("Search")), "the focus is lost with the button");
  assert((await filter("All").getAttribute("aria-pressed")) === "true", "the filter is not cleared");
  await close();
}

/** Single keys lead to the form and the search, arrows from tile to tile; all single keys can be turned off. */
export async function keys() {
  const { page, close } = await enter();
  await count(page, 3);
  const [prompt, search] = [page.getByLabel("Prompt"), page.getByLabel("Search")];
  await page.keyboard.press("n");
  assert(await hasFocus(prompt), "n does not lead to the form");
  await page.keyboard.type("n/?");
  assert((await prompt.inputValue()) === "n/?", "keys are taken from who types");
  await prompt.fill("");
  await open(page, 0).focus();
  await page.keyboard.press("/");
  assert(await hasFocus(search), "/ does not lead to the search");
  await open(page, 0).focus();
  for (const [key, to] of [
    ["ArrowRight", 1],
    ["ArrowLeft", 0],
    ["ArrowLeft", 0],
    // Two in a row: the third is below the first.
    ["ArrowDown", 2],
    ["ArrowUp", 0],
    ["End", 2],
    ["Home", 0],
  ]) {
    await page.keyboard.press(key);
    assert(await hasFocus(open(page, to)), `${key} does not lead to tile ${to}`);
  }
  await page.keyboard.press("?");
  await page.getByRole("switch", { name: "Single keys" }).uncheck();
  await page.keyboard.press("Escape");
  await open(page, 0).focus();
  for (const key of ["n", "/", "?"]) {
    await page.keyboard.press(key);
    assert(await hasFocus(open(page, 0)), `${key} works although it is off`);
  }
  await tile(page, "A paper boat").locator(".tile-open").click();
  await page.locator(".viewer[open]").waitFor();
  await page.keyboard.press("c");
  assert((await page.locator("dialog[open]").count()) === 1, "a key of the viewer works although it is off");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Keyboard help" }).click();
  await page.getByRole("switch", { name: "Single keys" }).check();
  await page.keyboard.press("Escape");
  await page.keyboard.press("n");
  assert(await hasFocus(prompt), "the keys stay off");
  await close();
}

/** A failure says why: at once in a message, then in the tile, and wholly in the viewer. */
export async function failures() {
  // The clock stands still, so that the message stays.
  const { page, close } = await enter({ clock: true });
  await isLive(page);
  await page.clock.pauseAt(Date.now() + 1000);
  await ask("fail");
  const message = page.locator(".toast.is-error");
  await message.getByText(/^Failed: A picture of nothing/).waitFor();
  const [said, usual] = await message.evaluate((line) => {
    const other = document.createElement("p");
    other.className = "toast";
    line.after(other);
    const colours = [line, other].map((one) => getComputedStyle(one).backgroundColor);
    other.remove();
    return colours;
  });
  assert(said !== usual, `a failure looks like any message: ${said}`);
  const failed = tile(page, "A picture of nothing");
  const reason = (await failed.locator(".frame-empty").innerText()).trim();
  assert(reason.startsWith("The first picture cannot be used: "), `the tile says ${reason}`);
  const name = await failed.locator(".tile-open").textContent();
  assert(name.includes(reason.slice(0, 20)), `screen readers hear ${name}`);
  await failed.locator(".tile-open").click();
  const notice = page.locator(".viewer[open] .notice.is-error");
  assert((await notice.innerText()).includes(reason.replace(/…$/, "")), "the viewer says something else");
  assert((await notice.locator(".hint").innerText()).includes("first_frame"), "the field is not named");
  await close();
}
