/** @file Variations: one request with four seeds. Each is a task of its own, and accepted or refused by itself. */

import { ApiError, submit } from "./api.js";
import { refusalWords } from "./failure.js";
import { randomSeed } from "./request.js";
import { rememberRequest } from "./session.js";
import * as tasks from "./tasks.js";

const COUNT = 4;

/**
 * Submits a request with its own seed, if it has one, and with random ones. It rejects if none was accepted.
 * @param {Record<string, unknown>} body
 * @param {() => void} onRetry called before each pause
 * @returns {Promise<{accepted: import("./api.js").Task[], words: string, isPart: boolean}>} `isPart`: some were refused
 */
export async function submitFour(body, onRetry) {
  const seeds = new Set(body.seed === undefined ? [] : [Number(body.seed)]);
  while (seeds.size < COUNT) seeds.add(randomSeed());
  const bodies = [...seeds].map((seed) => ({ ...body, seed }));
  const ends = await Promise.allSettled(bodies.map((one) => submit(one, onRetry)));
  const accepted = [];
  /** @type {ApiError[]} */
  const refused = [];
  for (const [n, end] of ends.entries()) {
    if (end.status === "fulfilled") {
      rememberRequest(end.value.id, bodies[n]);
      accepted.push(end.value);
    } else if (end.reason instanceof ApiError) refused.push(end.reason);
    else throw end.reason;
  }
  tasks.put(accepted);
  if (!accepted.length) throw refused[0];
  if (!refused.length) return { accepted, words: "Making four variations.", isPart: false };
  const reasons = [...new Set(refused.map(refusalWords))].join(" ");
  return { accepted, words: `Only ${accepted.length} of ${COUNT} variations were accepted. ${reasons}`, isPart: true };
}
