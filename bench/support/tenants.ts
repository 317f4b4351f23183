import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { customResourceDefinitions as definitions } from "#controllers/served-kind.ts"
import { namespaces, serviceImages } from "#controllers/serviceimage/resources.ts"
import { forEachLimited } from "#lib/batch.ts"
import type { Client, List } from "#runtime/client/client.ts"
import { core, type KubeObject, type Resource } from "#runtime/resource.ts"
import { type Json, until } from "#tools/kube/api.ts"
import { repository } from "#tools/kube/folders.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import type { Progress } from "./progress.ts"

/** As many as the controller has under way at once. */
export const writesAtOnce = 16
const teams = 20
const pods = core("pods", "Pod")

export const imageOf = (tag: string) => `registry.example.com/team/dicom-service:${tag}`
export const name = "bench"

/** Every kind of ours, the example's, and the namespaces. A controller asks again and again for a kind that is missing. */
export async function prepare(client: Client): Promise<void> {
  const ours = readdirSync(join(repository, "charts/aim/crds")).map(file => `charts/aim/crds/${file}`)
  for (const file of [...ours, "examples/dicom/crd.yaml"]) {
    const definition: KubeObject = parse(readFileSync(join(repository, file), "utf8"))
    const created = await client.create(definitions, definition)
    await until("its kind to be served", async () =>
      isTrue(await client.get(definitions, created.metadata), "Established"),
    )
  }
  for (let team = 0; team < teams; team++) {
    await client.create(namespaces, { metadata: { name: `team-${team}` } })
  }
}

/** Tenants that have been deployed with `v0` long ago: a rollout has something to replace. */
export const tenant = (index: number): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name: `tenant-${index}`, namespace: `team-${index % teams}`, labels: { service: "dicom" } },
  spec: { image: imageOf("v0"), replicas: 3, keyVaultUri: `https://tenant-${index}.vault.example.com/` },
})

export async function createTenants(client: Client, count: number, progress: Progress): Promise<void> {
  progress.begin(`creating ${count} tenants`, count)
  let done = 0
  await forEachLimited(Array.from({ length: count }).keys(), writesAtOnce, async index => {
    await client.create(Dicoms, tenant(index))
    progress.at(++done)
  })
}

/** Three for every tenant, as a server sends them. No scheduler handles them, so only their number counts. */
export async function createPods(client: Client, progress: Progress): Promise<number> {
  const owners = await list(client, Dicoms)
  progress.begin(`creating ${3 * owners.length} pods`, 3 * owners.length)
  let done = 0
  await forEachLimited(owners, writesAtOnce, async ({ metadata }) => {
    for (let replica = 0; replica < 3; replica++) {
      await client.create(pods, pod(metadata, replica))
      progress.at(++done)
    }
  })
  return done
}

const pod = ({ name, namespace, uid }: KubeObject["metadata"], replica: number): Json => ({
  metadata: {
    name: `${name}-${replica}`,
    namespace,
    labels: { app: "dicom", tenant: name, "pod-template-hash": "7c9d8f6b5" },
    ownerReferences: [{ apiVersion: "services.example.com/v1alpha1", kind: "Dicom", name, uid, controller: true }],
  },
  spec: {
    schedulerName: "nobody",
    containers: ["main", "sidecar"].map(container => ({
      name: container,
      image: imageOf("v0"),
      env: Array.from({ length: 8 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${at} of ${name}` })),
      resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    })),
  },
})

/** Everything of a kind, page by page. */
export async function list(client: Client, resource: Resource): Promise<Json[]> {
  const all: Json[] = []
  for (let token: string | undefined = ""; token !== undefined; ) {
    const page: List<KubeObject> = await client.list(resource, { limit: 500, ...(token && { continue: token }) })
    all.push(...page.items)
    token = page.metadata.continue || undefined
  }
  return all
}

/** Only the time of aim is measured, so settling is switched off. */
const deadline = { upgradeTier: "", progressDeadlineSeconds: 86_400, settleSeconds: 0 }

export async function createServiceImage(client: Client, spec: Json): Promise<void> {
  await client.create(serviceImages, {
    metadata: { name },
    spec: {
      target: {
        apiVersion: "services.example.com/v1alpha1",
        kind: "Dicom",
        selector: { matchLabels: { service: "dicom" } },
      },
      tiers: [deadline],
      pace: { podsPerSecond: 0 },
      ...spec,
    },
  } as Json)
}

/** Changes the spec; a tier is given its deadline again, as a merge patch replaces lists. */
export async function order(client: Client, { tier = {}, ...spec }: Json): Promise<void> {
  const body = { spec: { ...spec, tiers: [{ ...deadline, ...tier }] } }
  await client.patch(serviceImages, { name }, { type: "merge", body })
}

export async function completed(client: Client, withinMs = 1_800_000): Promise<void> {
  await until(
    "the rollout to be complete",
    async () => {
      const now: Json = await client.get(serviceImages, { name })
      const complete = now.status?.conditions?.find((each: Json) => each.type === "Complete")
      return complete?.status === "True" && complete.observedGeneration === now.metadata.generation
    },
    { withinMs, everyMs: 500 },
  )
}

/** The status that an operator writes for an updated tenant; nothing if it is written already. */
export function upToDateStatus({ metadata, status }: Json): Json | undefined {
  const { generation } = metadata
  if (status?.observedGeneration === generation) return undefined
  const condition = (type: string) => ({
    type,
    status: "True",
    reason: "RolledOut",
    message: "every pod runs the spec",
    observedGeneration: generation,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  })
  return { observedGeneration: generation, conditions: [condition("Deployed"), condition("UpToDate")] }
}

/** An operator that reports all tenants as up to date at once. */
export async function operate(client: Client, progress: Progress): Promise<void> {
  const behind = (await list(client, Dicoms)).flatMap(object => {
    const status = upToDateStatus(object)
    return status ? [{ object, status }] : []
  })
  progress.begin("the operator reports", behind.length)
  let done = 0
  await forEachLimited(behind, writesAtOnce, async ({ object: { metadata }, status }) => {
    await client.patch(Dicoms, metadata, { type: "merge", body: { status } }, { subresource: "status" })
    progress.at(++done)
  })
}

const isTrue = (object: Json, type: string): boolean =>
  object.status?.conditions?.some((each: Json) => each.type === type && each.status === "True") ?? false
