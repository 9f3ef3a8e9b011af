// Pictures of the page, for docs/studio and for the eyes of whoever changes it: into the folder KINORA_PICTURES.

import { enter, open, plays } from "./browser.mjs";

const FOLDER = process.env.KINORA_PICTURES;
const shoot = (page, name) => page.screenshot({ path: `${FOLDER}/${name}.png` });

export async function screenshots() {
  for (const [width, height] of [
    [1280, 860],
    [390, 844],
  ]) {
    for (const dark of [false, true]) await screens({ width, height, dark }, `${width}-${dark ? "dark" : "light"}`);
  }
}

async function screens(options, name) {
  const door = await open(options);
  await shoot(door.page, `${name}-sign-in`);
  await door.close();
  const { page, close } = await enter(options);
  await page
    .locator(".tile[data-status=completed] img")
    .first()
    .evaluate((image) => image.decode());
  await page.waitForLoadState("networkidle");
  await shoot(page, `${name}-gallery`);
  if (options.width < 600) await page.getByRole("button", { name: "New video" }).click();
  await page.getByRole("group", { name: "Pictures", exact: true }).getByText("References").click();
  await shoot(page, `${name}-form`);
  if (options.width < 600) await page.getByRole("button", { name: "Close" }).click();
  await page.locator(".tile[data-status=completed] .tile-open").first().click();
  await plays(page);
  await shoot(page, `${name}-viewer`);
  await page.locator("[data-action=code]").click();
  await shoot(page, `${name}-code`);
  await page.keyboard.press("Escape");
  await page.locator("[data-action=compare]").click();
  await page.locator(".tile[data-status=completed] .tile-open").nth(1).click();
  await page.locator(".compare[open]").waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".compare video")].every((video) => video.readyState >= 2),
  );
  await shoot(page, `${name}-compare`);
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await shoot(page, `${name}-help`);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Service" }).click();
  await page.getByRole("table", { name: "Workers" }).waitFor();
  await shoot(page, `${name}-service`);
  await close();
}
