// Asks a real Kubernetes what cluster-sim's custom kinds are held to, and keeps its answers beside them:
//
//   npm run cluster -- --no-kubelet --nodes 1 &
//   kubectl proxy --port=18801 &
//   node tools/record-custom-kinds.ts http://127.0.0.1:18801
import { writeFile } from "node:fs/promises"
import {
  definitions,
  definitionUpdates,
  objects,
  objectUpdates,
  rows,
  widget,
} from "../src/cluster-sim/crd/recorded/cases.ts"
import { change } from "../src/cluster-sim/kinds/recorded/cases.ts"
import { normalised } from "../src/cluster-sim/kinds/recorded/normalised.ts"

// biome-ignore lint/suspicious/noExplicitAny: answers of a server
type Json = any

const folder = `${import.meta.dirname}/../src/cluster-sim/crd/recorded`
const server = process.argv[2]
if (!server) throw new Error("name the server: http://127.0.0.1:18801")

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
const widgets = "/apis/shop.test/v1/namespaces/default/widgets"
const lines: Json[] = []

for (const [name, definition] of Object.entries(definitions)) {
  const { code, body } = await ask("POST", `${crds}?dryRun=All`, definition)
  lines.push({ define: name, code, body: normalised(body) })
}
const established = await define(widget)
lines.push({ established: "widget", body: normalised(established) })
const inVersion2 = "/apis/shop.test/v2/namespaces/default/widgets"

for (const [name, fields] of Object.entries(definitionUpdates)) {
  const before = await ask("GET", `${crds}/widgets.shop.test`)
  const { code, body } = await ask("PUT", `${crds}/widgets.shop.test?dryRun=All`, change(before.body, fields))
  lines.push({ redefine: name, before: normalised(before.body), code, body: normalised(body) })
}
for (const [name, object] of Object.entries(objects)) {
  const { code, body } = await ask("POST", `${widgets}?dryRun=All`, object)
  lines.push({ create: name, code, body: normalised(body) })
}
for (const [name, { given, set, subresource, laterSchema }] of Object.entries(objectUpdates)) {
  must(await ask("POST", widgets, given), 201, name)
  if (laterSchema) await define(withSchema(laterSchema))
  const before = await ask("GET", `${widgets}/w`)
  const path = `${widgets}/w${subresource ? `/${subresource}` : ""}?dryRun=All`
  const { code, body, warnings } = await ask("PUT", path, change(before.body, set))
  lines.push({ update: name, before: normalised(before.body), code, body: normalised(body), warnings })
  await ask("DELETE", `${widgets}/w`)
  if (laterSchema) await define(widget)
}
for (const [name, object] of Object.entries(rows)) {
  const created = await ask("POST", widgets, object)
  must(created, 201, name)
  if (object.status)
    must(await ask("PUT", `${widgets}/w/status`, { ...created.body, status: object.status }), 200, name)
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
  const { body, date } = await ask("GET", `${widgets}/w?includeObject=Object`, undefined, accept)
  const [{ cells, object: shown }] = body.rows
  delete shown.metadata.managedFields
  lines.push({ row: name, now: Date.parse(date), object: shown, cells, columns: body.columnDefinitions })
  const other = await ask("GET", `${inVersion2}/w`, undefined, accept)
  lines.push({ rowInVersion2: name, columns: other.body.columnDefinitions, cells: other.body.rows[0].cells })
  await ask("DELETE", `${widgets}/w`)
}
await ask("DELETE", `${crds}/widgets.shop.test`)
await writeFile(`${folder}/answers.jsonl`, lines.map(line => `${JSON.stringify(line)}\n`).join(""))

function withSchema(fields: Record<string, Json>): Json {
  const path = "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties"
  return change(widget, Object.fromEntries(Object.entries(fields).map(([name, value]) => [`${path}.${name}`, value])))
}

/** Brings a definition into force and waits until it is. */
async function define(definition: Json): Promise<Json> {
  const { name } = definition.metadata
  const before = await ask("GET", `${crds}/${name}`)
  const body = { ...definition, metadata: { name, resourceVersion: before.body.metadata.resourceVersion } }
  if (before.code === 404) must(await ask("POST", crds, definition), 201, name)
  else must(await ask("PUT", `${crds}/${name}`, body), 200, name)
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 1000)) // the handlers of a new schema follow a little later
    const { body: seen } = await ask("GET", `${crds}/${name}`)
    const conditions: Json[] = seen.status?.conditions ?? []
    if (conditions.some(({ type, status }) => type === "Established" && status === "True")) return seen
  }
}

function must({ code, body }: Json, wanted: number, what: string) {
  if (code !== wanted) throw new Error(`${what}: ${code} ${JSON.stringify(body)}`)
}

async function ask(method: string, path: string, body?: Json, accept = "application/json") {
  const answer = await fetch(server + path, {
    method,
    headers: { accept, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  })
  return {
    code: answer.status,
    body: (await answer.json()) as Json,
    date: answer.headers.get("date") ?? "",
    warnings: answer.headers.get("warning") ?? "",
  }
}
