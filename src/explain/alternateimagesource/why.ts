import { type AlternateImageSource, type Reason, reasons } from "#api/v1alpha1/alternateimagesource/index.ts"
import { checkOn, type SourceFacts } from "#controllers/alternateimagesource/checks.ts"
import { type Container, type PodFacts, readPod } from "#controllers/alternateimagesource/facts.ts"
import type { Decision } from "#controllers/alternateimagesource/group.ts"
import { sumUp, verdictOn } from "#controllers/alternateimagesource/report.ts"
import type { Claim, Entry, Standing } from "#controllers/alternateimagesource/sources.ts"
import { imageAt, isEquivalent, repositoryTextOf, sameSource } from "#core/image/equivalent.ts"
import type { ImageRecord } from "#core/image/record.ts"
import { mirrorMark, skipMark } from "#core/pods/left-alone.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { counted, nameSome } from "#lib/text.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { decisionsOf, entryOf, type Survey } from "./survey.ts"

/** Why a pod's containers pull from their repositories, with reasons from the vocabulary and sentences for a person. */
export type Why = {
  reason: Reason
  sentences: string[]
  since?: Instant | undefined
  lastDecision?: ImageRecord | undefined
  containers: { name: string; image: string; reason: Reason; alternateImageSource?: string }[]
}

/** Reads the same objects as the controller, and decides the same. */
export function whyPod(survey: Survey, pod: KubeObject): Why {
  const { sources, namespace } = survey
  const key = `${namespace}/${pod.metadata.name}`
  const facts = readPod(pod)
  // The controller forgets the containers of a running pod; here they are needed.
  const { containers } = readPod({ ...pod, metadata: { ...pod.metadata, ownerReferences: [] } })
  const standing = sources.standing(key)
  const sentences = [`Pod ${key} ${belongs(facts, standing?.workload)}.`]
  const leftAlone = whyLeftAlone(pod)
  if (leftAlone) sentences.push(leftAlone)
  const told = (containers ?? []).map(container => {
    const own = standing?.containers.find(each => each.container.name === container.name)
    return tellContainer(survey, facts, container, own, standing?.workload)
  })
  const worst = told.find(({ isFailing }) => isFailing) ?? told.find(({ reason }) => reason !== "Watching") ?? told[0]
  return {
    reason: worst?.reason ?? "Watching",
    sentences: [...sentences, ...told.flatMap(each => each.sentences)],
    since: worst?.since,
    lastDecision: facts.decision,
    containers: told.map(({ name, image, reason, source }) => ({
      name,
      image,
      reason,
      ...(source && { alternateImageSource: source }),
    })),
  }
}

/** Why an AlternateImageSource is in its state: for the same reason as its Ready condition. */
export function whySource(survey: Survey, source: AlternateImageSource): Omit<Why, "containers" | "lastDecision"> {
  const scene = survey.sources.scene(source)
  const { roster, claimed, missing } = scene
  const isActive = survey.sources.isActive(keyOf(source.metadata))
  if (!isActive) return { reason: "TooMany", sentences: [`${nameOf(source)} looks after nothing. ${reasons.TooMany}`] }
  const decisions = decisionsOf(survey, source)
  const { facts } = sumUp(source, scene, decisions, new Map(), survey.now)
  const { troubled, useless, crashing } = facts
  const switched = decisions.filter(each => !troubled.includes(each) && each.incident?.working !== undefined)
  const changed = roster.filter(({ retargeted }) => retargeted !== undefined)
  const name = nameOf(source)
  const { reason, message } = verdictOn(facts)
  return {
    reason,
    since: sinceOf(source, facts, switched[0], changed[0]?.retargeted?.at),
    sentences: [
      `${name} looks after ${counted(roster.length, "container")} of namespace ${survey.namespace}.`,
      ...(missing.length > 0 ? [`Not there: ${nameSome(missing.slice(0, 5), missing.length)}.`] : []),
      ...(claimed > 0 ? [`${claimed} more belong to an older AlternateImageSource of the namespace.`] : []),
      ...useless.map(each => `It cannot help: ${each}.`),
      ...troubled.slice(0, shownMost).map(each => `${each.message}. ${aboutDecision(each)}`),
      ...(reason === "CrashLoop" && crashing.length > 0 ? [`${message}.`] : []),
      ...switched.slice(0, shownMost).map(each => `${each.message}.`),
      ...changed.slice(0, shownMost).map(each => aboutChange(name, each)),
      ...(troubled.length + switched.length + changed.length === 0
        ? ["Every image is pulled where its workload says."]
        : []),
    ],
  }
}

/** Since when: a failure since its first failed pull, a switch since it was made. */
function sinceOf(
  source: AlternateImageSource,
  facts: SourceFacts,
  switched: Decision | undefined,
  changedAt: Instant | undefined,
): Instant | undefined {
  const check = checkOn(facts)
  if (check === "stuck" || check === "troubled") return parseInstant(facts.worst!.incident?.since)
  if (check === "crashing") return switchedAt(source, facts.crashing[0]!.group)
  if (check !== "elsewhere") return undefined
  return switched ? switchedAt(source, switched.group) : changedAt
}

/** When a container was last sent elsewhere, by the status. */
const switchedAt = (source: AlternateImageSource, group: Decision["group"]) =>
  parseInstant(entryOf(source, group)?.switches?.at(-1)?.time)

function aboutChange(by: string, { workload, container, retargeted }: Entry): string {
  const { from, to, reason, at } = retargeted!
  const name = `${workload.type.kind}/${workload.name} ${container.name}`
  return `${name}: ${by} changed the workload from ${from} to ${to} at ${formatInstant(at)} (${reason}).`
}

const shownMost = 10

