import { Readable } from "node:stream"
import type { Condition } from "#api/v1alpha1/serviceimage/index.ts"
import { applyMergePatch } from "#cluster-sim/schema/merge-patch.ts"
import type { Seen } from "#operations/rollout.ts"
import type { Client, ListOptions, Patch, WatchEvent, WriteOptions } from "#runtime/client/client.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { type KubeObject, keyOf, type ObjectName, type Resource } from "#runtime/resource.ts"
import type { World } from "./command.ts"

/** A cluster in a map, for the tests of commands: enough of list, watch and writes, and trouble when asked for. */
export function testCluster(...initial: KubeObject[]) {
  const objects = new Map<string, KubeObject>()
  const watchers = new Set<(event: WatchEvent<KubeObject> | "cut") => void>()
  const calls: string[] = []
  let version = 100
  const trouble = new Map<string, KubeError>()
  const interlopers: (() => void)[] = []
  const tell = (event: WatchEvent<KubeObject> | "cut") => {
    for (const watcher of watchers) watcher(event)
  }
  const put = (object: KubeObject): KubeObject => {
    const key = keyOf(object.metadata)
    const stored = {
      ...object,
      metadata: { uid: `uid-${key}`, ...object.metadata, resourceVersion: String(++version) },
    }
    const type = objects.has(key) ? "MODIFIED" : "ADDED"
    objects.set(key, stored)
    tell({ type, object: stored })
    return stored
  }
  const remove = (name: ObjectName) => {
    const found = objects.get(keyOf(name))
    objects.delete(keyOf(name))
    if (found)
      tell({
        type: "DELETED",
        object: { ...found, metadata: { ...found.metadata, resourceVersion: String(++version) } },
      })
    return found
  }
  for (const object of initial) put(object)

  const note = (verb: string, resource: Resource, name = "") => {
    calls.push(`${verb} ${resource.plural}${name ? ` ${name}` : ""}`)
    const failure = trouble.get(verb)
    if (failure) throw failure
  }
  const missing = (name: ObjectName) =>
    new KubeError("NotFound", `${keyOf(name)} not found`, { status: 404, reason: "NotFound" })
  const client = {
    async get(resource: Resource, name: ObjectName) {
      note("get", resource, keyOf(name))
      const found = objects.get(keyOf(name))
      if (!found) throw missing(name)
      return found
    },
    async list(resource: Resource, options: ListOptions = {}) {
      note("list", resource)
      const wanted = options.fieldSelector?.replace("metadata.name=", "")
      const [label = "", value] = options.labelSelector?.split("=") ?? []
      const items = [...objects.values()].filter(
        ({ metadata }) =>
          (wanted === undefined || metadata.name === wanted) &&
          (options.namespace === undefined || metadata.namespace === options.namespace) &&
          (value === undefined || metadata.labels?.[label] === value),
      )
      return { metadata: { resourceVersion: String(version) }, items }
    },
    async *watch(resource: Resource, options: { fieldSelector?: string }, signal: AbortSignal) {
      note("watch", resource)
      const wanted = options.fieldSelector?.replace("metadata.name=", "")
      const queue: (WatchEvent<KubeObject> | "cut")[] = []
      let wake = () => {}
      const watcher = (event: WatchEvent<KubeObject> | "cut") => {
        queue.push(event)
        wake()
      }
      watchers.add(watcher)
      const onAbort = () => wake()
      signal.addEventListener("abort", onAbort)
      try {
        for (;;) {
          signal.throwIfAborted()
          const event = queue.shift()
          if (event === undefined) await new Promise<void>(resolve => (wake = resolve))
          else if (event === "cut") throw new KubeError("Unreachable", "connection reset")
          else if (event.type === "ERROR" || wanted === undefined || event.object.metadata.name === wanted) yield event
        }
      } finally {
        watchers.delete(watcher)
        signal.removeEventListener("abort", onAbort)
      }
    },
    async create(resource: Resource, object: KubeObject) {
      note("create", resource, keyOf(object.metadata))
      if (objects.has(keyOf(object.metadata))) throw new KubeError("Exists", "already exists", { status: 409 })
      return put(object)
    },
    async replace(resource: Resource, object: KubeObject) {
      note("replace", resource, keyOf(object.metadata))
      return put(object)
    },
    async patch(resource: Resource, name: ObjectName, patch: Patch, options: WriteOptions = {}) {
      note(options.dryRun ? "dry-run patch" : "patch", resource, keyOf(name))
      interlopers.shift()?.()
      const found = objects.get(keyOf(name))
      if (!found) throw missing(name)
      const merged = applyMergePatch(found, patch.body) as KubeObject
      if (merged.metadata.resourceVersion !== found.metadata.resourceVersion)
        throw new KubeError("Conflict", "the object has been modified", { status: 409, reason: "Conflict" })
      const isSameSpec = JSON.stringify(specOf(merged)) === JSON.stringify(specOf(found))
      const generation = (found.metadata.generation ?? 0) + (isSameSpec ? 0 : 1)
      const changed = { ...merged, metadata: { ...merged.metadata, generation } }
      return options.dryRun ? changed : put(changed)
    },
    async delete(resource: Resource, name: ObjectName) {
      note("delete", resource, keyOf(name))
      if (!remove(name)) throw missing(name)
    },
    close() {},
  } as unknown as Client
  return {
    client,
    objects,
    calls,
    put,
    remove,
    tell,
    fail: (verb: string, error: KubeError) => trouble.set(verb, error),
    heal: () => trouble.clear(),
    /** Done between a read and the patch that follows it; once for each call. */
    meanwhile: (act: () => void) => interlopers.push(act),
  }
}

