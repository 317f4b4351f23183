import { parseImageReference, sameImage } from "#core/image/reference.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { closest } from "#lib/closest.ts"
import { printable } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { type KubeObject, resourceOf } from "#runtime/resource.ts"
import { Failure, UsageError } from "../refusal.ts"
import type { SeenCanary } from "./progress.ts"

/** One word of `aim set-image canary/NAME`: `IMAGE` of the only container, or `CONTAINER=IMAGE`. */
type Setting = { container: string | undefined; image: string }
type Container = { readonly name: string; readonly image?: string }
type Target = KubeObject & {
  spec?: { template?: { spec?: { containers?: readonly Container[]; initContainers?: readonly Container[] } } }
}

/** `typed`: the whole command after its name. `supersede`: also while a run is under way. */
type Wanted = { words: readonly string[]; typed: string; supersede: boolean; program: string; dryRun: boolean }

export const parseCanarySettings = (words: readonly string[]): Setting[] => words.map(parseSetting)

/** Sets images of the Canary's target, with the rights of the user: the Canary holds the change and proves it. */
export async function setRunImage(client: Client, canary: SeenCanary, wanted: Wanted) {
  const settings = parseCanarySettings(wanted.words)
  mustBeIdle(canary, wanted)
  const { lines, isChanged } = await change(client, canary, settings, wanted.dryRun)
  return { lines, isChanged, next: isChanged ? whatIsNext(canary, wanted.program) : "" }
}

function parseSetting(word: string): Setting {
  const at = word.indexOf("=")
  const [container, image] = at < 0 ? [undefined, word] : [word.slice(0, at), word.slice(at + 1)]
  const parsed = parseImageReference(image)
  if (!parsed.ok) throw new UsageError(`${word || '""'}: ${parsed.error}`)
  return { container, image }
}

/** Another template ends a run, and the next one begins from the start. */
function mustBeIdle({ metadata, status, spec }: SeenCanary, { typed, supersede, program }: Wanted): void {
  const run = status?.run
  if (!run || supersede || status?.phase === "Failed") return
  const title = `canary/${metadata.name}`
  throw new Failure(
    [
      `${title}: run ${run.id} is under way (${run.reason}), at ${run.weight} %`,
      `A change of ${spec.targetRef.kind} ${spec.targetRef.name} now would end it. To wait for it: ${program} wait ${title}; to end it first: ${program} rollback ${title}`,
      `To overtake it: ${program} set-image ${typed} --supersede`,
    ].join("\n"),
  )
}

const attempts = 10

/** After a conflict the target is read and judged again. */
async function change(client: Client, canary: SeenCanary, settings: readonly Setting[], dryRun: boolean) {
  const { namespace } = canary.metadata
  const { kind, name } = canary.spec.targetRef
  if (canary.spec.provider === "oam")
    throw new Failure(
      `canary/${canary.metadata.name} has a revision of an OAM component for its target: change the image in the component, and its runtime makes a revision`,
    )
  const known = kind === "Service" ? undefined : workloadKind(kind)
  if (!known)
    throw new Failure(
      `canary/${canary.metadata.name} has a Service for its target, which has no image: set that of the workload behind it`,
    )
  const resource = resourceOf(known)
  for (let attempt = 1; ; attempt++) {
    const target = await client.get<Target>(resource, { name, namespace }).catch(error => {
      if (isFailure(error, "NotFound"))
        throw new Failure(`canary/${canary.metadata.name}: ${kind} ${name} does not exist in namespace ${namespace}`)
      throw error
    })
    const title = `${known.shortNames[0]}/${name}`
    const changes = changesOf(target, settings, title)
    const lines = changes.map(
      ({ container, from, to }) => `${title} container ${container}: ${printable(from)} → ${to}`,
    )
    if (changes.length === 0)
      return { lines: [`${title}: nothing changes, it has these images already`], isChanged: false }
    const body = { metadata: { resourceVersion: target.metadata.resourceVersion }, ...templateOf(changes) }
    try {
      await client.patch(resource, { name, namespace }, { type: "strategic", body }, { dryRun })
      return { lines, isChanged: true }
    } catch (error) {
      if (!isFailure(error, "Conflict") || attempt === attempts) throw error
    }
  }
}

type ImageChange = { list: "containers" | "initContainers"; container: string; from: string; to: string }

function changesOf({ spec }: Target, settings: readonly Setting[], title: string): ImageChange[] {
  const { containers = [], initContainers = [] } = spec?.template?.spec ?? {}
  const all = [
    ...containers.map(each => ({ ...each, list: "containers" as const })),
    ...initContainers.map(each => ({ ...each, list: "initContainers" as const })),
  ]
  const names = all.map(({ name }) => name)
  return settings.flatMap(({ container, image }) => {
    if (container === undefined && containers.length !== 1)
      throw new UsageError(`${title} has the containers ${names.join(", ")}: write CONTAINER=${image}`)
    const found = all.find(({ name }) => name === (container ?? containers[0]!.name))
    if (!found) {
      const meant = closest(container!, names)
      throw new Failure(
        `${title} has no container ${container}, only ${names.join(", ")}${meant ? `; did you mean ${meant}?` : ""}`,
      )
    }
    const { list, name, image: from = "" } = found
    return sameImage(from, image) ? [] : [{ list, container: name, from, to: image }]
  })
}

function templateOf(changes: readonly ImageChange[]): object {
  const of = (list: ImageChange["list"]) => {
    const own = changes.filter(each => each.list === list).map(({ container, to }) => ({ name: container, image: to }))
    return own.length > 0 ? { [list]: own } : {}
  }
  return { spec: { template: { spec: { ...of("containers"), ...of("initContainers") } } } }
}

function whatIsNext({ metadata, spec, status }: SeenCanary, program: string): string {
  const title = `canary/${metadata.name}`
  if (spec.suspend) return `spec.suspend is true: the change waits until ${program} resume ${title}`
  const run = status?.run
  return run
    ? `Run ${run.id} ends, and another one proves this change.`
    : "A run proves the change before it gets all requests."
}
