import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { parse } from "yaml"
import { connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { repository } from "#tools/kube/folders.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import { floor, type Json, until } from "./floor.ts"
import { keepProgram, startProgram } from "./program.ts"

export const dicomsPath = (namespace: string, name = "") =>
  `/apis/services.example.com/v1alpha1/namespaces/${namespace}/dicoms${name && `/${name}`}`
export const serviceImagePath = (name: string) => `/apis/autoimagemanager.io/v1alpha1/serviceimages/${name}`

/**
 * Applies a definition and waits until its objects can be listed. A kind is established before it is served, and served
 * before the server has read its objects.
 */
export async function installKind(definition: Json): Promise<void> {
  const { api } = floor()
  const { name } = definition.metadata
  const { group, names, versions } = definition.spec
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`
  await api.apply(path, definition)
  await until(`${name} to be served`, async () => {
    const isEstablished = isTrue(await api.get(path), "Established")
    return isEstablished && (await api.find(`/apis/${group}/${versions[0].name}/${names.plural}?limit=1`))
  })
}

/** The product's kinds and the example's, served and ready. */
export async function installKinds(): Promise<void> {
  const ours = (await readdir(join(repository, "charts/aim/crds"))).map(name => join("charts/aim/crds", name))
  for (const file of [...ours, "examples/dicom/crd.yaml"])
    await installKind(parse(await readFile(join(repository, file), "utf8")))
}

export const isTrue = (object: Json, type: string): boolean =>
  object?.status?.conditions?.some((each: Json) => each.type === type && each.status === "True") ?? false

export const conditionOf = (object: Json, type: string): Json =>
  object?.status?.conditions?.find((each: Json) => each.type === type)

/** A Dicom of a tenant; on kwok's nodes, or on the real one. */
export const dicom = (name: string, tier: string, spec: Json = {}, labels: Json = {}): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, labels: { ...(tier && { "upgrade-tier": tier }), ...labels } },
  spec,
})

/** The usual ten seconds of settling are only a wait in tests that are not about them. */
export const quickTiers = (tiers: readonly Json[]): Json[] => tiers.map(tier => ({ settleSeconds: 1, ...tier }))

/** A ServiceImage over the Dicoms with the label `fleet: NAME`, whose tiers settle quickly; removed when the test ends. */
export async function createServiceImage(
  name: string,
  { tiers = [{ upgradeTier: "" }], ...spec }: Json,
): Promise<void> {
  const { api } = floor()
  await api.create(serviceImagePath(""), {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: { name },
    spec: {
      target: {
        apiVersion: "services.example.com/v1alpha1",
        kind: "Dicom",
        selector: { matchLabels: { fleet: name } },
      },
      tiers: quickTiers(tiers),
      ...spec,
    },
  })
  onTestFinished(() => api.remove(serviceImagePath(name)))
}

export const isComplete = (object: Json): boolean =>
  isTrue(object, "Complete") && conditionOf(object, "Complete").observedGeneration === object.metadata.generation

/** Waits until what the spec asks for now is complete, and gives the ServiceImage that says so. */
export const complete = (name: string): Promise<Json> =>
  until(
    `${name} to be complete`,
    async () => {
      const now = await floor().api.get(serviceImagePath(name))
      return isComplete(now) && now
    },
    { withinMs: 240_000 },
  )

const controllerArgs = (kubeconfig: string, ...more: string[]) => [
  ...["controller", "--kubeconfig", kubeconfig, "--lease-namespace", "kube-system"],
  ...more,
]

/** For a test that says when it ends. */
export const startController = (kubeconfig: string, ...more: string[]) =>
  startProgram("bin/aim", controllerArgs(kubeconfig, ...more))

/** For a test that only needs one to be there, until its end. */
export const keepController = (kubeconfig: string, ...more: string[]) =>
  keepProgram("bin/aim", controllerArgs(kubeconfig, ...more), "lost the lead, ending")

export const startDicomController = (kubeconfig: string) =>
  startProgram("examples/dicom/run", ["--kubeconfig", kubeconfig])

export type Moment = {
  key: string
  version: number
  tier: string
  image: string
  isUpToDate: boolean
  isGone: boolean
}

/** Everything that ever becomes of the Dicoms of a fleet, in the order in which the server committed it. */
export async function recordHistory(fleet: string): Promise<readonly Moment[]> {
  const { transport } = await connect({ kubeconfig: floor().kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const moments: Moment[] = []
  const labelSelector = `fleet=${fleet}`
  const { metadata } = await client.list(Dicoms, { labelSelector })
  const follow = async () => {
    const options = { labelSelector, resourceVersion: metadata.resourceVersion }
    for await (const { type, object } of client.watch<KubeObject>(Dicoms, options, stop.signal)) {
      if (type === "ERROR" || type === "BOOKMARK") continue
      const { spec, metadata } = object as Json
      moments.push({
        key: keyOf(metadata),
        version: Number(metadata.resourceVersion),
        tier: metadata.labels["upgrade-tier"] ?? "",
        image: spec.image ?? "",
        isUpToDate: isUpToDateNow(object),
        isGone: type === "DELETED",
      })
    }
  }
  follow().catch(error => {
    if (!stop.signal.aborted) throw error
  })
  return moments
}

/** Waits until a record has these objects as they were listed: what is watched may come later than what is asked for. */
export async function recorded(history: readonly Moment[], objects: readonly Json[]): Promise<void> {
  const last = Math.max(...objects.map(({ metadata }) => Number(metadata.resourceVersion)))
  await until("the record to be whole", async () => history.some(({ version }) => version >= last))
}

export function isUpToDateNow(object: Json): boolean {
  const condition = conditionOf(object, "UpToDate")
  const { generation } = object.metadata
  return condition?.status === "True" && condition.observedGeneration === generation
}
