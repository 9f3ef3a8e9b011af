// TanStack AI with its OpenRouter adapter, both unmodified, with Kinora as OpenRouter.

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";

import { generateVideo, getVideoJobStatus } from "@tanstack/ai";
import { createOpenRouterVideo } from "@tanstack/ai-openrouter";

const { KINORA_BASE_URL, KINORA_API_KEY } = process.env;
const options = { baseURL: KINORA_BASE_URL };
const adapter = createOpenRouterVideo("kinora-b1", KINORA_API_KEY, options);
const modelOptions = { seed: 7, resolution: "480p" };

const prompt = "A kite over a windy beach";
const { jobId } = await generateVideo({ adapter, prompt, modelOptions });
let job;
do {
  await setTimeout(300);
  job = await getVideoJobStatus({ adapter, jobId });
} while (["pending", "processing"].includes(job.status));
assert.equal(job.status, "completed", job.error);
// It downloads the clip itself, and hands it over as a `data:` URL.
const film = Buffer.from(await (await fetch(job.url)).arrayBuffer());
assert.equal(film.toString("latin1", 4, 8), "ftyp");

await assert.rejects(generateVideo({ adapter, prompt, duration: 5 }), /Use 'seconds'/);

console.log("all passed");
