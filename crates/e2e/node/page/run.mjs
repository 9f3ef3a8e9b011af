// Runs one scenario of the Studio: `node run.mjs NAME`. The service and the key come by KINORA_PAGE and KINORA_API_KEY.

import * as looks from "./look.mjs";
import * as pictures from "./pictures.mjs";
import * as scenarios from "./scenarios.mjs";

const scenario = { ...scenarios, ...looks, ...pictures }[process.argv[2]];
if (!scenario) throw new Error(`no scenario is called ${process.argv[2]}`);
try {
  await scenario();
  console.log("all passed");
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
