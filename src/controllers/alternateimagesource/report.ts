import {
  type AlternateImageSource,
  type AlternateImageSourceStatus,
  type Condition,
  type ConditionType,
  type Incident,
  maxTargetsAvailable,
  type Reason,
  type Switch,
  type TargetAvailable,
} from "#api/v1alpha1/alternateimagesource/index.ts"
import { repositoryTextOf, whyUseless } from "#core/image/equivalent.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { clip, clipMiddle, counted, nameSome } from "#lib/text.ts"
import { conditionWriter } from "#runtime/conditions.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { Done } from "./apply.ts"
import { type CheckName, checkOn, needsPerson, type SourceFacts } from "./checks.ts"
import { most } from "./claims.ts"
import { type Decision, isCrashing } from "./group.ts"
import { untold } from "./incident.ts"
import { decideOn, type Plan, type Snapshot } from "./plan.ts"
import type { Entry, Scene } from "./sources.ts"
import { targetsTold } from "./targets-told.ts"

/** How many writes of a decision the server accepted. */
export type Accepted = ReadonlyMap<Decision, number>

/** Reports after acting, so that nothing is reported that did not happen. */
export function report(
  snapshot: Snapshot,
  { decisions: wanted }: Plan,
  done: Done | undefined,
  now: Instant,
): Report<AlternateImageSourceStatus> | undefined {
  const { source, seen } = snapshot
  if (seen.is === "Listing")
    return seen.forbidden.length > 0 ? { status: statusUnlisted(source, seen.forbidden, now) } : undefined
  if (seen.is === "TooMany") return { status: statusTooMany(source, now) }
  const { accepted, refused, refusal, isAwaiting } = done!
  if (isAwaiting) return undefined
  // A refused write is reported as refused, not as being done.
  const isOpen = (decision: Decision) => refused !== undefined && !accepted.has(decision)
  const decisions = wanted.map(decision =>
    isOpen(decision) ? decideOn({ ...snapshot, refusal }, decision.group) : decision,
  )
  return {
    status: statusOf(source, seen, decisions, accepted, now),
    episodes: storyOf(source.status, decisions, accepted),
  }
}

/** The containers of a source as its status lists them, and what that says about the source as a whole. */
export function sumUp(
  { spec, status: before }: AlternateImageSource,
  { roster, claimed, missing }: Pick<Scene, "roster" | "claimed" | "missing">,
  decisions: readonly Decision[],
  accepted: Accepted,
  now: Instant,
): { entries: TargetAvailable[]; facts: SourceFacts } {
  const known = new Map(before?.targetsAvailable.map(entry => [idOf(entry), entry]))
  const decided = new Map(
    decisions.map(decision => [`${decision.group.workload.uid}/${decision.group.container}`, decision]),
  )
  const { all, total } = worthTelling(roster, decisions, decided, known)
  const entries = all.map(entry => {
    const id = `${entry.workload.uid}/${entry.container.name}`
    const decision = decided.get(id)
    return entryOf(entry, known.get(id), decision, (decision && accepted.get(decision)) ?? 0, now)
  })
  const troubled = decisions.filter(
    decision =>
      decision.group.failing.length + decision.repairs.length > 0 && !isMended(decision, accepted.get(decision) ?? 0),
  )
  const { imageSourceReplacements, policy } = spec
  return {
    entries,
    facts: {
      troubled,
      worst: [...troubled].sort((a, b) => gravity(b.reason) - gravity(a.reason))[0],
      crashing: decisions.filter(({ group }) => isCrashing(group, now)),
      missing,
      claimed,
      useless: imageSourceReplacements.flatMap(each => whyUseless(each, policy.disabledRepositories) ?? []),
      elsewhere: all.flatMap((entry, index) =>
        fromElsewhere(entry, entries[index]!, decided.get(`${entry.workload.uid}/${entry.container.name}`)),
      ),
      staying: decisions.filter(staysElsewhere).length,
      total,
    },
  }
}

