/**
 * @file What lasts as long as the browser's tab: the key, the form as it was left, and the requests that this tab has
 * sent. The service's task object doesn't show references and some settings; the remembered request lets us send them
 * again. Only the key may last longer, where its user has said so.
 */

import { forget } from "./kept.js";

const KEY = "kinora.key";
const REQUESTS = "kinora.requests";
const NOTICE = "kinora.notice";
const FORM = "kinora.form";
const REQUESTS_MAX = 200;

/** The key; empty where the service needs none, `null` before the sign-in. */
export const savedKey = () => sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);

/** @param {string} key @param {boolean} [stays] for other tabs and later visits too */
export const saveKey = (key, stays = false) => (stays ? localStorage : sessionStorage).setItem(KEY, key);

/**
 * Forgets everything, and loads the page anew, so that nothing of it stays in memory. Who has to sign in again finds
 * the form as it was left.
 * @param {string} [notice] why the sign-in is needed again
 */
export function leave(notice) {
  const form = sessionStorage.getItem(FORM);
  sessionStorage.clear();
  localStorage.removeItem(KEY);
  if (!notice) forget();
  if (notice) sessionStorage.setItem(NOTICE, notice);
  if (notice && form) sessionStorage.setItem(FORM, form);
  location.replace(location.pathname);
}

/**
 * Keeps the form for a reload of this tab.
 * @param {import("./request.js").Form} form
 */
export function keepForm(form) {
  try {
    sessionStorage.setItem(FORM, JSON.stringify(form));
  } catch {
    sessionStorage.removeItem(FORM);
  }
}

/** The form as this tab left it. @returns {Partial<import("./request.js").Form>} */
export const keptForm = () => parsed(FORM);

/** What the sign-in says after {@link leave}; once. */
export function takeNotice() {
  const notice = sessionStorage.getItem(NOTICE) ?? undefined;
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/** @returns {Record<string, Record<string, unknown>>} */
const requests = () => parsed(REQUESTS);

/** @param {string} name */
function parsed(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "{}");
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
