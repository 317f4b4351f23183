import { parseManifests } from "#api/manifest.ts"
import { parseImageReference } from "#core/image/reference.ts"
import { listOf, type PodTemplate } from "#core/in-place/template.ts"
import { isKept, readWorkload, type Sight } from "#explain/workloads/facts.ts"
import { type Planned, planOf, refusedPlan } from "#explain/workloads/plan.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure, type KubeError } from "#runtime/client/errors.ts"
import { saysNotGranted } from "#runtime/client/outcome.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { type Answer, connectionOf, Failure, type Input, UsageError, type World } from "../command.ts"
import { inputName, readText } from "../input.ts"
import { shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { workloadPlanText } from "../render/workload.ts"
import { toYaml } from "../render/yaml.ts"
import { lookAtWorkload } from "./look.ts"
import { workloadsIn } from "./words.ts"

type Images = ReadonlyMap<string, string>
const isSetting = (word: string) => word.includes("=")

/** The words of `aim plan` that are about workloads: `deploy/web`, with `CONTAINER=IMAGE` as for `kubectl set image`. */
export const workloadsToPlan = (words: readonly string[]) => workloadsIn(words.filter(word => !isSetting(word)))

/** `aim plan deploy/web [CONTAINER=IMAGE]`: what becomes of its change, or of this one. Nothing is written. */
export async function planWorkload(input: Input, world: World): Promise<Answer> {
  const { resource, names } = workloadsToPlan(input.arguments)!
  const [name] = names
  if (name === undefined) throw new UsageError(`which one? Write ${shortOf(resource)}/NAME`)
  if (names.length > 1) throw new UsageError("plan shows one workload: write one name")
  if (input.options.from !== undefined)
    throw new UsageError("--from: a dump does not hold what a workload is planned from")
  const images = new Map(input.arguments.filter(isSetting).map(settingIn))
  const file = input.options.file as string | undefined
  if (file !== undefined && images.size > 0) throw new UsageError("--file and CONTAINER=IMAGE: write one or the other")
  const manifest = file === undefined ? undefined : await manifestIn(file, world, { resource, name })
  const format = input.options.output as "json" | "yaml" | undefined
  const target = { resource, name, namespace: await namespaceOf(input, world) }
  const client = await world.connect(connectionOf(input))
  try {
    const sight = await lookAtWorkload(client, world, target)
    const plan = await (manifest
      ? applied(client, resource, sight, manifest)
      : planned(client, resource, sight, images)
    ).catch(error => {
      // A policy or a webhook has refused the dry run.
      if (isFailure(error, "Invalid") || isDenied(error)) return refusedPlan(sight.workload, error.said)
      throw error
    })
    const exitCode = plan.way === "Refused" ? 1 : 0
    if (format === "json") return { text: `${JSON.stringify(plan, null, 2)}\n`, exitCode }
    if (format === "yaml") return { text: toYaml(plan), exitCode }
    const text = workloadPlanText(plan, world)
    return images.size > 0 || manifest ? { text, exitCode, next: "Nothing was written." } : { text, exitCode }
  } finally {
    client.close()
  }
}

function settingIn(word: string): [string, string] {
  const at = word.indexOf("=")
  const [container, image] = [word.slice(0, at), word.slice(at + 1)]
  if (container === "" || image === "") throw new UsageError(`${word}: write CONTAINER=IMAGE`)
  // A server takes any text for an image, and no node could pull it.
  const parsed = parseImageReference(image)
  if (!parsed.ok) throw new UsageError(`${word}: ${parsed.error}`)
  return [container, image]
}

/** The manifest of the workload in a file. */
async function manifestIn(
  file: string,
  world: World,
  { resource, name }: { resource: Resource; name: string },
): Promise<object> {
  const { manifests, errors } = parseManifests(await readText(file, world))
  if (errors[0]) throw new Failure(`${inputName(file)}:${errors[0].line}: ${errors[0].message}`)
  const found = manifests
    .map(({ value }) => value as KubeObject | undefined)
    .find(value => value?.kind === resource.kind && value.metadata?.name === name)
  if (!found) throw new Failure(`${inputName(file)} has no ${resource.kind} ${name}`)
  return found
}

/** As a server-side apply by a manager of its own: fields that the file leaves out stay as they are. */
async function applied(client: Client, resource: Resource, sight: Sight, manifest: object): Promise<Planned> {
  const { name, namespace } = sight.workload.metadata
  const patch = { type: "apply", body: manifest, force: true } as const
  const options = { dryRun: true, fieldManager: "aim-plan" }
  const admitted = await client.patch<KubeObject>(resource, { name, namespace }, patch, options)
  const workload = { ...admitted, kind: resource.kind }
  return planOf({ ...sight, workload }, { holds: isKept(readWorkload(workload)) })
}

/** The server is asked what it would make of the change, and with it whether it would hold it: a dry run. */
async function planned(client: Client, resource: Resource, sight: Sight, images: Images): Promise<Planned> {
  const { isOptedIn, hold, template } = readWorkload(sight.workload)
  if (images.size > 0) {
    const change = changeTo(template, images, sight.workload.metadata.name)
    const admitted = await dryRun(client, resource, sight.workload, change)
    const workload = admitted ?? locally(sight.workload, images)
    return planOf({ ...sight, workload }, { holds: admitted && isKept(readWorkload(admitted)) })
  }
  if (hold || !isOptedIn) return planOf(sight, { holds: true })
  const probe = { metadata: { annotations: { "autoimagemanager.io/plan": "asks-whether-it-is-held" } } }
  const admitted = await dryRun(client, resource, sight.workload, probe)
  return planOf(sight, { holds: admitted && isKept(readWorkload(admitted)) })
}

/** The workload as the server would store it; undefined without the right to patch it. */
async function dryRun(client: Client, resource: Resource, { metadata }: KubeObject, template: object) {
  const { name, namespace } = metadata
  try {
    const body = { spec: { template } }
    const patch = { type: "strategic", body } as const
    const admitted = await client.patch<KubeObject>(resource, { name, namespace }, patch, { dryRun: true })
    return { ...admitted, kind: resource.kind }
  } catch (error) {
    if (isFailure(error, "Forbidden") && !isDenied(error)) return undefined
    throw error
  }
}

/** Webhooks often deny with the code of a missing right. */
const isDenied = (error: unknown): error is KubeError => isFailure(error, "Forbidden") && !saysNotGranted(error.message)

const lists = ["initContainers", "containers"] as const

/** `*` is every container, as for kubectl. */
function changeTo({ spec = {} }: PodTemplate, images: Images, workload: string): object {
  const changed = lists.map(list => {
    const own = listOf(spec[list]).map(({ name }) => String(name))
    return [list, own.flatMap(name => imageFor(name, images))] as const
  })
  const known = lists.flatMap(list => listOf(spec[list]).map(({ name }) => String(name)))
  const missing = [...images.keys()].find(name => name !== "*" && !known.includes(name))
  if (missing !== undefined)
    throw new Failure(
      `${workload} has no container ${missing}: write ${known.map(name => `${name}=IMAGE`).join(" or ")}`,
    )
  return { spec: Object.fromEntries(changed.filter(([, all]) => all.length > 0)) }
}

function imageFor(name: string, images: Images) {
  const image = images.get(name) ?? images.get("*")
  return image === undefined ? [] : [{ name, image }]
}

/** The same without the server. */
function locally(workload: KubeObject, images: Images): KubeObject {
  const { spec } = workload as KubeObject & { spec: { template: PodTemplate } }
  const podSpec = { ...spec.template.spec }
  for (const list of lists)
    if (podSpec[list])
      podSpec[list] = listOf(podSpec[list]).map(each => ({ ...each, ...imageFor(String(each.name), images)[0] }))
  return { ...workload, spec: { ...spec, template: { ...spec.template, spec: podSpec } } } as KubeObject
}
