/**
 * @file What this browser keeps over visits, until the sign-out: favourites and the last prompts. The service takes no
 * changes of a task after its submit, so favourites are not with the tasks.
 */

const FAVOURITES = "kinora.favourites";
const PROMPTS = "kinora.prompts";
/** Ids sort by creation: of more favourites, the newest stay. */
const FAVOURITES_MAX = 1000;
const PROMPTS_MAX = 20;

/** @param {string} name @returns {string[]} */
function read(name) {
  try {
    const found = JSON.parse(localStorage.getItem(name) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** @param {string} name @param {string[]} values */
function write(name, values) {
  try {
    localStorage.setItem(name, JSON.stringify(values));
  } catch {
    // A browser without room, or one that keeps nothing: it lasts as long as the page.
  }
}

let favourites = new Set(read(FAVOURITES));
/** @type {Set<() => void>} */
const listeners = new Set();

/** @param {() => void} listener called when favourites change */
export const listen = (listener) => listeners.add(listener);

/** @param {string} id */
export const isFavourite = (id) => favourites.has(id);

/** Makes a task a favourite, or not any more; returns which. @param {string} id */
export function toggleFavourite(id) {
  const isOn = !favourites.delete(id);
  if (isOn) favourites.add(id);
  write(FAVOURITES, [...favourites].sort().slice(-FAVOURITES_MAX));
  for (const listener of listeners) listener();
  return isOn;
}

// Another tab has changed them.
addEventListener("storage", ({ key }) => {
  if (key !== FAVOURITES) return;
  favourites = new Set(read(FAVOURITES));
  for (const listener of listeners) listener();
});

/** The last prompts, the newest first. */
export const lastPrompts = () => read(PROMPTS);

/** @param {string} prompt */
export const rememberPrompt = (prompt) =>
  write(PROMPTS, [prompt, ...lastPrompts().filter((one) => one !== prompt)].slice(0, PROMPTS_MAX));

/** Forgets all of it. */
export function forget() {
  for (const name of [FAVOURITES, PROMPTS]) localStorage.removeItem(name);
}
