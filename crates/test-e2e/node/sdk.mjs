// The official OpenAI SDK for Node, unmodified, against a running Kinora.
//
// Every entry of `checks` is one check; the first failure ends the run. It refuses to patch the
// SDK: requests are only counted, by the `fetch` that its options take.

import assert from "node:assert/strict";
import { readFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

import OpenAI, { toFile } from "openai";

const PROMPT = "A kite over a windy beach";
const NO_TASK = "video_01k3v8r2n8p5c1w9g7d4x6m2ta";
const { KINORA_BASE_URL, KINORA_API_KEY, KINORA_READ_KEY, KINORA_NARROW_KEY } = process.env;

let requests = 0;
const client = new OpenAI({
  baseURL: KINORA_BASE_URL,
  apiKey: KINORA_API_KEY,
  fetch: (url, init) => {
    requests += 1;
    return fetch(url, init);
  },
});

const small = (more = {}) => ({
  model: "kinora-b1",
  prompt: PROMPT,
  seconds: "2",
  resolution: "480p",
  ...more,
});

// The SDK for Node has no polling helper: this is what its users write, with the server's hint.
async function poll(id) {
  for (;;) {
    const { data: video, response } = await client.videos.retrieve(id).withResponse();
    const finished = video.status === "completed" || video.status === "failed";
    const hint = response.headers.get("openai-poll-after-ms");
    assert.equal(hint === null, finished);
    if (finished) {
      return video;
    }
    await setTimeout(Math.min(Number(hint), 500));
  }
}

// Calls, and returns the error that the SDK made of the refusal.
async function refused(kind, call, status, code) {
  let error;
  try {
    await call();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `not refused: ${code}`);
  assert.equal(error.constructor, kind, String(error));
  assert.deepEqual([error.status, error.code], [status, code], String(error));
  assert.match(error.requestID, /^req_/);
  assert.ok(error.type);
  return error;
}

const checks = {
  async "create and poll"() {
    const fields = { model: "kinora-a1", prompt: PROMPT, seconds: "2", size: "854x480" };
    const { id } = await client.videos.create(fields);
    const video = await poll(id);
    assert.deepEqual([video.object, video.status, video.progress], ["video", "completed", 100]);
    assert.deepEqual([video.seconds, video.size], ["2", "854x480"]);
    assert.equal(video.result_url, video.url);
    const bytes = Buffer.from(await (await fetch(video.result_url)).arrayBuffer());
    assert.equal(bytes.toString("latin1", 4, 8), "ftyp");
    assert.match((await client.videos.retrieve(video.id))._request_id, /^req_/);
  },

  async "download of all variants"() {
    const { id } = await client.videos.create(small({ model: "kinora-a1" }));
    const video = await poll(id);
    const folder = await mkdtemp(join(tmpdir(), "kinora-sdk-"));
    try {
      for (const [variant, magic, at] of [
        ["video", "ftyp", 4],
        ["thumbnail", "WEBP", 8],
        ["spritesheet", "\xff\xd8\xff", 0],
        ["last_frame", "\xff\xd8\xff", 0],
      ]) {
        const path = join(folder, variant);
        const response = await client.videos.downloadContent(video.id, { variant });
        await writeFile(path, response.body);
        const bytes = await readFile(path);
        assert.equal(bytes.toString("latin1", at, at + magic.length), magic);
        assert.equal(bytes.length, Number(response.headers.get("content-length")));
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  },

  async "further fields arrive typed"() {
    const metadata = { order: "17", note: "two words" };
    const fields = { model: "kinora-a1", seed: 77, generate_audio: false, metadata };
    const video = await client.videos.create(small(fields));
    assert.equal(video.seed, 77);
    assert.deepEqual(video.metadata, metadata);
    const done = await poll(video.id);
    assert.equal(done.has_audio, false);
  },

  async "lists page by themselves"() {
    const made = [];
    for (let count = 0; count < 5; count += 1) {
      made.push((await client.videos.create(small())).id);
    }
    const newestFirst = [];
    for await (const video of client.videos.list({ limit: 2 })) {
      newestFirst.push(video.id);
    }
    assert.deepEqual(newestFirst.slice(0, 5), made.toReversed());
    const oldestFirst = [];
    for await (const video of client.videos.list({ limit: 2, order: "asc" })) {
      oldestFirst.push(video.id);
    }
    assert.deepEqual(oldestFirst, newestFirst.toReversed());
    for (const id of made) {
      const deleted = await client.videos.delete(id);
      assert.deepEqual([deleted.id, deleted.deleted], [id, true]);
    }
  },

  async "bad request"() {
    const unknown = () => client.videos.create(small({ model: "sora-9" }));
    const error = await refused(OpenAI.BadRequestError, unknown, 400, "model_not_found");
    assert.equal(error.param, "model");
    const long = () => client.videos.create(small({ seconds: "99" }));
    const range = await refused(OpenAI.BadRequestError, long, 400, "invalid_value");
    assert.equal(range.param, "seconds");
    const video = { id: NO_TASK };
    const extend = () => client.videos.extend({ video, prompt: PROMPT, seconds: "4" });
    await refused(OpenAI.BadRequestError, extend, 400, "unsupported_operation");
    const file = await toFile(Buffer.from("\x89PNG", "latin1"), "a.png", { type: "image/png" });
    const upload = () => client.videos.create(small({ input_reference: file }));
    await refused(OpenAI.BadRequestError, upload, 400, "file_upload_unsupported");
  },

  async files() {
    const source = await poll((await client.videos.create(small())).id);
    const thumbnail = await client.videos.downloadContent(source.id, { variant: "thumbnail" });
    const picture = Buffer.from(await thumbnail.arrayBuffer());
    const file = await client.files.create({
      file: await toFile(picture, "day.webp", { type: "image/webp" }),
      purpose: "vision",
      expires_after: { anchor: "created_at", seconds: 3600 },
    });
    assert.deepEqual([file.object, file.status, file.bytes], ["file", "processed", picture.length]);
    assert.deepEqual([file.filename, file.purpose], ["day.webp", "vision"]);
    assert.equal(file.expires_at, file.created_at + 3600);
    const other = await client.files.create({
      file: await toFile(picture, "b.webp"),
      purpose: "user_data",
    });
    const listed = [];
    for await (const one of client.files.list({ limit: 1 })) {
      listed.push(one.id);
    }
    assert.deepEqual(listed, [other.id, file.id]);
    assert.deepEqual(await client.files.retrieve(file.id), file);
    const content = await client.files.content(file.id);
    assert.deepEqual(Buffer.from(await content.arrayBuffer()), picture);
    const byAddress = await client.videos.create(small({ first_frame: file.url }));
    const byId = { file_id: file.id };
    const byObject = await client.videos.create(small({ input_reference: byId }));
    const deleted = await client.files.delete(file.id);
    assert.deepEqual([deleted.id, deleted.deleted], [file.id, true]);
    for (const video of [byAddress, byObject]) {
      assert.equal((await poll(video.id)).status, "completed");
    }
    for (const call of ["retrieve", "content", "delete"]) {
      const ask = () => client.files[call](file.id);
      await refused(OpenAI.NotFoundError, ask, 404, "file_not_found");
    }
  },

  async authentication() {
    const stranger = client.withOptions({ apiKey: "sk-wrong" });
    const list = () => stranger.videos.list();
    await refused(OpenAI.AuthenticationError, list, 401, "invalid_api_key");
    const reader = client.withOptions({ apiKey: KINORA_READ_KEY });
    const create = () => reader.videos.create(small());
    await refused(OpenAI.PermissionDeniedError, create, 403, "scope_missing");
  },

  async "not found"() {
    for (const call of ["retrieve", "delete", "downloadContent"]) {
      const ask = () => client.videos[call](NO_TASK);
      await refused(OpenAI.NotFoundError, ask, 404, "video_not_found");
    }
    const remix = () => client.videos.remix(NO_TASK, { prompt: PROMPT });
    await refused(OpenAI.NotFoundError, remix, 404, "video_not_found");
  },

  async "edit and remix"() {
    const source = await poll((await client.videos.create(small({ model: "kinora-a1" }))).id);
    for (const edited of [
      await client.videos.edit({ prompt: "The same in snow", video: { id: source.id } }),
      await client.videos.remix(source.id, { prompt: "The same at night" }),
    ]) {
      assert.equal(edited.remixed_from_video_id, source.id);
      const done = await poll(edited.id);
      assert.deepEqual([done.status, done.model], ["completed", "kinora-b1"]);
      assert.deepEqual([done.size, done.seconds], [source.size, source.seconds]);
    }
    const unknown = () => client.videos.edit({ prompt: "Snow", video: { id: NO_TASK } });
    const error = await refused(OpenAI.BadRequestError, unknown, 400, "edit_source_not_usable");
    assert.equal(error.param, "video");
  },

  async "references arrive in every spelling"() {
    const image_url = "http://127.0.0.1:8009/first.png";
    for (const references of [
      { input_reference: { image_url } },
      { reference_images: [image_url, image_url] },
    ]) {
      const failed = await poll((await client.videos.create(small(references))).id);
      assert.deepEqual(
        [failed.status, failed.error.code],
        ["failed", "reference_forbidden_address"],
      );
    }
  },

  async "conflicts are not retried"() {
    // Long enough not to end before.
    const video = await client.videos.create(small({ model: "kinora-a1", seconds: "15" }));
    const cancel = () => client.post(`/videos/${video.id}/cancel`);
    assert.equal((await cancel()).status, "failed");
    let before = requests;
    await refused(OpenAI.ConflictError, cancel, 409, "not_cancellable");
    assert.equal(requests, before + 1, "a final 409 was sent again");
    const failed = await poll(video.id);
    assert.deepEqual([failed.status, failed.error.code], ["failed", "cancelled"]);
    before = requests;
    const content = () => client.videos.downloadContent(video.id);
    await refused(OpenAI.ConflictError, content, 409, "video_failed");
    assert.equal(requests, before + 1, "a final 409 was sent again");
  },

  async idempotency() {
    const headers = { "Idempotency-Key": `order-${process.hrtime.bigint()}` };
    const create = (seed) => client.videos.create(small({ seed }), { headers });
    const [first, again] = [await create(3), await create(3)];
    assert.equal(first.id, again.id);
    const other = () => create(4);
    await refused(OpenAI.UnprocessableEntityError, other, 422, "idempotency_key_reused");
    await client.videos.delete(first.id);
  },

  async "rate limit"() {
    const narrow = client.withOptions({ apiKey: KINORA_NARROW_KEY, maxRetries: 0 });
    const slow = small({ seconds: "15", resolution: "1080p" });
    const running = await narrow.videos.create(slow);
    const full = () => narrow.videos.create(small());
    const error = await refused(OpenAI.RateLimitError, full, 429, "queue_full");
    assert.ok(Number(error.headers.get("retry-after")) <= 120);
    await narrow.videos.delete(running.id);
  },
};

for (const [name, check] of Object.entries(checks)) {
  const begun = performance.now();
  await check();
  console.log(`${name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}
console.log("all passed");
