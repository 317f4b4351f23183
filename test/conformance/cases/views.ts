import type { Json, Kubectl, KubectlOptions, Script } from "../harness/script.ts"

/** What of a workload and of pods is compared: what they say, without when they said it. */

type Condition = { type: string; status: string; reason?: string; message?: string }

const conditionsOf = (object: Json): string[] =>
  (object.status?.conditions ?? [])
    .map(({ type, status, reason = "", message = "" }: Condition) => `${type} ${status} ${reason} ${message}`.trim())
    .sort()

export function workload({ metadata, status = {} }: Json): Json {
  const { conditions: _, ...counts } = status
  return {
    generation: metadata.generation,
    revision: metadata.annotations?.["deployment.kubernetes.io/revision"],
    ...counts,
    conditions: conditionsOf({ status }),
  }
}

export async function replicaSets(on: Script): Promise<Json> {
  const { items } = await on.quietly.list("replicasets")
  return items
    .map(({ metadata, spec, status }: Json) => ({
      name: metadata.name,
      labels: metadata.labels,
      annotations: metadata.annotations,
      image: spec.template.spec.containers[0].image,
      wanted: spec.replicas,
      status: { ...status, conditions: undefined, observedGeneration: undefined },
      owner: metadata.ownerReferences?.map(({ kind, name, controller }: Json) => `${kind}/${name} ${controller}`),
    }))
    .sort((a: Json, b: Json) => revisionOf(a) - revisionOf(b))
}

const revisionOf = ({ annotations }: Json) => Number(annotations?.["deployment.kubernetes.io/revision"] ?? 0)

/** The pods of a case, without their names where those are invented. */
export async function pods(on: Script): Promise<Json> {
  const { items } = await on.quietly.list("pods")
  return items
    .filter(({ metadata }: Json) => !metadata.deletionTimestamp)
    .map(({ metadata, spec, status }: Json) => ({
      name: metadata.name,
      // By their names: what follows sorts pods by this text.
      labels: metadata.labels && Object.fromEntries(Object.entries(metadata.labels).sort()),
      owner: metadata.ownerReferences?.map(({ kind, name }: Json) => `${kind}/${name}`),
      finalizers: metadata.finalizers,
      image: spec.containers[0].image,
      phase: status.phase,
      isReady: status.conditions?.some(({ type, status }: Condition) => type === "Ready" && status === "True") ?? false,
    }))
    .map((pod: Json) => [JSON.stringify({ ...pod, name: metaless(pod.name) }), pod])
    .sort(([a]: [string], [b]: [string]) => (a < b ? -1 : 1))
    .map(([, pod]: [string, Json]) => pod)
}

const metaless = (name: string) => name.replace(/-[a-z0-9]{5}$/, "")

/** Runs kubectl, and returns once it has written what it writes when it has begun. */
export async function begun(
  on: Script,
  args: string[],
  hasBegun: (written: { stdout: string; stderr: string }) => boolean,
  options: KubectlOptions = {},
): Promise<{ ended: Promise<Kubectl> }> {
  let isSo = false
  const ended = on.kubectl(args, {
    ...options,
    onWritten: written => {
      isSo ||= hasBegun(written)
    },
  })
  await on.until(`kubectl ${args[0]} has begun`, async () => isSo)
  return { ended }
}

type AreThere = (lines: string[]) => boolean

/** So many different ones. */
export const atLeast =
  (count: number): AreThere =>
  lines =>
    lines.length >= count

/**
 * The events of an object, each message once, in the order of their first occurrence. Events are written on the
 * side, on a busy machine seconds after the state that they belong to: those that must come are awaited, and then it is
 * asked for until nothing more comes.
 */
export async function eventsOf(on: Script, kind: string, name?: string, areThere = atLeast(0)): Promise<string[]> {
  let told = await on.until(`the events of ${kind} ${name ?? ""} are there`, async () => {
    const now = await toldNow(on, kind, name)
    return areThere(now) && now
  })
  for (;;) {
    await on.pause(500)
    const now = await toldNow(on, kind, name)
    if (now.length === told.length) return now
    told = now
  }
}

async function toldNow(on: Script, kind: string, name: string | undefined): Promise<string[]> {
  const { items } = await on.quietly.list("events")
  const sentences = items
    .filter(({ involvedObject }: Json) => involvedObject.kind === kind && (!name || involvedObject.name === name))
    .sort((a: Json, b: Json) => toldAt(a) - toldAt(b) || versionOf(a) - versionOf(b))
    .map(({ type, reason, message, source, reportingComponent, involvedObject }: Json) =>
      [type, reason, source?.component || reportingComponent, involvedObject.fieldPath ?? "", timeless(message)].join(
        " | ",
      ),
    )
  return [...new Set<string>(sentences)]
}

const timeless = (message: string) =>
  message.replace(
    / in [\d.]+(ms|s) \([\d.]+(ms|s) including waiting\)\. Image size: \d+ bytes/,
    " in DURATION. Image size: SIZE",
  )

/** The name of an event ends with the time of its first occurrence, in nanoseconds; two may share a millisecond. */
const toldAt = ({ metadata }: Json) =>
  Math.floor(Number.parseInt(metadata.name.slice(metadata.name.lastIndexOf(".") + 1), 16) / 1e6)
const versionOf = ({ metadata }: Json) => Number(metadata.resourceVersion)

const stateOf = (state: Json): Json => {
  const [[name, { startedAt: _s, finishedAt: _f, containerID: _c, ...rest }] = ["none", {}]] = Object.entries(
    state ?? {},
  ) as [string, Json][]
  return { [name]: rest }
}

/** The status of a pod without times and identities. */
export function podStatus({ metadata, status }: Json): Json {
  const containers = (list: Json[] = []) =>
    list.map(({ containerID, state, lastState, imageID, ...rest }) => ({
      ...rest,
      state: stateOf(state),
      lastState: stateOf(lastState),
      hasImage: imageID !== "",
      hasContainer: containerID !== undefined,
      volumeMounts: undefined,
    }))
  return {
    generation: metadata.generation,
    observedGeneration: status.observedGeneration,
    phase: status.phase,
    reason: status.reason,
    message: status.message,
    qosClass: status.qosClass,
    conditions: conditionsOf({ status }),
    init: containers(status.initContainerStatuses),
    containers: containers(status.containerStatuses),
    fields: Object.keys(status).sort(),
  }
}

/** What each container waits for, if any does. */
export function waits({ status }: Json): string {
  return [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    .filter(({ state }: Json) => state?.waiting)
    .map(({ name, state }: Json) => `${name} ${state.waiting.reason}`)
    .join(", ")
}
