// OpenRouter's SDK for TypeScript, unmodified, with Kinora as its server.

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";

import { OpenRouter } from "@openrouter/sdk";

const { KINORA_BASE_URL, KINORA_API_KEY } = process.env;
const client = new OpenRouter({ apiKey: KINORA_API_KEY, serverURL: KINORA_BASE_URL });
const videos = client.videoGeneration;
const generate = (more) =>
  videos.generate({
    videoGenerationRequest: { model: "kinora-b1", prompt: "A kite over a windy beach", ...more },
  });

async function finished(job) {
  while (!["completed", "failed"].includes(job.status)) {
    await setTimeout(300);
    job = await videos.getGeneration({ jobId: job.id });
  }
  return job;
}

const job = await generate({ resolution: "480p", seed: 7 });
assert.ok(job.pollingUrl.endsWith(`/v1/videos/${job.id}`), job.pollingUrl);
const done = await finished(job);
assert.deepEqual([done.status, done.unsignedUrls.length], ["completed", 1]);
const bytes = async (response) => Buffer.from(await response.arrayBuffer());
const film = await bytes(new Response(await videos.getVideoContent({ jobId: done.id })));
assert.equal(film.toString("latin1", 4, 8), "ftyp");
// As it documents: the addresses take its key. Kinora's need none.
const headers = { Authorization: `Bearer ${KINORA_API_KEY}` };
assert.deepEqual(await bytes(await fetch(done.unsignedUrls[0], { headers })), film);

// Its own name for the length is refused before there is a task, with the name to use.
await assert.rejects(generate({ duration: 5 }), (error) => {
  assert.equal(error.statusCode, 400);
  assert.match(error.message, /Use 'seconds'/);
  return true;
});

// A failed task says why.
const running = await generate({ size: "1920x1080" });
await fetch(`${running.pollingUrl}/cancel`, { method: "POST", headers });
const failed = await finished(running);
assert.equal(failed.status, "failed");
assert.match(failed.error, /cancel/);

console.log("all passed");
