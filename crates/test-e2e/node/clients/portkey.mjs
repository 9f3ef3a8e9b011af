// Portkey's SDK for Node, unmodified, with Kinora as its gateway.

import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { setTimeout } from "node:timers/promises";

import { Portkey } from "portkey-ai";

const { KINORA_BASE_URL, KINORA_API_KEY, KINORA_PICTURE } = process.env;
const client = new Portkey({
  baseURL: KINORA_BASE_URL,
  provider: "openai",
  Authorization: `Bearer ${KINORA_API_KEY}`,
});

async function make(fields) {
  let video = await client.videos.create({
    model: "kinora-b1",
    seconds: "2",
    resolution: "480p",
    ...fields,
  });
  while (!["completed", "failed"].includes(video.status)) {
    await setTimeout(300);
    video = await client.videos.retrieve(video.id);
  }
  assert.equal(video.status, "completed", JSON.stringify(video.error));
  const film = await client.videos.downloadContent(video.id);
  assert.equal(Buffer.from(await film.arrayBuffer()).toString("latin1", 4, 8), "ftyp");
  return video.id;
}

const first = await make({ prompt: "A kite over a windy beach" });
const second = await make({
  prompt: "The kite rises",
  input_reference: createReadStream(KINORA_PICTURE),
});
const { data } = await client.videos.list({ limit: 2 });
assert.deepEqual(data.map(({ id }) => id), [second, first]);
assert.equal((await client.videos.delete(second)).deleted, true);

console.log("all passed");
