// What operators see of the whole service.

import { ask, assert, enter } from "./browser.mjs";

/** An operator sees queue, running tasks and workers of all projects. */
export async function operations() {
  const { page, close } = await enter();
  await page.getByRole("button", { name: "Service" }).click();
  const dialog = page.getByRole("dialog", { name: "Service" });
  await dialog.getByText("0 waiting, 0 running.").waitFor();
  await ask("work");
  await dialog.getByText("1 waiting, 1 running.").waitFor();
  const cells = (name) => dialog.getByRole("table", { name }).getByRole("row").nth(1).innerText();
  const queue = await dialog.getByRole("table", { name: "Queue" }).innerText();
  assert(queue.includes("kinora-a1") && queue.includes("kinora-b1"), queue);
  const running = await cells("Running");
  assert(running.includes("kinora-a1") && /\d+ %/.test(running), running);
  const worker = await cells("Workers");
  assert(worker.includes("storyboard/") && worker.includes("1/1") && worker.includes("s ago"), worker);
  assert(!(await dialog.getByRole("heading", { name: "Devices" }).isVisible()), "devices are shown, and none is shared");
  assert(!(await dialog.getByRole("heading", { name: "Pauses" }).isVisible()), "a key that may not pause is offered to");
  await moves(page, dialog);
  await ask("cancel");
  await dialog.getByText("No task runs.").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await close();
}

/** An operator who may pauses a model and resumes it; each click shows its effect. */
export async function pauses() {
  const { page, close } = await enter();
  await page.getByRole("button", { name: "Service" }).click();
  const dialog = page.getByRole("dialog", { name: "Service" });
  const row = dialog.getByRole("table", { name: "Pauses" }).getByRole("row").filter({ hasText: "kinora-b1" });
  await row.getByText("not paused").waitFor();
  await dialog.getByRole("button", { name: "Pause kinora-b1" }).click();
  await row.getByText(/^paused for/).waitFor();
  await ask("paused");
  await dialog.getByRole("button", { name: "Resume kinora-b1" }).click();
  await row.getByText("not paused").waitFor();
  await ask("resumed");
  await dialog.getByRole("button", { name: "Pause all models" }).waitFor();
  await close();
}

/** A device that engines share: what is loaded, what it does, its memory, and how often engines replaced each other. */
export async function devices() {
  const { page, close } = await enter();
  await page.getByRole("button", { name: "Service" }).click();
  const dialog = page.getByRole("dialog", { name: "Service" });
  const row = dialog.getByRole("table", { name: "Devices" }).getByRole("row").nth(1);
  const shows = async (memory, films, sketches, swaps) => {
    await row.filter({ hasText: `${memory} of 40 GB` }).waitFor();
    const words = (await row.innerText()).replaceAll("\u00a0", " ");
    const wanted = ["gpu0", "films: films-480p, films-720p", films, "sketches", sketches];
    assert(wanted.every((one) => words.includes(one)) && words.endsWith(`\t${swaps}`), words);
    const filled = await row.locator(".bar-fill").evaluate((bar) => bar.style.getPropertyValue("--progress"));
    assert(Number(filled) === parseFloat(memory) / 40, filled);
  };
  await shows("0 MB", "not loaded, 30 GB", "not loaded, 30 GB", 0);
  await ask("load");
  await row.getByText("working on 1 task, 30 GB").waitFor();
  await shows("30 GB", "working on 1 task, 30 GB", "not loaded, 30 GB", 0);
  await ask("swap");
  await row.getByText("loaded, idle, 30 GB").waitFor();
  await shows("30 GB", "not loaded, 30 GB", "loaded, idle, 30 GB", 1);
  await close();
}

/** A row stays the same while its bar moves, and so does a selection in it. */
async function moves(page, dialog) {
  const row = dialog.getByRole("table", { name: "Running" }).getByRole("row").nth(1);
  const kept = await row.evaluateHandle((row) => {
    getSelection().selectAllChildren(row.cells[0]);
    return row;
  });
  const progress = (before) => {
    const now = document.querySelector(".service .bar-fill").style.getPropertyValue("--progress");
    return now !== before && now;
  };
  const before = await page.evaluate(progress);
  await page.waitForFunction(progress, before);
  assert(await kept.evaluate((row) => row.isConnected), "the rows are made anew");
  const selected = await page.evaluate(() => getSelection().toString());
  assert(selected.includes("kinora-a1"), `the selection is lost: ${selected}`);
}
