/**
 * @file What lasts as long as the browser's tab: the key, and the requests that this tab has sent. The service's task
 * object doesn't show references and some settings; the remembered request lets us send them again.
 */

const KEY = "kinora.key";
const REQUESTS = "kinora.requests";
const NOTICE = "kinora.notice";
const REQUESTS_MAX = 200;

/** The key; empty where the service needs none, `null` before the sign-in. */
export const savedKey = () => sessionStorage.getItem(KEY);

/** @param {string} key */
export const saveKey = (key) => sessionStorage.setItem(KEY, key);

/**
 * Forgets everything, and loads the page anew, so that nothing of it stays in memory.
 * @param {string} [notice] what the sign-in then says
 */
export function leave(notice) {
  sessionStorage.clear();
  if (notice) sessionStorage.setItem(NOTICE, notice);
  location.replace(location.pathname);
}

/** What the sign-in says after {@link leave}; once. */
export function takeNotice() {
  const notice = sessionStorage.getItem(NOTICE) ?? undefined;
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/** @returns {Record<string, Record<string, unknown>>} */
function requests() {
  try {
    return JSON.parse(sessionStorage.getItem(REQUESTS) ?? "{}");
  } catch {
    return {};
  }
}

/**
 * Remembers what led to a task.
 * @param {string} id
 * @param {Record<string, unknown>} body
 */
export function rememberRequest(id, body) {
  const newest = Object.entries({ ...requests(), [id]: body }).slice(-REQUESTS_MAX);
  try {
    sessionStorage.setItem(REQUESTS, JSON.stringify(Object.fromEntries(newest)));
  } catch {
    sessionStorage.removeItem(REQUESTS);
  }
}

/**
 * What led to a task, where this tab sent it.
 * @param {string} id
 * @returns {Record<string, unknown> | undefined}
 */
export const requestOf = (id) => requests()[id];

/** A key for `Idempotency-Key`; `crypto.randomUUID` is missing on pages without TLS. */
export function idempotencyKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `studio-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
