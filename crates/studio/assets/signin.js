/**
 * @file The sign-in: a key, kept for as long as the tab is open, or until the sign-out; or the link that `kinora serve`
 * prints, whose code the service exchanges for a key.
 */

import { ApiError, models, redeem } from "./core/api.js";
import { announce, h, setText } from "./core/dom.js";
import { saveKey } from "./core/session.js";
import { field } from "./compose/controls.js";

/** What the fragment of a link begins with. The code follows; no server and no log sees a fragment. */
const LINK = "#sign-in=";
let code = takeCode();

/** Takes the code out of the address, so that no reload, bookmark or copy of the address has it. */
function takeCode() {
  if (!location.hash.startsWith(LINK)) return "";
  const found = location.hash.slice(LINK.length);
  history.replaceState(null, "", location.pathname + location.search);
  return found;
}

// A link that is pasted into the tab of this page changes only the fragment.
addEventListener("hashchange", () => location.hash.startsWith(LINK) && location.reload());

/**
 * Signs in by the link with which the page was opened, if it was. Throws while the service is away; the link can be
 * followed again then.
 * @returns {Promise<string>} why the link does not work; empty if it does, or if there was none
 */
export async function followLink() {
  if (!code) return "";
  let reason = "";
  try {
    saveKey(await redeem(code));
  } catch (error) {
    if (error instanceof ApiError && error.isPassing) throw error;
    reason = error instanceof ApiError ? error.message : words(error);
  }
  code = "";
  return reason;
}

/** @param {unknown} error */
function words(error) {
  if (!(error instanceof ApiError)) return "Something went wrong in this page.";
  if (error.status === 401) return "The service does not know this key. It may be mistyped, expired or revoked.";
  if (error.code === "scope_missing") return "This key may not read. Ask for one with the scope videos:read.";
  return error.message;
}

/**
 * @param {(access: {data: import("./core/models.js").Model[], scopes: string[]}) => void} onDone
 * @param {string} [reason] why one has to sign in again
 */
export function signIn(onDone, reason = "") {
  const key = field(
    "API key",
    h("input", {
      type: "password",
      class: "input",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "kinora_…",
      id: "key",
      required: true,
    }),
  );
  const stays = h("input", { type: "checkbox", id: "stays" });
  const button = h("button", { type: "submit", class: "button is-primary is-wide" }, "Sign in");
  const form = h(
    "form",
    { class: "sign-in", novalidate: true, onsubmit: send },
    h("h1", { class: "name" }, h("span", { class: "mark", "aria-hidden": "true" }), "Kinora ", h("span", {}, "Studio")),
    reason && h("p", { class: "notice" }, reason),
    key.root,
    h("div", { class: "check" }, stays, h("label", { for: "stays" }, "Stay signed in on this browser")),
    button,
    h(
      "p",
      { class: "hint" },
      "Otherwise the key is forgotten with this tab. ",
      "The service printed a first key at its first start, or wrote it to the file ",
      h("code", {}, "first-key"),
      " in its data folder; ",
      h("code", {}, "kinora keys create"),
      " makes more. On a terminal, ",
      h("code", {}, "kinora serve"),
      " also prints a link that signs in without a key.",
    ),
  );

  /** @param {Event} event */
  async function send(event) {
    event.preventDefault();
    const text = key.control.value.trim();
    if (!text) return refuse("Enter a key.");
    button.disabled = true;
    setText(button, "Signing in…");
    try {
      const found = await models(text);
      saveKey(text, stays.checked);
      onDone(found);
    } catch (error) {
      refuse(words(error));
    } finally {
      button.disabled = false;
      setText(button, "Sign in");
    }
  }

  /** @param {string} text */
  function refuse(text) {
    key.remark.show(text, true);
    announce(text, "assertive");
    key.control.focus();
  }

  return { root: h("main", { class: "door" }, form), focus: () => key.control.focus() };
}
