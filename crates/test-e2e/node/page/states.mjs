// States of the page that seldom arise, and must be right all the same: a form that was left, a long prompt, a long
// queue, forced colours.

import { action, assert, choose, enter, hasFocus, open, signIn, tile, user } from "./browser.mjs";
import { judge } from "./look.mjs";

const door = (page) => page.getByLabel("API key");
const prompt = (page) => page.getByLabel("Prompt", { exact: true });

/** Nothing that is right looks wrong, and what was typed is there after a reload and after a new sign-in. */
export async function form_kept() {
  const { page, close } = await enter({ expected: /status of 401/ });
  await page.getByText("More", { exact: true }).click();
  const wrong = page.locator(".composer [aria-invalid=true], .composer .is-error");
  assert(!(await wrong.count()), "a fresh form has something wrong");
  await page.getByLabel("Seed").fill("x");
  await wrong.first().waitFor();
  await page.getByLabel("Seed").fill("7");
  assert(!(await wrong.count()), "a seed that was mended stays wrong");
  await prompt(page).fill("A kite over a beach");
  await page.reload();
  assert((await prompt(page).inputValue()) === "A kite over a beach", "the reload has emptied the form");
  assert((await page.getByLabel("Seed").inputValue()) === "7", "the seed is gone");
  const direction = await prompt(page).evaluate((area) => {
    area.value = "بالون";
    return getComputedStyle(area).direction;
  });
  assert(direction === "rtl", `Arabic is typed ${direction}`);

  // The key is revoked.
  await page.route("**/v1/**", (route) => route.fulfill({ status: 401, json: { error: { code: "invalid_api_key" } } }));
  await page.reload();
  await door(page).waitFor();
  await page.unroute("**/v1/**");
  await signIn(page);
  assert((await prompt(page).inputValue()) === "A kite over a beach", "the sign-in has emptied the form");
  await page.getByRole("button", { name: "Sign out" }).click();
  await door(page).waitFor();
  assert((await page.evaluate(() => sessionStorage.length)) === 0, "something stays after the sign-out");
  await close();
}

/** Who stays signed in is so in other tabs too, each with a form of its own, until the sign-out. */
export async function stays() {
  const { page, close } = await open();
  await page.getByLabel("Stay signed in on this browser").check();
  await signIn(page);
  await prompt(page).fill("A kite over a beach");
  const other = await page.context().newPage();
  await other.goto(page.url());
  assert((await prompt(other).inputValue()) === "", "another tab begins with the form of this one");
  await page.reload();
  assert((await prompt(page).inputValue()) === "A kite over a beach", "the other tab has emptied the form");
  await page.getByRole("button", { name: "Sign out" }).click();
  await door(page).waitFor();
  assert(!(await page.evaluate(() => localStorage.getItem("kinora.key"))), "the key stays after the sign-out");
  await other.reload();
  await door(other).waitFor();
  await close();
}

/** The link of a start signs in once, and leaves nothing of itself; another use of it says what to do. */
export async function by_link() {
  const { page, close } = await open({ host: "file://" });
  // What `--open` gives to the browser.
  await page.goto(user.file);
  await page.getByRole("button", { name: "Generate" }).waitFor();
  assert(page.url() === `${user.page}/`, `the address is ${page.url()}`);
  assert(!(await page.evaluate(() => localStorage.getItem("kinora.key"))), "the key outlives the tab");
  await page.reload();
  await page.getByRole("button", { name: "Generate" }).waitFor();
  // A link that is no use takes nothing from who is signed in.
  await page.goto(user.link);
  await page.waitForURL(`${user.page}/`);
  await page.getByRole("button", { name: "Generate" }).waitFor();
  await close();

  const other = await open({ path: user.link.slice(user.page.length) });
  const notice = other.page.locator(".sign-in .notice");
  await notice.getByText("used already").waitFor();
  assert(await hasFocus(door(other.page)), "the way on does not begin at the key");
  assert(other.page.url() === `${user.page}/`, `the address is ${other.page.url()}`);
  // Pasted into the tab of the page.
  await other.page.evaluate(() => (location.hash = "sign-in=0123"));
  await notice.getByText("not the one").waitFor();
  await judge(other.page, "a link that does not work");
  await other.close();
}

