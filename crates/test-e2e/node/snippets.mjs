// Prints a request as the Studio's texts, in JSON, a pair of name and text for each language:
// `node snippets.mjs PAGE BODY`, the address of the page and the request's body.

import { readFileSync } from "node:fs";

const [page, body] = process.argv.slice(2);
// All that these functions know of a browser.
globalThis.document = { baseURI: page };
const file = new URL("../../studio/assets/core/snippets.js", import.meta.url);
const { LANGUAGES } = await import(`data:text/javascript,${encodeURIComponent(readFileSync(file, "utf8"))}`);
console.log(JSON.stringify(LANGUAGES.map(({ name, text }) => [name, text(JSON.parse(body))])));
