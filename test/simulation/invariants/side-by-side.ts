import type { Json } from "#cluster-sim/index.ts"
import type { Commit, Run } from "#test/support/record.ts"
import { rootOf } from "./failover.ts"
import { decisionOf, idOf, keyOf, timeOf } from "./reading.ts"

// S32: updates in place and failovers of pulls both change the images of running pods, and never the same pod at the
// same time. Read from what was committed, without the code that is judged by it.

const [inPlace, held] = ["autoimagemanager.io/in-place", "autoimagemanager.io/held"]
/** How long a failover has a pod to itself, and the precision of its record. */
const [repairMs, precisionMs] = [60_000, 1000]
type Change = { commit: Commit; before: Json; container: string; from: string; to: string }

/** Everything that is wrong with how both parts took turns. */
export function sideBySideViolationsOf(run: Run): string[] {
  if (!run.commits.some(({ object }) => object.kind === "AlternateImageSource")) return []
  const live = new Map<string, Json>(run.initial.map(object => [idOf(object), object]))
  const found: string[] = []
  for (const commit of run.commits) {
    const { object, before, type } = commit
    if (object.kind === "Pod" && before?.metadata.uid === object.metadata.uid)
      for (const change of changesOf(commit, before!))
        found.push(...[...failedOver(change, live), ...updated(change)].map(what => `S32 ${tell(change)} ${what}`))
    if (type === "DELETED") live.delete(idOf(object))
    else live.set(idOf(object), object)
  }
  return found
}

const tell = ({ commit, container, from, to }: Change) =>
  `pod ${keyOf(commit.object)} ${container} at ${commit.revision}: ${from} → ${to}`

function changesOf(commit: Commit, before: Json): Change[] {
  const images = new Map(containersOf(before).map(({ name, image }) => [name, image as string]))
  return containersOf(commit.object).flatMap(({ name, image }) => {
    const from = images.get(name)
    return from === undefined || from === image ? [] : [{ commit, before, container: name, from, to: image }]
  })
}

const containersOf = ({ spec }: Json): Json[] => [...(spec.initContainers ?? []), ...spec.containers]
const isNew = (name: (object: Json) => unknown, { commit, before }: Change) =>
  JSON.stringify(name(commit.object)) !== JSON.stringify(name(before))
const isFailover = (decision: Json) => String(decision.by ?? "").startsWith("alternateimagesource/")
const markOf = ({ metadata }: Json): Json | undefined => parsed(metadata.annotations?.[inPlace])
const startedAs = ({ status }: Json, container: string): string =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find(
    ({ name }: Json) => name === container,
  )?.containerID ?? ""

function parsed(text: string | undefined): Json | undefined {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A failover while an update in place works on the container: changed, not proven, and its workload held for it. */
function failedOver(change: Change, live: ReadonlyMap<string, Json>): string[] {
  const { commit, before, container, from } = change
  if (!isFailover(decisionOf(commit.object)) || !isNew(decisionOf, change)) return []
  const mark = markOf(before)
  if (!mark || mark.failed || mark.to?.[container] !== from) return []
  if (startedAs(before, container) !== (mark.was?.[container]?.id ?? "")) return []
  const { annotations = {}, labels = {} } = rootOf(live, before)?.metadata ?? {}
  const hold = parsed(annotations[held])
  const isOfHold = hold !== undefined && String(mark.operation).startsWith(`${hold.generation}-`)
  return labels[held] !== undefined && isOfHold ? ["was failed over while an update in place worked on it"] : []
}

/** An update in place of a container that a failover has just changed, or that stands for this very image. */
function updated(change: Change): string[] {
  const { commit, before, container, from, to } = change
  if (!isNew(markOf, change)) return []
  const decision = decisionOf(before)
  if (!isFailover(decision)) return []
  const isWaiting = decision.to === from && startedAs(before, container) === ""
  const isSoon = commit.at - timeOf(decision.at) < repairMs - precisionMs
  const isSame = decision.was?.[container] === to && versionOf(from) === versionOf(to)
  return [
    ...(isWaiting && isSoon ? ["was updated in place while a failover worked on it"] : []),
    ...(isSame ? ["was updated in place, and stood for that image already"] : []),
  ]
}

const versionOf = (image: string) => image.slice(image.lastIndexOf("/")).replace(/^[^:@]*/, "")