type Told = {
  name: string
  image: string
  reason: Reason
  isFailing: boolean
  sentences: string[]
  since?: Instant | undefined
  source?: string | undefined
}

function tellContainer(
  survey: Survey,
  pod: PodFacts,
  { name, image }: Container,
  own: Standing["containers"][number] | undefined,
  workload: Standing["workload"] | undefined,
): Told {
  const uid = workload?.uid
  const claim = own?.claim
  const said = own?.container.image ?? image
  const failing = pod.failing.find(each => each.name === name)
  const entry = claim && entryOf(claim.source, { workload: { uid }, container: name })
  const incident = entry?.incident
  const since = (!failing && parseInstant(entry?.switches?.at(-1)?.time)) || parseInstant(incident?.since)
  const common = { name, image, since, source: claim?.source.metadata.name }
  if (failing) {
    const failure = failing.failure ?? "HeldBack"
    const what = `${name} cannot pull ${image} (${failure}): ${failing.message}`
    const told = { ...common, isFailing: true }
    if (!claim)
      return { ...told, reason: failure, sentences: [what, `${nobody(survey)}, so nothing is done about it.`] }
    if (!isEquivalent(image, said, claim.replacement))
      return {
        ...told,
        reason: failure,
        sentences: [what, `Its workload says ${said} by now, so this pod is left to it.`],
      }
    const decision = decisionsOf(survey, claim.source).find(
      ({ group }) => group.workload.uid === uid && group.container === name,
    )
    if (!decision) return { ...told, reason: failure, sentences: [what] }
    const next = `${nameOf(claim.source)}: ${aboutDecision(decision)}`
    return { ...told, reason: decision.reason, sentences: [what, next] }
  }

  const told = { ...common, isFailing: false }
  if (!own) return { ...told, reason: "Watching", sentences: [`${name} pulls ${image}.`] }
  if (image === said) {
    const others = claim ? candidatesOf(claim, image) : []
    const why = !claim
      ? `${nobody(survey)}.`
      : others.length === 0
        ? `${nameOf(claim.source)} knows no other repository for it.`
        : `Where that fails, ${nameOf(claim.source)} has ${others.join(", ")}.`
    const lasting = incident?.working && claim ? ` ${aboutIncident(claim, incident.working, since)}` : ""
    return {
      ...told,
      reason: own.retargeted ? "Switched" : "Watching",
      sentences: [
        `${name} pulls ${image}, as its workload says. ${why}${lasting}`,
        ...(own.retargeted && claim && workload ? [aboutChange(nameOf(claim.source), { ...own, workload })] : []),
      ],
    }
  }
  const { decision } = pod
  const isOurs = decision?.was?.[name] !== undefined
  if (!isOurs || !sameSource(repositoryTextOf(decision.to), repositoryTextOf(image))) {
    const held = workload?.isUpdated ? ", and is held for an update in place or by a Canary" : ""
    return {
      ...told,
      reason: "Watching",
      sentences: [`${name} pulls ${image}; its workload says ${said} by now${held}.`],
    }
  }
  const { by, at, reason } = decision
  const what = `${name} pulls ${image} instead of ${decision.was![name]}: ${by} decided so at ${formatInstant(at)} (${reason}).`
  const lasting = incident?.working && claim ? [aboutIncident(claim, incident.working, since)] : []
  return { ...told, reason: "Switched", sentences: [what, ...lasting] }
}

const aboutIncident = ({ source }: Claim, working: string, since: Instant | undefined) => {
  const back =
    source.spec.policy.switchBack === "WhenHealthy"
      ? "until the first repository has been well for a while"
      : "until the workload names another image"
  return `Since ${formatInstant(since ?? 0)} new pods pull from ${working}, ${back}.`
}

/** What is done or waited for, as the vocabulary explains it. */
function aboutDecision({ reason, repairs, asks, lookAgainAt, incident }: Decision): string {
  if (repairs[0]) return `it is being sent to ${repositoryTextOf(repairs[0].to)}.`
  const attempts =
    incident && incident.attempts > 0
      ? ` No repository could serve it, ${counted(incident.attempts, "time")} so far.`
      : ""
  const asked = asks.length > 0 ? ` It asks ${asks.map(repositoryTextOf).join(", ")}.` : ""
  const again = lookAgainAt === undefined ? "" : ` It looks again at ${formatInstant(lookAgainAt)}.`
  return `${reason}: ${reasons[reason]}${attempts}${asked}${again}`
}

const candidatesOf = ({ source, replacement }: Claim, image: string) =>
  replacement.equivalentRepositories.filter(
    repository =>
      !sameSource(imageAt(image, repository), image) &&
      !source.spec.policy.disabledRepositories.some(other => sameSource(other, repository)),
  )

function belongs(
  { owner }: Pick<PodFacts, "owner">,
  workload: { type: { kind: string }; name: string } | undefined,
): string {
  if (!owner) return "has no owner: it is its own workload"
  if (workload) return `belongs to ${workload.type.kind}/${workload.name}`
  return `belongs to ${owner.kind}/${owner.name}, of which nothing is known`
}

function whyLeftAlone(pod: KubeObject): string | undefined {
  const { labels = {}, annotations = {}, deletionTimestamp } = pod.metadata
  if (deletionTimestamp) return "It is being deleted, so it is left alone."
  if (Object.hasOwn(annotations, mirrorMark))
    return "It is a static pod of its kubelet, which the API server has no say in."
  if (labels[skipMark] === "true" || annotations[skipMark] === "true")
    return `It says ${skipMark}, so it is left alone.`
  return undefined
}

const nobody = ({ namespace }: Survey) => `No AlternateImageSource of namespace ${namespace} has its repository`
const nameOf = ({ metadata }: AlternateImageSource) => `ais/${metadata.name}`
