/**
 * @file Writes a ZIP archive while its files arrive: uncompressed, since films are compressed already, and with data
 * descriptors, since a file's checksum is known only at its end. The format is that of APPNOTE.TXT 6.3.10, section 4.3.
 * It writes no ZIP64; `fits` tells what would need it.
 */

/** What an archive without ZIP64 can count to. */
const BYTES_MAX = 0xffff_ffff;
const FILES_MAX = 0xffff;
const LOCAL = 30;
const DESCRIPTOR = 16;
const CENTRAL = 46;
const END = 22;
/** What a file takes beside its bytes and, twice, its name. */
const PARTS = LOCAL + DESCRIPTOR + CENTRAL;
/** Sizes follow the file (bit 3), and names are UTF-8 (bit 11). */
const FLAGS = 0x0808;
const VERSION = 20;

/** @typedef {{name: string, modified: Date}} Entry */

const encoder = new TextEncoder();

/** The table of CRC-32 with the polynomial of ZIP. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit += 1) byte = byte & 1 ? (byte >>> 1) ^ 0xedb8_8320 : byte >>> 1;
  return byte;
});

/** @param {number} crc of what came before; begins with 0 @param {Uint8Array} bytes */
export function crc32(crc, bytes) {
  crc = ~crc;
  for (let n = 0; n < bytes.length; n += 1) crc = TABLE[(crc ^ bytes[n]) & 0xff] ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** The size of the archive of some files. @param {{name: string, bytes: number}[]} files */
export const archiveBytes = (files) =>
  files.reduce((sum, { name, bytes }) => sum + PARTS + 2 * encoder.encode(name).length + bytes, END);

/** @param {{name: string, bytes: number}[]} files */
export const fits = (files) => files.length < FILES_MAX && archiveBytes(files) < BYTES_MAX;

/**
 * A record of little-endian numbers.
 * @param {...number[]} fields each a value and its bytes, 2 or 4
 */
function record(...fields) {
  const bytes = new Uint8Array(fields.reduce((sum, [, size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [value, size] of fields) {
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += size;
  }
  return bytes;
}

/** The time and the date of MS-DOS, in this order, which begin in 1980 and are local. @param {Date} date */
const dosTime = (date) =>
  (Math.max(0, date.getFullYear() - 1980) * 2 ** 25 +
    ((date.getMonth() + 1) << 21) +
    (date.getDate() << 16) +
    (date.getHours() << 11) +
    (date.getMinutes() << 5) +
    (date.getSeconds() >> 1)) >>>
  0;

/**
 * The bytes of an archive, in order.
 * @param {AsyncIterable<Entry & {body: ReadableStream<Uint8Array>}>} files each is asked for when the one before has
 *   been read to its end
 * @returns {AsyncGenerator<Uint8Array>}
 */
export async function* zip(files) {
  /** @type {Uint8Array[]} */
  const central = [];
  let offset = 0;
  for await (const { name, modified, body } of files) {
    const title = encoder.encode(name);
    const time = dosTime(modified);
    yield record(
      ...[[0x0403_4b50, 4], [VERSION, 2], [FLAGS, 2], [0, 2], [time, 4], [0, 4], [0, 4], [0, 4]],
      ...[[title.length, 2], [0, 2]],
    );
    yield title;
    let [crc, size] = [0, 0];
    for await (const chunk of chunks(body)) {
      crc = crc32(crc, chunk);
      size += chunk.length;
      yield chunk;
    }
    yield record([0x0807_4b50, 4], [crc, 4], [size, 4], [size, 4]);
    central.push(
      record(
        ...[[0x0201_4b50, 4], [VERSION, 2], [VERSION, 2], [FLAGS, 2], [0, 2], [time, 4], [crc, 4], [size, 4], [size, 4]],
        ...[[title.length, 2], [0, 2], [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]],
      ),
      title,
    );
    offset += LOCAL + title.length + size + DESCRIPTOR;
    if (offset > BYTES_MAX) throw new RangeError("the files are larger than they were said to be");
  }
  yield* central;
  const count = central.length / 2;
  const bytes = central.reduce((sum, part) => sum + part.length, 0);
  yield record([0x0605_4b50, 4], [0, 2], [0, 2], [count, 2], [count, 2], [bytes, 4], [offset, 4], [0, 2]);
}

/** The pieces of a stream, which not every browser can iterate itself. @param {ReadableStream<Uint8Array>} body */
async function* chunks(body) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