/** The status after acting: it has a switch only if the server accepted it. */
export function statusOf(
  source: AlternateImageSource,
  scene: Pick<Scene, "roster" | "claimed" | "missing">,
  decisions: readonly Decision[],
  accepted: Accepted,
  now: Instant,
): AlternateImageSourceStatus {
  const { metadata, status: before } = source
  const { generation = 0 } = metadata
  const { entries, facts } = sumUp(source, scene, decisions, accepted, now)
  const { troubled, crashing, useless, staying, elsewhere, missing, total } = facts
  const switched = elsewhere.length
  const verdict = verdictOn(facts)
  const condition = conditionWriter<Condition>(generation, now)
  const write = (...[type, isTrue, reason, message]: [ConditionType, boolean, Reason, string]) =>
    condition(before?.conditions, type, isTrue, reason, message)
  const down = troubled.filter(({ reason }) => reason === "AllSourcesDown" || reason === "NotFoundAnywhere")
  const message = clipMiddle(verdict.message, 256)
  return {
    observedGeneration: generation,
    conditions: [
      write(
        "Ready",
        troubled.length + missing.length + useless.length + crashing.length === 0,
        verdict.reason,
        message,
      ),
      write(
        "Switched",
        switched > 0,
        switched > staying ? "Switched" : staying > 0 ? "SwitchedBack" : "Watching",
        switched > 0 ? clip(nameSome(elsewhere.slice(0, 2), switched), 256) : "",
      ),
      write("AllSourcesDown", down.length > 0, down[0]?.reason ?? "Watching", clipMiddle(down[0]?.message ?? "", 256)),
      write(
        "Stalled",
        verdict.isStalled,
        verdict.isStalled ? verdict.reason : "NothingToDo",
        verdict.isStalled ? message : "",
      ),
    ],
    targetsAvailable: shortened(entries),
    targets: total,
    switched,
    incidents: troubled.length,
    summary: `${switched} switched, ${troubled.length} failing`,
  }
}

/** The right to list was taken from us. Nothing new is known about containers, so their last status stays. */
function statusUnlisted(
  { metadata: { generation = 0 }, status: before }: AlternateImageSource,
  forbidden: readonly string[],
  now: Instant,
): AlternateImageSourceStatus {
  const write = conditionWriter<Condition>(generation, now)
  const message = `cannot list ${forbidden.join(", ")}: forbidden; apply the output of: aim manifests rbac`
  const standing = (type: ConditionType) =>
    before?.conditions.find(each => each.type === type) ?? write(undefined, type, false, "Observing", "")
  const nothing = { targetsAvailable: [], targets: 0, switched: 0, incidents: 0, summary: "" }
  return {
    ...nothing,
    ...before,
    observedGeneration: generation,
    conditions: [
      write(before?.conditions, "Ready", false, "ListFailed", message),
      standing("Switched"),
      standing("AllSourcesDown"),
      write(before?.conditions, "Stalled", true, "ListFailed", message),
    ],
  }
}

/** Containers without incident or switch are listed only as far as there is room: a namespace may have thousands. */
function worthTelling(
  roster: readonly Entry[],
  decisions: readonly Decision[],
  decided: ReadonlyMap<string, Decision>,
  known: ReadonlyMap<string, TargetAvailable>,
): { all: Entry[]; total: number } {
  const all: Entry[] = []
  const listed = new Set<string>()
  let plain = 0
  for (const entry of roster) {
    const id = `${entry.workload.uid}/${entry.container.name}`
    const isDecided = decided.has(id)
    if (isDecided) listed.add(id)
    if (isDecided || known.get(id)?.switches || plain++ < maxTargetsAvailable) all.push(entry)
  }
  for (const { group } of decisions) {
    const { workload, container: name, image, isInit } = group
    if (!listed.has(`${workload.uid}/${name}`)) all.push({ workload, container: { name, image, isInit } })
  }
  return { all, total: roster.length + decisions.length - listed.size }
}

