// Asks a real Kubernetes what cluster-sim's built-in kinds are held to, and keeps its answers beside them:
//
//   npm run cluster -- --no-kubelet --nodes 1 &     controllers, and no kubelet that would change what was made
//   kubectl proxy --port=18801 &
//   node tools/record-kinds.ts http://127.0.0.1:18801
import { writeFile } from "node:fs/promises"
import { change, creates, rows, updates } from "../src/cluster-sim/kinds/recorded/cases.ts"
import { normalised } from "../src/cluster-sim/kinds/recorded/normalised.ts"

// biome-ignore lint/suspicious/noExplicitAny: answers of a server
type Json = any

const folder = `${import.meta.dirname}/../src/cluster-sim/kinds/recorded`
const server = process.argv[2]
if (!server) throw new Error("name the server: http://127.0.0.1:18801")

const wanted: Record<string, string[]> = {
  v1: [
    "pods", "nodes", "namespaces", "services", "configmaps", "secrets", "serviceaccounts", "events",
    "persistentvolumeclaims", "limitranges", "resourcequotas",
  ],
  "events.k8s.io/v1": ["events"],
  "apps/v1": ["deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"],
  "batch/v1": ["jobs", "cronjobs"],
  "policy/v1": ["poddisruptionbudgets"],
  "autoscaling/v2": ["horizontalpodautoscalers"],
  "coordination.k8s.io/v1": ["leases"],
  "rbac.authorization.k8s.io/v1": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
  "apiextensions.k8s.io/v1": ["customresourcedefinitions"],
  "admissionregistration.k8s.io/v1": [
    "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
  ],
  "scheduling.k8s.io/v1": ["priorityclasses"],
  "discovery.k8s.io/v1": ["endpointslices"],
  "networking.k8s.io/v1": ["networkpolicies"],
} // biome-ignore format: a table of words

await recordAnswers(await recordServed())

/** Names, verbs, subresources and columns of the kinds. */
async function recordServed(): Promise<Json[]> {
  const kinds = []
  for (const [groupVersion, plurals] of Object.entries(wanted)) {
    const path = groupVersion === "v1" ? "/api/v1" : `/apis/${groupVersion}`
    const { resources } = await get(path)
    for (const plural of plurals) {
      const {
        name: _,
        storageVersionHash: __,
        ...resource
      } = resources.find(({ name }: { name: string }) => name === plural)
      const subresources = resources
        .filter(({ name }: { name: string }) => name.startsWith(`${plural}/`))
        .map(({ name, kind, group, version, verbs }: Record<string, unknown>) => ({
          name: String(name).slice(plural.length + 1),
          kind,
          ...(group !== undefined && { group, version }),
          verbs,
        }))
      const list = await get(`${path}/${plural}`)
      const table = await get(`${path}/${plural}?limit=1`, "application/json;as=Table;g=meta.k8s.io;v=v1")
      kinds.push({
        apiVersion: groupVersion,
        plural,
        ...resource,
        listKind: list.kind,
        subresources,
        columns: table.columnDefinitions,
      })
    }
  }
  await writeFile(`${folder}/served.json`, `${JSON.stringify(kinds, null, 1)}\n`)
  return kinds
}

/** The outcome of each case. */
async function recordAnswers(served: Json[]) {
  const lines: Json[] = []

  for (const [name, object] of Object.entries(creates)) {
    const { code, body } = await ask("POST", `${pathOf(object, served)}?dryRun=All`, object)
    lines.push({ create: name, code, body: normalised(body) })
  }
  for (const [name, { given, set, subresource }] of Object.entries(updates)) {
    const created = await ask("POST", pathOf(given, served), given)
    if (created.code !== 201) throw new Error(`${name}: ${JSON.stringify(created.body)}`)
    const path = `${pathOf(given, served)}/${given.metadata.name}`
    // Controllers write too; a conflict with them is not the answer.
    let before: Json
    let answer: Json
    do {
      before = await ask("GET", path)
      answer = await ask("PUT", `${path}${subresource ? `/${subresource}` : ""}?dryRun=All`, change(before.body, set))
    } while (answer.code === 409)
    const { code, body } = answer
    lines.push({ update: name, before: normalised(before.body), code, body: normalised(body) })
    await remove(path)
  }
  for (const [name, object] of Object.entries(rows)) {
    const created = await ask("POST", pathOf(object, served), object)
    if (created.code !== 201) throw new Error(`${name}: ${JSON.stringify(created.body)}`)
    const path = `${pathOf(object, served)}/${object.metadata.name}`
    if (object.status && object.kind !== "Node") {
      const put = await ask("PUT", `${path}/status`, { ...created.body, status: object.status })
      if (put.code !== 200) throw new Error(`${name}: ${JSON.stringify(put.body)}`)
    }
    // A finalizer keeps what is deleted, to be seen on its way out.
    if (object.metadata.finalizers) await ask("DELETE", path, { propagationPolicy: "Background" })
    const { body, date } = await ask(
      "GET",
      `${path}?includeObject=Object`,
      undefined,
      "application/json;as=Table;v=v1;g=meta.k8s.io",
    )
    const [{ cells, object: shown }] = body.rows
    delete shown.metadata.managedFields
    lines.push({ row: name, now: Date.parse(date), object: shown, cells })
    if (object.metadata.finalizers) {
      const current = await ask("GET", path)
      await ask("PUT", path, change(current.body, { "metadata.finalizers": [] }))
    }
    await remove(path)
  }
  await writeFile(`${folder}/answers.jsonl`, lines.map(line => `${JSON.stringify(line)}\n`).join(""))
}

async function get(path: string, accept?: string): Promise<Json> {
  const { code, body } = await ask("GET", path, undefined, accept)
  if (code !== 200) throw new Error(`${path}: ${code} ${JSON.stringify(body)}`)
  return body
}

function pathOf({ apiVersion, kind, metadata }: Json, served: Json[]): string {
  const { plural, namespaced } = served.find(each => each.apiVersion === apiVersion && each.kind === kind)
  const base = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`
  return `${base}${namespaced ? `/namespaces/${metadata.namespace}` : ""}/${plural}`
}

async function ask(method: string, path: string, body?: Json, accept = "application/json") {
  const answer = await fetch(server + path, {
    method,
    headers: { accept, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { code: answer.status, body: (await answer.json()) as Json, date: answer.headers.get("date") ?? "" }
}

async function remove(path: string) {
  await ask("DELETE", path, { gracePeriodSeconds: 0, propagationPolicy: "Background" })
  for (let i = 0; i < 100; i++) {
    if ((await ask("GET", path)).code === 404) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`${path} does not go away`)
}