/** A prompt of 4,000 characters leaves its actions in sight, and can be read and copied as a whole. */
export async function long_prompt() {
  for (const width of [1280, 390]) {
    const { page, close } = await enter({ width, height: 800 });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await tile(page, "A long story").locator(".tile-open").click();
    const title = page.locator(".viewer[open] .side-prompt");
    const all = page.getByRole("button", { name: "Show all" });
    await all.waitFor();
    const top = () => action(page, "download").evaluate((button) => button.getBoundingClientRect().top);
    assert((await top()) < 800, `Download begins at ${await top()}`);
    await judge(page, `a long prompt, ${width}`);
    await all.click();
    const less = page.getByRole("button", { name: "Show less" });
    assert((await less.getAttribute("aria-expanded")) === "true", "the button does not say that all is shown");
    assert(await title.evaluate((text) => text.scrollHeight <= text.clientHeight), "not all is shown");
    await less.click();
    await all.waitFor();
    await page.getByRole("button", { name: "Copy prompt" }).click();
    await page.getByText("Copied.").first().waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert(copied === (await title.textContent()) && copied.length > 3900, `${copied.length} characters were copied`);
    await page.keyboard.press("Escape");
    await tile(page, "A short one").locator(".tile-open").click();
    await action(page, "download").waitFor();
    assert(!(await page.getByRole("button", { name: "Show all" }).count()), "a short prompt can be unfolded");
    await page.locator(".viewer[open] .badge", { hasText: "sketch" }).waitFor();
    await close();
  }
}

/** Many tasks that wait are one strip, behind what is being made; each can be seen and cancelled, and all at once. */
export async function queue() {
  const { page, close } = await enter();
  const strip = page.getByRole("region", { name: "Waiting" });
  await strip.getByText("6 waiting, next: Number 1").waitFor();
  assert((await page.locator(".tile").count()) === 1, "waiting tasks are tiles too");
  await page.locator(".tile[data-status=in_progress]").waitFor();
  await strip.getByRole("button", { name: "Show them" }).click();
  const lines = strip.getByRole("listitem");
  assert((await lines.count()) === 6, `${await lines.count()} lines`);
  await judge(page, "a queue");
  await strip.getByRole("button", { name: "Cancel: Number 2" }).click();
  await strip.getByText("5 waiting").waitFor();
  await strip.getByRole("button", { name: "Number 3", exact: true }).click();
  await action(page, "cancel").waitFor();
  await page.keyboard.press("Escape");
  await strip.getByRole("button", { name: "Cancel all" }).click();
  const question = page.getByRole("dialog", { name: "Cancel 5 waiting videos?" });
  assert(await hasFocus(question.getByRole("button", { name: "Keep them" })), "the question begins at what is lost");
  await question.getByRole("button", { name: "Cancel all" }).click();
  await strip.waitFor({ state: "hidden" });
  await page.waitForFunction(() => document.querySelectorAll(".tile[data-status=failed]").length === 6);
  await page.locator(".tile").first().and(page.locator("[data-status=in_progress]")).waitFor();
  await close();
}

/** With forced colours, what is chosen still looks so. */
export async function forced_colours() {
  for (const width of [1280, 390]) {
    const { page, close } = await enter({ width });
    await page.emulateMedia({ forcedColors: "active" });
    if (width < 600) await page.getByRole("button", { name: "New video" }).click();
    await choose(page, "Size", "480p");
    const colour = (locator) => locator.first().evaluate((face) => getComputedStyle(face).backgroundColor);
    for (const [chosen, other] of [
      [".choice input:checked + .choice-face", ".choice input:not(:checked):enabled + .choice-face"],
      [".tab[aria-pressed=true]", ".tab[aria-pressed=false]"],
      [".switch:checked", ".switch:not(:checked)"],
    ]) {
      const [a, b] = [await colour(page.locator(chosen)), await colour(page.locator(other))];
      assert(a !== b, `${chosen} is ${a}, as the others are`);
      const words = await page.locator(chosen).first().evaluate((face) => getComputedStyle(face).color);
      assert(a !== words, `the words on ${chosen} are ${a} too`);
    }
    const track = await page.locator(".range").first().evaluate((range) => getComputedStyle(range).forcedColorAdjust);
    assert(track === "none", "the slider loses its track");
    await judge(page, `forced colours, ${width}`);
    await close();
  }
}