/** The namespace has too many sources. This one looks after nothing, and its earlier status no longer holds. */
function statusTooMany(
  { metadata: { generation = 0 }, status: before }: AlternateImageSource,
  now: Instant,
): AlternateImageSourceStatus {
  const condition = conditionWriter<Condition>(generation, now)
  const write = (...[type, isTrue, reason, message]: [ConditionType, boolean, Reason, string]) =>
    condition(before?.conditions, type, isTrue, reason, message)
  const message = `of a namespace the oldest ${most.sources} are acted on, with together at most ${most.targets} targets: put several into one, or delete some`
  return {
    observedGeneration: generation,
    conditions: [
      write("Ready", false, "TooMany", message),
      write("Switched", false, "Observing", ""),
      write("AllSourcesDown", false, "Observing", ""),
      write("Stalled", true, "TooMany", message),
    ],
    targetsAvailable: [],
    targets: 0,
    switched: 0,
    incidents: 0,
    summary: "",
  }
}

/** All of its pods have been sent to another source: it remains to be seen whether that one serves. */
const isMended = ({ group, repairs, retarget }: Decision, accepted: number) =>
  repairs.filter(({ pod }) => "failure" in pod).length === group.failing.length &&
  accepted === repairs.length + (retarget ? 1 : 0)

/** A short note if a container is pulled from elsewhere than its workload said at first. */
function fromElsewhere(
  { workload, container, retargeted }: Entry,
  { incident }: TargetAvailable,
  decision: Decision | undefined,
): string[] {
  const name = `${workload.type.kind}/${workload.name} ${container.name}`
  if (incident?.working !== undefined) return [`${name} from ${incident.working}`]
  if (decision && staysElsewhere(decision))
    return [`${name} from ${repositoryTextOf(decision.group.repaired!.to)} until its pods are made anew`]
  return retargeted ? [`${name} from ${repositoryTextOf(retargeted.to)} (the workload was changed)`] : []
}

function entryOf(
  { workload, container }: Entry,
  before: TargetAvailable | undefined,
  decision: Decision | undefined,
  accepted: number,
  now: Instant,
): TargetAvailable {
  const incident = incidentOf(decision, before, accepted)
  const switches = switchesOf(before, decision, accepted, now)
  return {
    container: container.name,
    currentRepository:
      incident?.working ??
      repositoryTextOf(decision && staysElsewhere(decision) ? decision.group.repaired!.to : container.image),
    name: workload.name,
    type: workload.type,
    uid: workload.uid,
    ...(switches.length > 0 && { switches }),
    ...(incident && { incident }),
  }
}

/** The incident is over, and pods that were repaired in it still run: they are not restarted. */
const staysElsewhere = ({ incident, group }: Decision) => incident === undefined && group.repaired !== undefined

/** A repository counts as working only after the write that names it was accepted. */
function incidentOf(
  decision: Decision | undefined,
  before: TargetAvailable | undefined,
  accepted: number,
): Incident | undefined {
  const incident = decision?.incident
  if (!incident || !decision.step || accepted > 0) return incident
  const { working: _, ...rest } = incident
  const former = before?.incident?.working
  return { ...rest, ...(former !== undefined && { working: former }) }
}

function switchesOf(
  before: TargetAvailable | undefined,
  decision: Decision | undefined,
  accepted: number,
  now: Instant,
): Switch[] {
  const switches = [...(before?.switches ?? [])]
  const forgotten = decision && untold(decision.group, before)
  if (forgotten) {
    const { from: oldImage, to: newImage, reason, pods, at } = forgotten
    switches.push({ oldImage, newImage, time: formatInstant(at), reason, ...(pods > 0 && { pods }) })
  }
  if (decision?.step && (accepted > 0 || decision.step.reason === "SwitchedBack")) {
    const { oldImage, newImage, reason } = decision.step
    const pods = decision.retarget ? decision.group.failing.length : accepted
    switches.push({ oldImage, newImage, time: formatInstant(now), reason, ...(pods > 0 && { pods }) })
  }
  return switches
}

type Verdict = { reason: Reason; message: string; isStalled: boolean }

