// Moving colour bars over nothing, a first frame or a source, with a tone: an engine in Node, from docs/engine-protocol.md alone.
// Command: node examples/without-sdk/bars.mjs
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
// Standard output belongs to the protocol. Node cannot duplicate descriptors: what prints must print elsewhere.
globalThis.console = new console.Console(process.stderr);
const features = { text_to_video: true, first_frame: true, audio_output: true, edit: true };
const bytesOf = (numbers) => Buffer.from(numbers.buffer);
const one = bytesOf(Uint32Array.of(1));
let [unread, job, materials, cancelled, takeSource] = [Buffer.alloc(0)];

function send(kind, body = "") {
  const message = [Buffer.from(kind), bytesOf(Uint32Array.of(Buffer.byteLength(body))), Buffer.from(body)];
  return new Promise((written) => process.stdout.write(Buffer.concat(message), written));
}

function take(kind, body) {
  if (kind === "o") send("h", JSON.stringify({ protocol: { major: 1, minor: 0 }, features })).then(() => send("o"));
  if (kind === "j") [job, materials, cancelled] = [JSON.parse(body), [], false];
  if (kind === "m") materials.push(body);
  if (kind === "c") cancelled = true;
  if ("fnu".includes(kind)) takeSource(kind === "f" ? body : null);
  if ("jm".includes(kind) && materials.length === (job.first_frame ? 1 : 0)) start();
}
const start = async () => send("e", JSON.stringify({ outcome: await make(job, materials[0]) }));

async function make({ prompt, seed, clip, edit, first_frame, source }, below) {
  const colours = createHash("sha256").update(`${seed} ${prompt}`).digest();
  const { width, height } = (edit ? source : first_frame) ?? clip;
  if (edit) send("s", one);
  for (let number = 0; number < clip.frames; number++) {
    await setImmediate(); // Lets Node read a cancel.
    if (edit) below = (await new Promise((taken) => { takeSource = taken; send("n", one); })) ?? below;
    if (cancelled) return "cancelled";
    const share = edit?.strength ?? (first_frame ? number / clip.frames : 1);
    const frame = Buffer.alloc(clip.width * clip.height * 3);
    for (let at = 0; at < frame.length; at += 1) {
      const [x, y, channel] = [Math.floor(at / 3) % clip.width, Math.floor(at / 3 / clip.width), at % 3];
      const bar = colours[3 * (Math.floor((8 * x) / clip.width + number / 4) % 8) + channel];
      const place = Math.floor((y * height) / clip.height) * width + Math.floor((x * width) / clip.width);
      frame[at] = share * bar + (1 - share) * (below?.[3 * place + channel] ?? 0);
    }
    await send("f", frame);
    await send("p", bytesOf(Float64Array.of((number + 1) / clip.frames)));
  }
  const [tone, length] = [(220 + colours[0]) / 48_000, 2 * Math.round((48_000 * clip.frames) / clip.fps)];
  const sound = () => Float32Array.from({ length }, (_, at) => 0.1 * Math.sin(2 * Math.PI * tone * Math.floor(at / 2)));
  if (clip.audio) await send("a", bytesOf(sound()));
  return "done";
}
process.stdin.on("data", (bytes) => {
  unread = Buffer.concat([unread, bytes]);
  while (unread.length >= 5 && unread.length >= 5 + unread.readUInt32LE(1)) {
    const message = unread.subarray(0, 5 + unread.readUInt32LE(1));
    unread = unread.subarray(message.length);
    take(message.toString("latin1", 0, 1), message.subarray(5));
  }
});
process.stdin.on("end", () => process.kill(0, "SIGKILL")); // The process, and all that it started.
