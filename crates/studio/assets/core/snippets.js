/** @file A request as text to run elsewhere: curl, Python and JavaScript, the latter two with OpenAI's SDKs. */

/** The arguments that OpenAI's SDK for Python takes by name; all others go through `extra_body`. */
const SDK_NAMES = ["model", "prompt", "seconds", "size"];

/** The service as clients address it: this page's own address without its last slash. */
const baseUrl = () => new URL("v1", document.baseURI).href;

/** A text inside single quotes of a shell. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A JSON value as Python writes it. @param {unknown} value @param {string} indent @returns {string} */
function python(value, indent) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map((one) => python(one, indent)).join(", ")}]`;
  if (value && typeof value === "object") {
    const rows = Object.entries(value).map(
      ([name, one]) => `${indent}    ${JSON.stringify(name)}: ${python(one, `${indent}    `)},`,
    );
    return `{\n${rows.join("\n")}\n${indent}}`;
  }
  // JSON's escapes of a string are also Python's.
  return JSON.stringify(value);
}

/** @typedef {{name: string, text: (body: Record<string, unknown>) => string}} Language */

/** @type {Language[]} */
export const LANGUAGES = [
  {
    name: "curl",
    text: (body) =>
      [
        `curl ${baseUrl()}/videos \\`,
        `  -H "Authorization: Bearer $KINORA_KEY" \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -d ${quoted(JSON.stringify(body, null, 2))}`,
      ].join("\n"),
  },
  {
    name: "Python",
    text: (body) => {
      const isNamed = (/** @type {[string, unknown]} */ [name]) => SDK_NAMES.includes(name);
      const named = Object.entries(body).filter(isNamed);
      const extra = Object.fromEntries(Object.entries(body).filter((one) => !isNamed(one)));
      // The SDK sends what it is given, but insists on a prompt.
      if (!("prompt" in body)) named.push(["prompt", "OMIT"]);
      const rows = named.map(([name, value]) => {
        if (value === "OMIT") return `    prompt=openai.omit,`;
        return `    ${name}=${name === "seconds" ? JSON.stringify(String(value)) : python(value, "    ")},`;
      });
      if (Object.keys(extra).length) rows.push(`    extra_body=${python(extra, "    ")},`);
      return [
        "import os",
        "",
        "import openai",
        "",
        `client = openai.OpenAI(base_url=${JSON.stringify(baseUrl())}, api_key=os.environ["KINORA_KEY"])`,
        "video = client.videos.create_and_poll(",
        ...rows,
        ")",
        'client.videos.download_content(video.id).write_to_file("video.mp4")',
      ].join("\n");
    },
  },
  {
    name: "JavaScript",
    text: (body) => {
      const texts = "seconds" in body ? { ...body, seconds: String(body.seconds) } : body;
      return [
        'import { writeFile } from "node:fs/promises";',
        'import OpenAI from "openai";',
        "",
        `const client = new OpenAI({ baseURL: ${JSON.stringify(baseUrl())}, apiKey: process.env.KINORA_KEY });`,
        `let video = await client.videos.create(${JSON.stringify(texts, null, 2)});`,
        'while (video.status === "queued" || video.status === "in_progress") {',
        "  await new Promise((resolve) => setTimeout(resolve, 1000));",
        "  video = await client.videos.retrieve(video.id);",
        "}",
        "const content = await client.videos.downloadContent(video.id);",
        'await writeFile("video.mp4", Buffer.from(await content.arrayBuffer()));',
      ].join("\n");
    },
  },
];