/** The words for each check of a source. */
const wordsFor: Record<CheckName, (facts: SourceFacts) => Verdict> = {
  stuck: worstOf,
  useless: ({ useless }) => ({
    reason: "NoAlternative",
    message: nameSome(useless.slice(0, 1), useless.length),
    isStalled: true,
  }),
  troubled: worstOf,
  crashing({ crashing }) {
    const { workload, container, repaired, crashes } = crashing[0]!.group
    const more = crashing.length > 1 ? ` (and ${crashing.length - 1} more)` : ""
    const message = `${workload.type.kind}/${workload.name} ${container} was sent to ${repositoryTextOf(repaired!.to)}, and ${counted(crashes!.pods, "pod")} crashed there: ${crashes!.worst.message}${more}`
    return { reason: "CrashLoop", message, isStalled: false }
  },
  // The target may be created any moment, as in one apply with its AlternateImageSource, and is then looked after.
  missing: ({ missing }) => ({
    reason: "TargetNotFound",
    message: `not in this namespace: ${nameSome(missing.slice(0, 3), missing.length)}`,
    isStalled: false,
  }),
  claimed: ({ claimed }) => ({
    reason: "ClaimedByAnother",
    message: `an older AlternateImageSource has ${counted(claimed, "container")} of these`,
    isStalled: true,
  }),
  elsewhere: ({ elsewhere, staying, total }) => ({
    reason: elsewhere.length === staying ? "SwitchedBack" : "Switched",
    message: `${elsewhere.length} of ${total}: ${nameSome(elsewhere.slice(0, 2), elsewhere.length)}`,
    isStalled: false,
  }),
}

function worstOf({ troubled, worst }: SourceFacts): Verdict {
  const { reason, message } = worst!
  const more = troubled.length > 1 ? ` (and ${troubled.length - 1} more)` : ""
  return { reason, message: message + more, isStalled: needsPerson(reason) }
}

/** What there is to say about a source, for its Ready condition and for `aim why`. */
export function verdictOn(facts: SourceFacts): Verdict {
  const check = checkOn(facts)
  return check
    ? wordsFor[check](facts)
    : { reason: "Watching", message: counted(facts.total, "container"), isStalled: false }
}

/** 3: a person must act; 2: nothing can be done now; 1: it goes on. */
const gravity = (reason: Reason) => (needsPerson(reason) ? 3 : patient.has(reason) ? 1 : 2)
const patient = new Set<Reason>([
  "Confirming",
  "CoolingDown",
  "Probing",
  "Repairing",
  "Switched",
  "PartOfPodsFails",
  "ManagedByGitOps",
  "OwnedByAnother",
])

/** Where there are too many, those with an incident come first, then those that were switched. */
function shortened(entries: readonly TargetAvailable[]): TargetAvailable[] {
  const told = targetsTold(entries)
  if (told.length === entries.length) return told
  const weight = ({ incident, switches }: TargetAvailable) => (incident ? 2 : switches ? 1 : 0)
  return targetsTold([...entries].sort((a, b) => weight(b) - weight(a)))
}

const idOf = ({ uid, container }: TargetAvailable) => `${uid}/${container}`

export type Episode = { type: "Normal" | "Warning"; reason: Reason; message: string }

/** What is worth an event: what was done, and what prevents it. Never one per pod. */
export function storyOf(
  before: AlternateImageSourceStatus | undefined,
  decisions: readonly Decision[],
  accepted: Accepted,
): Episode[] {
  return decisions.flatMap((decision): Episode[] => {
    const { group, step, reason, message } = decision
    const count = accepted.get(decision) ?? 0
    if (step && count > 0) {
      const name = `${group.workload.type.kind}/${group.workload.name} ${group.container}`
      const what = `${name}: ${step.oldImage} → ${step.newImage} (${step.reason}, ${counted(count, "write")})`
      return [{ type: "Warning", reason: "Switched", message: what }]
    }
    if (step?.reason === "SwitchedBack") return [{ type: "Normal", reason: "SwitchedBack", message }]
    const id = `${group.workload.uid}/${group.container}`
    const was = before?.targetsAvailable.find(entry => idOf(entry) === id)?.incident?.reason
    const isNews = group.failing.length > 0 && gravity(reason) > 1 && was !== reason
    return isNews ? [{ type: "Warning", reason, message }] : []
  })
}
