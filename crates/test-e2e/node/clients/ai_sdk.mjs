// Vercel's AI SDK with OpenRouter's provider, both unmodified, with Kinora as OpenRouter.

import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";

import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { experimental_generateVideo as generateVideo } from "ai";

const { KINORA_BASE_URL, KINORA_API_KEY, KINORA_PICTURE } = process.env;
const openrouter = createOpenRouter({ baseURL: KINORA_BASE_URL, apiKey: KINORA_API_KEY });
const model = openrouter.videoModel("kinora-b1", { pollIntervalMs: 300 });
// The SDK itself refuses to download from this machine; a service elsewhere needs no such function.
const download = async ({ url }) => {
  const response = await fetch(url);
  const data = new Uint8Array(await response.arrayBuffer());
  return { data, mediaType: response.headers.get("content-type") };
};
const generate = (more) =>
  generateVideo({ model, prompt: "A kite over a windy beach", maxRetries: 0, download, ...more });

async function make(more) {
  const { video, warnings } = await generate({
    resolution: "854x480",
    seed: 7,
    providerOptions: { openrouter: { seconds: 2, ...more } },
  });
  assert.deepEqual([video.mediaType, warnings], ["video/mp4", []]);
  assert.equal(Buffer.from(video.uint8Array).toString("latin1", 4, 8), "ftyp");
}

await make({});
// The provider has no call for files.
const form = new FormData();
form.append("file", await openAsBlob(KINORA_PICTURE), "first.png");
const headers = { Authorization: `Bearer ${KINORA_API_KEY}` };
const sent = await fetch(`${KINORA_BASE_URL}/files`, { method: "POST", headers, body: form });
const file = await sent.json();
await make({ first_frame: file.url });

for (const [field, ours] of [
  [{ duration: 5 }, /Use 'seconds'/],
  [{ prompt: { text: "A kite", image: new Uint8Array([137, 80, 78, 71]) } }, /Use 'first_frame'/],
  [{ aspectRatio: "5:4" }, /aspect_ratio/],
]) {
  await assert.rejects(generate(field), (error) => {
    assert.match(error.message, ours);
    return true;
  });
}

// A failed task is an error, and the answer in it says why.
const first_frame = "http://127.0.0.1:8009/first.png";
await assert.rejects(generate({ providerOptions: { openrouter: { first_frame } } }), (error) => {
  assert.match(error.responseBody, /reference_forbidden_address/);
  return true;
});

console.log("all passed");