const specOf = (object: KubeObject) => (object as KubeObject & { spec?: unknown }).spec

/** A world whose words are kept, and whose time stands still until it is told to go on. */
export function testWorld(cluster: { client: Client }, over: Partial<World> = {}) {
  const said: string[] = []
  const drawn: string[] = []
  const written: string[] = []
  const clock = virtualClock(Date.parse("2026-01-01T00:10:00Z"))
  const interrupt = new AbortController()
  const world: World = {
    program: "aim",
    version: "1.2.3",
    commands: [],
    variables: {},
    view: { isTerminal: false, columns: 80, colours: false },
    clock,
    random: seededRandom(1),
    stdin: Readable.from([]),
    signal: interrupt.signal,
    say: line => void said.push(line),
    write: async text => void written.push(text),
    draw: frame => void drawn.push(frame),
    connect: async () => cluster.client,
    reach: async () => {
      throw new Error("these commands bring no client of their own")
    },
    ...over,
  }
  return { world, said, drawn, written, clock, interrupt: () => interrupt.abort(new Error("interrupted")) }
}

export type Words = {
  generation?: number
  observed?: number
  conditions?: Record<string, [status: string, reason: string, message?: string]>
  status?: object
  spec?: object
  annotations?: Record<string, string>
}

/** A ServiceImage of two tiers, three of five objects done, unless said otherwise. */
export function serviceImage(
  name: string,
  { generation = 1, observed = generation, conditions, status, spec, annotations }: Words = {},
): Seen {
  const condition = ([type, [value, reason, message = ""]]: [string, [string, string, string?]]) =>
    ({
      type,
      status: value,
      reason,
      message,
      observedGeneration: observed,
      lastTransitionTime: "2026-01-01T00:00:00Z",
    }) as Condition
  return {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: { name, generation, creationTimestamp: "2026-01-01T00:00:00Z", ...(annotations && { annotations }) },
    spec: {
      target: {
        apiVersion: "services.example.com/v1alpha1",
        kind: "Dicom",
        image: { paths: ["spec.image"] },
        health: "",
      },
      defaultImage: "registry.example.com/dicom:v2",
      tiers: [
        { upgradeTier: "", priority: 0, image: "" },
        { upgradeTier: "earlyAccess", priority: 1, image: "registry.example.com/dicom:v3" },
      ],
      ...spec,
    } as unknown as Seen["spec"],
    status: {
      observedGeneration: observed,
      conditions: Object.entries(
        conditions ?? {
          Complete: ["False", "WaitingForHealth", "2 objects are on their way"],
          InProgress: ["True", "RollingOut"],
        },
      ).map(condition as never),
      currentPriority: 1,
      startedAt: "2026-01-01T00:05:48Z",
      tierStatus: [
        tierStatus({ upgradeTier: "earlyAccess", total: 5, updated: 5, upToDate: 3, is: "InProgress" }),
        tierStatus({ upgradeTier: "", total: 7, updated: 0, upToDate: 0, is: "Waiting" }),
      ],
      ...status,
    } as Seen["status"],
  }
}

type TierWords = { is: "Complete" | "InProgress" | "Waiting"; reason?: string } & Record<string, unknown>

export const tierStatus = ({ is, reason, ...counts }: TierWords) => ({
  conditions: ["Complete", "InProgress"].map(type => ({
    type,
    status: is === type ? "True" : "False",
    ...(reason && { reason }),
  })),
  ...counts,
})

/** The operation of a status, as the controller writes it. */
export const operation = (id: string, phase: string, over: object = {}) => ({
  id,
  phase,
  startedAt: "2026-01-01T00:05:48Z",
  images: { "": "registry.example.com/dicom:v2", earlyAccess: "registry.example.com/dicom:v3" },
  total: 12,
  upToDate: 3,
  failed: 0,
  ...over,
})

export const complete = (generation = 1, observed = generation) =>
  ({
    generation,
    observed,
    conditions: { Complete: ["True", "AllUpToDate", "12 objects run their image"], Stalled: ["False", "NotStalled"] },
    status: {
      completedAt: "2026-01-01T00:09:50Z",
      tierStatus: [
        tierStatus({ upgradeTier: "earlyAccess", total: 5, updated: 5, upToDate: 5, is: "Complete" }),
        tierStatus({ upgradeTier: "", total: 7, updated: 7, upToDate: 7, unmanaged: 1, is: "Complete" }),
      ],
    },
  }) satisfies Words as Words

export const halted = {
  conditions: {
    Complete: ["False", "AllFailed"],
    Stalled: ["True", "AllFailed", "no object of earlyAccess can pull the image"],
    Halted: ["True", "AllFailed", "no object of earlyAccess can pull the image"],
  },
  status: {
    tierStatus: [
      tierStatus({
        upgradeTier: "earlyAccess",
        total: 5,
        updated: 5,
        upToDate: 0,
        is: "InProgress",
        failures: [{ reason: "ImagePullFailed", scope: "All", count: 5, examples: ["shop/a", "shop/b"] }],
      }),
    ],
  },
} satisfies Words as Words
