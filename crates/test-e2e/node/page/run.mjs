// Runs scenarios of the Studio, one after the other in one browser. Each comes as a line of JSON on the standard input:
// `{"scenario": NAME, "page": ADDRESS, "key": API_KEY, "host": ADDRESS}`. "passed" follows what a scenario says. The first
// one that fails ends the program.

import { lines, quit, user } from "./browser.mjs";

const FILES = ["scenarios", "current", "keys", "references", "files", "takes", "select", "operators", "view", "states", "look", "pictures"];

const parts = await Promise.all(FILES.map((name) => import(`./${name}.mjs`)));
const scenarios = Object.assign({}, ...parts);
try {
  for await (const line of lines) {
    const { scenario, ...its } = JSON.parse(line);
    if (!scenarios[scenario]) throw new Error(`no scenario is called ${scenario}`);
    Object.assign(user, its);
    await scenarios[scenario]();
    console.log("passed");
  }
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
await quit();
// Its standard input may still be open.
process.exit();
