// TanStack AI with its OpenAI adapter, both unmodified, with Kinora as OpenAI. It knows Sora's sizes and
// lengths alone, so the clips have those.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";

import { generateVideo, getVideoJobStatus } from "@tanstack/ai";
import { createOpenaiVideo } from "@tanstack/ai-openai";

const { KINORA_BASE_URL, KINORA_API_KEY, KINORA_PICTURE } = process.env;
const adapter = createOpenaiVideo("kinora-b1", KINORA_API_KEY, { baseURL: KINORA_BASE_URL });

async function make(prompt) {
  const { jobId } = await generateVideo({ adapter, prompt, size: "1280x720", duration: 4 });
  for (;;) {
    const job = await getVideoJobStatus({ adapter, jobId });
    if (job.status === "failed") {
      throw new Error(job.error);
    }
    if (job.status === "completed") {
      const film = Buffer.from(await (await fetch(job.url)).arrayBuffer());
      assert.equal(film.toString("latin1", 4, 8), "ftyp");
      return;
    }
    await setTimeout(300);
  }
}

await make("A kite over a windy beach");
const value = (await readFile(KINORA_PICTURE)).toString("base64");
await make([
  { type: "text", content: "The kite rises" },
  { type: "image", source: { type: "data", value, mimeType: "image/png" } },
]);

console.log("all passed");
