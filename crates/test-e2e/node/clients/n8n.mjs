// The OpenAI node of n8n, unmodified: its operation "Generate a Video", as its package has it. n8n itself, of
// several hundred megabytes, is not here: `host` stands in for it with the few functions that the node calls,
// and sends what the node hands over.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import Module, { createRequire } from "node:module";

const { KINORA_BASE_URL, KINORA_API_KEY, KINORA_PICTURE } = process.env;

// What the node imports of n8n: errors, and a helper for its form in the editor.
class NodeError extends Error {
  constructor(_node, error, options) {
    super(error.message ?? error);
    this.description = options?.description;
  }
}
const workflow = {
  NodeOperationError: NodeError,
  NodeApiError: NodeError,
  updateDisplayOptions: (_options, properties) => properties,
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "n8n-workflow" ? workflow : load(name, ...rest));

// The node looks every ten seconds: too long for a test.
const { setTimeout } = globalThis;
globalThis.setTimeout = (call, ms, ...rest) => setTimeout(call, ms / 30, ...rest);

const require = createRequire(import.meta.url);
const video = "../node_modules/@n8n/n8n-nodes-langchain/dist/nodes/vendors/OpenAi/v2/actions/video";
const { execute } = require(`${video}/generate.operation.js`);

async function send(_credentials, { method, uri, headers, formData, json, useStream }) {
  const authorization = { Authorization: `Bearer ${KINORA_API_KEY}` };
  const response = await fetch(uri, {
    method,
    headers: { ...headers, ...authorization },
    body: formData?.getBuffer(),
  });
  if (!response.ok) {
    throw new Error(await response.text());
  }
  const answer = json ? await response.json() : { body: response.body };
  return useStream ? { ...answer, headers: Object.fromEntries(response.headers) } : answer;
}

function host(parameters, picture) {
  const film = async (body, _name, mimeType) => ({
    mimeType,
    data: Buffer.from(await new Response(body).arrayBuffer()),
  });
  return {
    getNode: () => ({ name: "OpenAI" }),
    getNodeParameter: (name, _item, fallback) => parameters[name] ?? fallback,
    getCredentials: async () => ({ apiKey: KINORA_API_KEY, url: KINORA_BASE_URL }),
    getExecutionCancelSignal: () => undefined,
    helpers: {
      assertBinaryData: () => ({ fileName: "first.png", mimeType: "image/png" }),
      getBinaryDataBuffer: async () => picture,
      binaryToBuffer: async (content) => content,
      prepareBinaryData: film,
      requestWithAuthentication: send,
    },
  };
}

async function make(options) {
  const parameters = {
    modelId: "kinora-b1",
    prompt: "A kite over a windy beach",
    seconds: 4,
    size: "1280x720",
    options,
  };
  const [item] = await execute.call(host(parameters, await readFile(KINORA_PICTURE)), 0);
  assert.equal(item.binary.data.mimeType, "video/mp4");
  assert.equal(item.binary.data.data.toString("latin1", 4, 8), "ftyp");
}

await make({});
await make({ binaryPropertyNameReference: "data" });

console.log("all passed");
