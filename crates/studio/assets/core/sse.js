/**
 * @file Reads server-sent events from the body of a response: `EventSource` cannot send the key in a header. The
 * format is that of the HTML standard, section 9.2.
 */

/** @typedef {{id: string, event: string, data: string}} EventRecord */

/** A stream from which nothing arrives for so long, not even a comment, is taken for dead. */
const SILENCE_MS = 90_000;

/**
 * The events of a stream, in order.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<EventRecord>}
 */
export async function* records(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let record = empty();
  try {
    for (;;) {
      const { done, value } = await orSilence(reader.read());
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line) read(line, record);
        else if (record.data) {
          yield { ...record, data: record.data.slice(0, -1) };
          record = { ...empty(), id: record.id };
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @returns {EventRecord} */
const empty = () => ({ id: "", event: "message", data: "" });

/** @param {string} line @param {EventRecord} record */
function read(line, record) {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") record.data += `${value}\n`;
  else if (name === "event" || name === "id") record[name] = value;
}

/**
 * @template T
 * @param {Promise<T>} reading
 * @returns {Promise<T>}
 */
async function orSilence(reading) {
  let timer = 0;
  const silence = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Error("the stream is silent")), SILENCE_MS);
  });
  try {
    return await /** @type {Promise<T>} */ (Promise.race([reading, silence]));
  } finally {
    clearTimeout(timer);
  }
}
