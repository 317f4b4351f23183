import { onTestFinished } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { alternateImageSourceAuthor } from "#policies/alternateimagesource-author.ts"
import { alternateImageSourceNewPods } from "#policies/alternateimagesource-new-pods.ts"
import { installKind } from "./fleet.ts"
import { floor, type Json, until } from "./floor.ts"

export const sourcesPath = (namespace: string, name = "") =>
  `/apis/${AlternateImageSource.apiVersion}/namespaces/${namespace}/${AlternateImageSource.plural}${name && `/${name}`}`
export const podsPath = (namespace: string, name = "") => `/api/v1/namespaces/${namespace}/pods${name && `/${name}`}`

const manifests = [alternateImageSourceAuthor, alternateImageSourceNewPods].flatMap(policyManifests)
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`
export const policyPaths = manifests.map(pathOf)

/** The kind and its admission policies, served; whether they are in force has to be tried. */
export async function installSources(): Promise<void> {
  const { api } = floor()
  await installKind(crdOf(AlternateImageSource))
  for (const manifest of manifests) await api.apply(pathOf(manifest), manifest)
}

export async function removePolicies(): Promise<void> {
  for (const path of policyPaths.toReversed()) await floor().api.remove(path)
}

export const failing = "registry.example.com/team/app"
export const working = "mirror.example.com:5000/team/app"

export const source = (name: string, spec: Json = {}): Json => ({
  apiVersion: AlternateImageSource.apiVersion,
  kind: AlternateImageSource.kind,
  metadata: { name },
  spec: { imageSourceReplacements: [{ equivalentRepositories: [failing, working] }], ...spec },
})

/** The status entry of a container whose image is pulled from elsewhere for now. */
export const switched = (container: string, incident: Json = {}): Json => ({
  container,
  currentRepository: working,
  name: "web",
  type: { group: "apps", kind: "deployment" },
  uid: "0f6cf0c8-7c5b-4a51-a0f0-5f5f0a3f4b11",
  switches: [
    { oldImage: `${failing}:v0`, newImage: `${working}:v0`, time: "2026-01-31T10:00:00Z", reason: "NotFound", pods: 1 },
    {
      oldImage: `${failing}:v1`,
      newImage: `${working}:v1`,
      time: "2026-01-31T12:00:20Z",
      reason: "Unreachable",
      pods: 3,
    },
  ],
  incident: {
    since: "2026-01-31T12:00:00Z",
    reason: "Switched",
    image: `${failing}:v1`,
    failing,
    working,
    matchLabels: { app: "web" },
    ...incident,
  },
})

let marks = 0

/**
 * Writes a status as the controller would, and waits until the server goes by it. An entry beside the others shows it:
 * a pod that it is about would be sent to the working repository.
 */
export async function writeStatus(namespace: string, name: string, targetsAvailable: Json[]): Promise<void> {
  const image = `${failing}:mark-${++marks}`
  const mark = switched("mark", { image, matchLabels: { mark: "true" } })
  const path = sourcesPath(namespace, name)
  await floor().api.patch(`${path}/status`, { status: { targetsAvailable: [...targetsAvailable, mark].slice(-200) } })
  await until("the policy to see the status", async () => {
    const pod = await created(namespace, podOf([{ name: "mark", image }], { labels: { mark: "true" } }), {
      dryRun: true,
    })
    return pod.spec.containers[0].image !== image
  })
}

export const podOf = (containers: Json[], metadata: Json = {}, spec: Json = {}): Json => ({
  metadata: { generateName: "web-", labels: { app: "web" }, ...metadata },
  // It is not scheduled: only the stored object matters.
  spec: { schedulerName: "nobody", ...spec, containers },
})

/** As the server stored it, or would. */
export const created = (namespace: string, pod: Json, { dryRun = false } = {}): Promise<Json> =>
  floor().api.create(`${podsPath(namespace)}${dryRun ? "?dryRun=All" : ""}`, pod)

export const imagesOf = ({ spec }: Json): Record<string, string> =>
  Object.fromEntries([...(spec.initContainers ?? []), ...spec.containers].map(({ name, image }) => [name, image]))

/** An AlternateImageSource that is gone when the test ends. */
export async function createSource(namespace: string, object: Json): Promise<string> {
  const { metadata } = await floor().api.create(sourcesPath(namespace), object)
  onTestFinished(() => floor().api.remove(sourcesPath(namespace, metadata.name)))
  return metadata.name
}
