import type { Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Commit, Run } from "#test/support/record.ts"
import type { RuntimeCall } from "#test/support/runtime-log.ts"
import { sameImage } from "./images.ts"

// What always holds where agents pull images and stop containers, read from what was committed and from the calls that
// the runtimes were asked for, not from the code that is judged by it.

/** Everything that is wrong with the work on nodes in a run, each with the invariant it breaks. */
export function nodeWorkViolationsOf(run: Run): string[] {
  const { calls = [], pulls = [] } = run
  if (calls.length === 0 && pulls.length === 0) return []
  return [
    ...atOnce(calls).map(what => `S16 ${what}`),
    ...disks(calls).map(what => `S16 ${what}`),
    ...proofs(run).map(what => `S17 ${what}`),
    ...counts(run).map(what => `S17 ${what}`),
    ...writes(run).map(what => `S18 ${what}`),
    ...wantedPulls(run).map(what => `S25 ${what}`),
    ...stops(run),
  ]
}

/** How old a picture may be where nothing delays it. */
const usualLagMs = 10_000

const tell = ({ method, subject, node, agent, after }: RuntimeCall) =>
  `${method} ${subject} on ${node} by agent ${agent} after ${after}`

const isPull = ({ method }: RuntimeCall) => method === "pullImage"
const isKind = (kind: string) => (commit: Commit) => commit.object.kind === kind

/** No more pulls under way on a node, and at a registry, than are allowed. */
function atOnce(calls: readonly RuntimeCall[]): string[] {
  const pulls = calls.filter(isPull)
  const moments = pulls
    .flatMap(call => [
      { call, at: call.begun, by: 1 },
      ...(call.ended === undefined ? [] : [{ call, at: call.ended, by: -1 }]),
    ])
    .sort((a, b) => a.at - b.at)
  const underWay = new Map<string, number>()
  const problems: string[] = []
  const count = (place: string, by: number, most: number, call: RuntimeCall) => {
    const now = (underWay.get(place) ?? 0) + by
    underWay.set(place, now)
    if (by > 0 && now > most) problems.push(`${tell(call)}: ${now} pulls are under way ${place}, ${most} are allowed`)
  }
  for (const { call, by } of moments) {
    const { pullsPerNode, pullsPerRegistry } = call.pull!.limits
    count(`on ${call.node} ${call.nodeUid}`, by, pullsPerNode, call)
    count(`at ${hostOf(call.subject)}`, by, pullsPerRegistry, call)
  }
  return problems
}

function hostOf(reference: string): string {
  const [first = "", ...rest] = reference.split("/")
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : "docker.io"
}

/** Nothing is pulled to a disk from which the kubelet removes images; a newer image of a tag that is there may be. */
const disks = (calls: readonly RuntimeCall[]) =>
  calls.flatMap(call => {
    if (!call.pull || call.pull.wasThere) return []
    const { usedPercent, limits } = call.pull
    return usedPercent > limits.thresholdPercent ? [`${tell(call)}: ${Math.round(usedPercent)} % were used`] : []
  })

type Tag = Json
type Entry = { reference: string; tag: Tag; told: Json | undefined }

/** The images that a NodeImage asks for, and what its agent says of each. */
function entriesOf({ spec, status }: Json): Entry[] {
  return Object.entries<Json>(spec?.images ?? {}).flatMap(([name, { tags = [] }]) =>
    tags.map((tag: Tag) => ({
      reference: tag.tag.startsWith("sha256:") ? `${name}@${tag.tag}` : `${name}:${tag.tag}`,
      tag,
      told: status?.imageStatuses?.[name]?.tags.find((each: Json) => each.tag === tag.tag),
    })),
  )
}

const nodeUidOf = ({ metadata }: Json): string =>
  metadata.ownerReferences?.find((each: Json) => each.kind === "Node")?.uid ?? ""
const isThere = ({ told, tag }: Entry) => told?.phase === "Succeeded" && told.version >= tag.version

/** Where it is said that an image is there, the runtime of that very node has shown it since it was asked for. */
function proofs({ commits, calls = [] }: Run): string[] {
  const logged = new Set(calls.map(({ node }) => node))
  const asked = new Map<string, number>()
  return commits.filter(isKind("NodeImage")).flatMap(({ object, before, revision, type }) => {
    if (type === "DELETED") return []
    const { name, uid } = object.metadata
    const idOf = ({ reference, tag }: Entry) => `${uid} ${reference} ${tag.version}`
    for (const entry of entriesOf(object)) if (!asked.has(idOf(entry))) asked.set(idOf(entry), revision)
    const known = new Set(before ? entriesOf(before).filter(isThere).map(idOf) : [])
    const news = entriesOf(object).filter(entry => isThere(entry) && !known.has(idOf(entry)))
    return news.flatMap(entry => {
      if (!logged.has(name)) return []
      const { imageID } = entry.told!
      const since = asked.get(idOf(entry))!
      const answers = calls.filter(
        call =>
          call.nodeUid === nodeUidOf(object) &&
          call.subject === entry.reference &&
          call.imageId === imageID &&
          call.after >= since &&
          (call.endedAfter ?? Infinity) < revision,
      )
      const pulled = entry.tag.imagePullPolicy === "Always" ? answers.find(isPull) : undefined
      if (entry.tag.imagePullPolicy === "Always" && !pulled)
        return [`${name} at ${revision}: ${entry.reference} is said to be there, and was not pulled`]
      const shown = answers.some(({ method, begun }) => method === "imageStatus" && begun > (pulled?.ended ?? -1))
      return shown ? [] : [`${name} at ${revision}: ${entry.reference} is said to be there, and was not shown`]
    })
  })
}

