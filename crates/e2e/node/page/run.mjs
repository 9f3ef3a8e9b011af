// Runs one scenario of the Studio: `node run.mjs NAME`. The service and the key come by KINORA_PAGE and KINORA_API_KEY.

const FILES = ["scenarios", "current", "keys", "references", "operators", "view", "look", "pictures"];

const parts = await Promise.all(FILES.map((name) => import(`./${name}.mjs`)));
const scenario = Object.assign({}, ...parts)[process.argv[2]];
if (!scenario) throw new Error(`no scenario is called ${process.argv[2]}`);
try {
  await scenario();
  console.log("all passed");
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
