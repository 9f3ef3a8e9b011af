// A client whose types are generated from the OpenAPI document: it is compiled by `tsc --strict`, and
// then runs a task. What the compiler must refuse is marked, so that vague types fail the build.
import createClient from "openapi-fetch";
import type { components, paths } from "./typed.d.ts";

declare const process: { env: Record<string, string | undefined> };

const base = process.env.KINORA_BASE_URL!.replace(/\/v1$/, "");
const client = createClient<paths>({
  baseUrl: base,
  headers: { Authorization: `Bearer ${process.env.KINORA_API_KEY}` },
});

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

const submit: components["schemas"]["SubmitRequest"] = {
  model: "kinora-b1",
  prompt: "A paper boat crosses a pond",
  seconds: 2,
  resolution: "480p",
  aspect_ratio: "1:1",
  seed: 4_294_967_295,
  metadata: { take: "1" },
};
// @ts-expect-error: no such model
submit.model = "sora-2" as const;
submit.model = "kinora-b1";
// @ts-expect-error: no such size
const wrong: components["schemas"]["SubmitRequest"] = { model: "kinora-a1", size: "1x1" };
check(wrong.size !== undefined, "only types are judged here");

const { data: video, error } = await client.POST("/v1/videos", { body: submit });
check(error === undefined && video !== undefined, JSON.stringify(error));
check(video.seed === submit.seed && video.metadata.take === "1", "the fields come back");

let status: components["schemas"]["Status"] = video.status;
while (status === "queued" || status === "in_progress") {
  await new Promise((wake) => setTimeout(wake, 200));
  const polled = await client.GET("/v1/videos/{id}", { params: { path: { id: video.id } } });
  check(polled.data !== undefined, JSON.stringify(polled.error));
  status = polled.data.status;
}
check(status === "completed", status);

const page = await client.GET("/v1/videos", { params: { query: { order: "asc", limit: 1 } } });
check(page.data !== undefined && page.data.data[0]?.id === video.id, "the list has it");

const file = await client.GET("/v1/videos/{id}/content", {
  params: { path: { id: video.id }, query: { variant: "thumbnail" } },
  parseAs: "arrayBuffer",
});
check(file.data !== undefined && file.data.byteLength > 100, "the poster is there");

const refused = await client.POST("/v1/videos", { body: { model: "kinora-b1" } });
check(refused.error?.error.code === "missing_required_parameter", "refusals have their type");

console.log("all passed");