/** A job counts a node only after its NodeImage has said so, for this job, of the node as it is now. */
function counts({ commits, lagMs }: Run): string[] {
  const proven = new Map<string, { reference: string; nodeUid: string }[]>()
  const goneAt = new Map<string, Instant>()
  const problems: string[] = []
  for (const { object, type, revision, at, before } of commits) {
    if (object.kind === "Node" && type === "DELETED") goneAt.set(object.metadata.uid, at)
    if (object.kind === "NodeImage" && type !== "DELETED")
      for (const entry of entriesOf(object).filter(isThere))
        for (const { uid } of entry.tag.ownerReferences ?? [])
          proven.set(uid, [...(proven.get(uid) ?? []), { reference: entry.reference, nodeUid: nodeUidOf(object) }])
    if (object.kind !== "ImagePullJob" || !object.status) continue
    const { succeeded = 0 } = object.status
    if (succeeded <= (before?.status?.succeeded ?? 0)) continue
    const nodes = new Set(
      (proven.get(object.metadata.uid) ?? [])
        .filter(({ reference }) => sameImage(reference, object.spec.image))
        .filter(({ nodeUid }) => (goneAt.get(nodeUid) ?? Infinity) > at - lagMs - usualLagMs)
        .map(({ nodeUid }) => nodeUid),
    )
    if (succeeded > nodes.size)
      problems.push(
        `${object.metadata.name} at ${revision}: ${succeeded} nodes are counted, ${nodes.size} have said so`,
      )
  }
  return problems
}

const ours =
  /^\/apis\/autoimagemanager\.io\/[^/]+\/(namespaces\/[^/]+\/)?(nodeimages|imagepulljobs|imagelistpulljobs|containerrecreaterequests)([/?]|$)/

/** Pre-caching writes no pod, no workload and no node. */
const writes = ({ pulls = [] }: Run) =>
  pulls
    .filter(({ path }) => !ours.test(path))
    .map(({ method, path, process }) => `${method} ${path} by process ${process}`)

/** An agent pulls only what the NodeImage of its own node asks for. */
function wantedPulls({ commits, calls = [], lagMs }: Run): string[] {
  const states = commits.filter(isKind("NodeImage"))
  return calls.filter(isPull).flatMap(call => {
    const own = states.filter(({ object, revision }) => object.metadata.name === call.node && revision <= call.after)
    const old = own.findLastIndex(({ at }) => at < call.at - lagMs - usualLagMs)
    const seen = own.slice(Math.max(0, old)).filter(({ type }) => type !== "DELETED")
    const isAsked = seen.some(({ object }) => entriesOf(object).some(({ reference }) => reference === call.subject))
    return isAsked ? [] : [`${tell(call)}: its NodeImage did not ask for it`]
  })
}

const runtimeId = (containerID: string) => containerID.replace(/^[a-z0-9.-]+:\/\//, "")

/**
 * A stop is of a container that a request of this node recorded, of the request's pod, and its beginning was written
 * before. For one request and container it is only ever one.
 */
function stops({ commits, calls = [] }: Run): string[] {
  const requests = commits.filter(isKind("ContainerRecreateRequest"))
  const stopped = new Map<string, Set<string>>()
  return calls
    .filter(({ method }) => method === "stopContainer")
    .flatMap(call => {
      const recorded = requests.flatMap(({ object, revision }) =>
        revision > call.after || object.status?.nodeName !== call.node
          ? []
          : (object.status.containerRecreateStates ?? [])
              .filter((state: Json) => runtimeId(state.containerID ?? "") === call.subject)
              .map((state: Json) => ({ object, state })),
      )
      if (recorded.length === 0) return [`S25 ${tell(call)}: no request of this node recorded it`]
      const isOfPod = recorded.some(({ object }) => !call.podUid || object.status.podUID === call.podUid)
      if (!isOfPod) return [`S25 ${tell(call)}: it belongs to pod ${call.podUid}`]
      const announced = recorded.filter(({ state }) => state.stopTime !== undefined)
      if (announced.length === 0) return [`S26 ${tell(call)}: its stop was not written before`]
      return announced.flatMap(({ object, state }) => {
        const place = `${object.metadata.uid} ${state.name}`
        const ids = (stopped.get(place) ?? new Set()).add(call.subject)
        stopped.set(place, ids)
        return ids.size > 1 ? [`S26 ${tell(call)}: ${place} has stopped ${[...ids].join(", ")}`] : []
      })
    })
}
