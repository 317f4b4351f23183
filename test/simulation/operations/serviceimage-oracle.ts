import type { Json } from "#cluster-sim/index.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import { sameImage } from "../invariants/images.ts"
import { decisionOf, haltsOnFailure, isPinned, isServiceImage, isTrue, selects, timeOf } from "../invariants/reading.ts"
import {
  countOf,
  idOf,
  imageOf,
  isCountedIn,
  isDeployed,
  isOfInterest,
  isReopened,
  isSaidComplete,
  isUpToDate,
  ownerOf,
  placeOf,
  secondMs,
  type Tier,
  tierOf,
  tierStatusOf,
  tiersOf,
  wasComplete,
} from "./contract.ts"

// What a ServiceImage promises, recounted from what was committed: priorities, maxConcurrent, steps and soaks, pace,
// approvals, pauses, halts, rollbacks, and the images in the end. Written from the pages of the kind and the decisions,
// with no code of the product, so that the two can only agree by being right. It costs what it costs: every question is
// answered by looking at everything.

export type Watched = {
  run: Run
  /** When no controller ran: what came and went meanwhile, no controller saw. */
  outages: readonly { from: number; to: number }[]
  /** At this revision nothing moved any more, and at the end nothing does, with whatever held a rollout taken away. */
  restedAt: number
}

/** Everything that is wrong, each with the rule it breaks. */
export function wrongsOf(watched: Watched): string[] {
  const past = new Past(watched)
  return [
    ...past.stamps.flatMap(stamp => wrongsOfStamp(past, stamp)),
    ...paces(past),
    ...past.statuses.flatMap(status => wrongsOfStatus(past, status)),
    ...endings(past, watched.restedAt).map(what => `at rest, ${what}`),
    ...endings(past, Number.POSITIVE_INFINITY, { isMended: true }).map(what => `in the end, ${what}`),
  ]
}

// ── what was ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type State = { revision: number; at: number; object: Json | undefined }

/** Something that a controller wrote, and its place in the order of all that were sent. */
type Written = { commit: Commit; sent: Sent; order: number }

/** An image that a controller wrote. */
type Stamp = Written & { before: Json; decision: Json; by: string }

/** A status that a controller wrote. */
type Said = Written

class Past {
  readonly outages: Watched["outages"]
  readonly stamps: Stamp[] = []
  readonly statuses: Said[] = []
  readonly #commits: readonly Commit[]
  readonly #lives = new Map<string, State[]>()

  constructor({ run, outages }: Watched) {
    this.outages = outages
    this.#commits = run.commits
    for (const { revision, at, type, object } of run.commits) {
      if (!isOfInterest(object)) continue
      const id = idOf(object)
      const life = this.#lives.get(id) ?? []
      life.push({ revision, at, object: type === "DELETED" ? undefined : object })
      this.#lives.set(id, life)
    }
    const all = new Map(run.sent.map((sent, order) => [sent.revision, { sent, order }]))
    for (const commit of run.commits) {
      const from = all.get(commit.revision)
      if (!from) continue
      if (commit.object.kind === "ServiceImage") this.statuses.push({ commit, ...from })
      else if (commit.before && imageOf(commit.before) !== imageOf(commit.object)) {
        const decision = decisionOf(commit.object)
        const by = String(decision.by).replace("serviceimage/", "")
        this.stamps.push({ commit, ...from, before: commit.before, decision, by })
      }
    }
  }

  /**
   * The world right after each commit from the instant at which a write was decided, and the one before these. What its
   * process had sent itself by then, it knew.
   */
  moments({ commit, sent, order }: Written): Moment[] {
    const since = this.#commits.findIndex(({ at }) => at >= sent.at)
    const last = this.#commits.findIndex(({ revision }) => revision === commit.revision)
    const own = this.stamps.filter(each => each.sent.process === sent.process && each.order < order)
    return this.#commits.slice(Math.max(0, since - 1), last).map(({ revision }) => {
      const known = own.filter(each => each.commit.revision > revision).map(each => each.commit.object)
      return new Moment(this, revision, commit.at, known)
    })
  }

  /** When the commits were over. */
  get endedAt(): number {
    return this.#commits.at(-1)?.at ?? 0
  }

  at(revision: number): Moment {
    return new Moment(this, revision, this.#commits.findLast(each => each.revision <= revision)?.at ?? 0)
  }

  /** As it was, and since when; the states before it are those below the index. */
  life(object: Json): readonly State[] {
    return this.#lives.get(idOf(object)) ?? []
  }

  all(kind: (object: Json) => boolean, revision: number): Json[] {
    return [...this.#lives.values()].flatMap(life => {
      const object = life.findLast(state => state.revision <= revision)?.object
      return object && kind(object) && !object.metadata.deletionTimestamp ? [object] : []
    })
  }

  /** What its process had said last when it sent the stamp. */
  saidFor({ sent, by }: Stamp): Json | undefined {
    return this.statuses.findLast(
      ({ commit, sent: { process } }) =>
        process === sent.process && commit.revision <= sent.after && commit.object.metadata.name === by,
    )?.commit.object
  }

  /** The status that stood before this one, of the same ServiceImage. */
  saidBefore(said: Said): Json | undefined {
    const { before, object } = said.commit
    return before?.metadata.uid === object.metadata.uid ? before?.status : undefined
  }
}

/** The world at one revision, and what may be concluded from it at a time. */
class Moment {
  readonly past: Past
  readonly revision: number
  readonly now: number
  /** Objects as they are known to become. */
  readonly #known: readonly Json[]

  constructor(past: Past, revision: number, now: number, known: readonly Json[] = []) {
    this.past = past
    this.revision = revision
    this.now = now
    this.#known = known
  }

  serviceImage(name: string): Json | undefined {
    return this.past.all(isServiceImage, this.revision).find(({ metadata }) => metadata.name === name)
  }

  serviceImages(): Json[] {
    return this.past.all(isServiceImage, this.revision)
  }

  /** Those that the ServiceImage looks after and that do not keep their image themselves. */
  members(serviceImage: Json): Member[] {
    const all = this.serviceImages()
    return this.past
      .all(object => !isServiceImage(object), this.revision)
      .map(object => this.#known.findLast(({ metadata }) => metadata.uid === object.metadata.uid) ?? object)
      .filter(object => !isPinned(object) && ownerOf(all, object)?.metadata.uid === serviceImage.metadata.uid)
      .flatMap(object => {
        const tier = tierOf(serviceImage, object)
        return tier ? [memberOf(this, serviceImage, object, tier)] : []
      })
  }
}

/** One object, and how it stands in the running operation. */
type Member = {
  object: Json
  tier: Tier
  isCounted: boolean
  hasImage: boolean
  /** Has its image and is up to date. */
  isWell: boolean
  /** Has been so for as long as it must. */
  isDone: boolean
  unwellSince: number
  /** Has its image and is not well: between these two times it becomes a failure. */
  failsFrom: number
  failsUntil: number
  place: number
}

function memberOf({ past, revision, now }: Moment, serviceImage: Json, object: Json, tier: Tier): Member {
  const life = past.life(object).filter(state => state.revision <= revision)
  const wasWell = ({ object: state }: State) =>
    state !== undefined && state.metadata.uid === object.metadata.uid && isWellWith(state, tier.image)
  const isWell = isWellWith(object, tier.image)
  const wellSince = life[life.findLastIndex(state => !wasWell(state)) + 1]?.at ?? now
  const started = timeOf(serviceImage.status?.operation?.startedAt)
  const { to, at } = decisionOf(object)
  const stampedAt = to !== undefined && sameImage(to, tier.image) ? timeOf(at) : 0
  const isElsewhere = ({ object: state }: State) => !state || tierOf(serviceImage, state)?.name !== tier.name
  const joinedAt = life[life.findLastIndex(isElsewhere) + 1]?.at ?? 0
  const lapsedAt = isWell ? now : (life[life.findLastIndex(wasWell) + 1]?.at ?? 0)
  const failsFrom = Math.max(stampedAt, started) + tier.deadlineMs
  return {
    object,
    tier,
    isCounted: isCountedIn(serviceImage, object),
    hasImage: sameImage(imageOf(object), tier.image),
    isWell,
    isDone: isWell && settledSince(past.life(serviceImage), serviceImage, object, wellSince, now),
    // A tier knows nothing of what it was like in another.
    unwellSince: Math.max(lapsedAt, joinedAt),
    failsFrom,
    // A break of what was settling counts after the settle time, a lapse of what had settled after another deadline.
    failsUntil: Math.max(failsFrom, lapsedAt + Math.max(tier.deadlineMs, tier.settleMs)) + secondMs,
    place: placeOf(serviceImage, object),
  }
}

/** By the settle time of now, or by one that was in force meanwhile: what has settled stays so when the time is raised. */
function settledSince(
  life: readonly State[],
  serviceImage: Json,
  object: Json,
  wellSince: number,
  now: number,
): boolean {
  return life.some(({ object: state }, index) => {
    const until = Math.min(now, life[index + 1]?.at ?? now)
    const tier = state?.metadata.uid === serviceImage.metadata.uid ? tierOf(state, object) : undefined
    return tier !== undefined && until >= wellSince && wellSince + settleMsOf(serviceImage, object, tier) <= until
  })
}

const isWellWith = (object: Json, image: string) => sameImage(imageOf(object), image) && isUpToDate(object)

/** How long it must have been well: only objects that the running operation stamped settle. Times have whole seconds. */
function settleMsOf(serviceImage: Json, object: Json, { settleMs }: Tier): number {
  const isNew = timeOf(object.metadata.creationTimestamp) > timeOf(serviceImage.status?.operation?.startedAt)
  return isStampedBy(serviceImage, object) && !isNew ? Math.max(0, settleMs - secondMs) : 0
}

/** One that is created again under its name counts its operations anew: the uid tells the two apart. */
function isStampedBy({ metadata, status }: Json, object: Json): boolean {
  const { by, uid, operation } = decisionOf(object)
  return by === `serviceimage/${metadata.name}` && uid === metadata.uid && operation === status?.operation?.id
}

/** What is missing to an object that is waited for. */
const lackOf = ({ object, isWell }: Member) => `${object.metadata.name} ${isWell ? "has not settled" : "is not done"}`

/** Its time is up; what settles has made it in time. */
const mayHaveFailed = ({ hasImage, isWell, failsFrom }: Member, now: number) => hasImage && !isWell && now >= failsFrom

/** Is neither done nor out of time: what comes after it has to wait. */
const isAwaited = (member: Member, now: number) => member.isCounted && !member.isDone && !mayHaveFailed(member, now)

// ── what a write may do ───────────────────────────────────────────────────────────────────────────────────────────────

type Rule = (moment: Moment, stamp: Stamp, serviceImage: Json) => string | undefined

/** Each says what is wrong with a stamp in a world that it may have been decided from. */
const rules: Record<string, Rule> = {
  owner: isOthers,
  pause: isPaused,
  image: isUnwanted,
  priority: isTooEarly,
  maxConcurrent: isOneTooMany,
  approval: isUnasked,
  halt: isHalted,
  step: isBehindItsStep,
}

/** A rule is broken if it is in every world that the write may have been decided from. */
function wrongsOfStamp(past: Past, stamp: Stamp): string[] {
  const { name } = stamp.commit.object.metadata
  const said = past.saidFor(stamp)
  const tell = (rule: string, what: string) => [`${rule}: ${name} by ${stamp.by} at ${stamp.commit.revision}: ${what}`]
  if (!said) return tell("stale", "its process had not said anything yet")
  const worlds = past.moments(stamp).flatMap(moment => {
    const serviceImage = moment.serviceImage(stamp.by)
    // What is decided is declared first: another spec than that one it was not decided from.
    const isThat = serviceImage?.metadata.uid === said.metadata.uid && sameGeneration(serviceImage!, said)
    return isThat ? [{ moment, serviceImage: { ...serviceImage!, status: said.status } }] : []
  })
  if (worlds.length === 0) return tell("stale", `it was decided by generation ${said.metadata.generation}`)
  return Object.entries(rules).flatMap(([rule, check]) => {
    const found = worlds.map(({ moment, serviceImage }) => check(moment, stamp, serviceImage))
    return found.every(each => each !== undefined) ? tell(rule, found.at(-1)!) : []
  })
}

const sameGeneration = (a: Json, b: Json) => a.metadata.generation === b.metadata.generation

/** A first image is given at once, whatever the turn. */
const isFirst = ({ before }: Stamp) => imageOf(before) === ""
const isBack = ({ decision }: Stamp) => decision.reason === "RolledBack"
const isInTurn = (stamp: Stamp) => !isFirst(stamp) && !isBack(stamp)

function isOthers(moment: Moment, { before }: Stamp, { metadata }: Json): string | undefined {
  const owner = ownerOf(moment.serviceImages(), before)
  if (isPinned(before)) return "it keeps its image itself"
  return owner?.metadata.name === metadata.name
    ? undefined
    : `it belongs to ${owner?.metadata.name ?? "no ServiceImage"}`
}

function isPaused(_: Moment, __: Stamp, { spec }: Json): string | undefined {
  return spec.paused ? "the rollout is paused" : undefined
}

function isUnwanted({ past }: Moment, stamp: Stamp, serviceImage: Json): string | undefined {
  const { before, commit, decision } = stamp
  const given = imageOf(commit.object)
  if (isFirst(stamp)) return undefined
  if (!isBack(stamp)) {
    const wanted = tierOf(serviceImage, before)?.image
    return wanted && sameImage(given, wanted) ? undefined : `got ${given}, wanted is ${wanted}`
  }
  // Only what this very operation of this very ServiceImage changed goes back, to what it had.
  const { uid } = serviceImage.metadata
  const change = past.stamps.findLast(
    each =>
      each.commit.revision < commit.revision &&
      each.commit.object.metadata.uid === before.metadata.uid &&
      each.decision.operation === decision.operation &&
      !isBack(each) &&
      past.at(each.commit.revision).serviceImage(each.by)?.metadata.uid === uid,
  )
  if (!change) return `got ${given}, and operation ${decision.operation} had not changed it`
  const had = imageOf(change.before)
  return had === "" || sameImage(had, given) ? undefined : `got ${given}, and had ${had}`
}

function isTooEarly(moment: Moment, stamp: Stamp, serviceImage: Json): string | undefined {
  const mine = tierOf(serviceImage, stamp.before)
  if (!mine || !isInTurn(stamp) || !isCountedIn(serviceImage, stamp.before)) return undefined
  const waitsFor = moment
    .members(serviceImage)
    .find(
      member =>
        member.tier.priority > mine.priority &&
        isAwaited(member, moment.now) &&
        !(member.hasImage && isSaidComplete(serviceImage, member.tier) && !isRegressed(moment, serviceImage, member)),
    )
  return waitsFor && `${lackOf(waitsFor)}, and is of priority ${waitsFor.tier.priority}`
}

/** This operation stamped it, and it has been unwell for longer than scaling it may take: what comes after waits. */
function isRegressed({ now }: Moment, serviceImage: Json, { object, tier, isWell, unwellSince }: Member): boolean {
  return isStampedBy(serviceImage, object) && !isWell && now - unwellSince > tier.settleMs + 2 * secondMs
}

function isOneTooMany(moment: Moment, stamp: Stamp, serviceImage: Json): string | undefined {
  const mine = tierOf(serviceImage, stamp.before)
  if (mine?.maxConcurrent === undefined || isFirst(stamp)) return undefined
  const members = moment.members(serviceImage).filter(({ tier }) => tier.name === mine.name)
  const onTheirWay = isBack(stamp)
    ? members.filter(({ object }) => isOnItsWayBack(object, stamp))
    : members.filter(each => each.hasImage && !each.isDone && !mayHaveFailed(each, moment.now))
  const most = countOf(mine.maxConcurrent, members.length)
  const some = isBack(stamp) ? "" : onTheirWay.map(lackOf).join(", ")
  return onTheirWay.length >= most ? `${onTheirWay.length} are on their way, ${most} may be: ${some}` : undefined
}

function isOnItsWayBack(object: Json, { decision, commit }: Stamp): boolean {
  const { reason, operation, by, to, at } = decisionOf(object)
  const isOfThis = reason === "RolledBack" && operation === decision.operation && by === decision.by
  // How long a return may take is bounded by the shortest deadline.
  const isYoung = commit.at - timeOf(at) < 30 * secondMs
  return isOfThis && isYoung && sameImage(imageOf(object), to) && !isUpToDate(object)
}

function isUnasked(_: Moment, stamp: Stamp, serviceImage: Json): string | undefined {
  const mine = tierOf(serviceImage, stamp.before)
  if (!mine?.requireApproval || !isInTurn(stamp) || !isCountedIn(serviceImage, stamp.before)) return undefined
  if (wasComplete(serviceImage, mine)) return undefined
  const text = serviceImage.metadata.annotations?.["autoimagemanager.io/approved"]
  const { operation, tiers = [] } = text === undefined ? {} : JSON.parse(text)
  if (operation === stamp.decision.operation && tiers.includes(mine.name)) return undefined
  return `tier "${mine.name}" of ${stamp.decision.operation} waits for approval, given is ${text}`
}

function isHalted(moment: Moment, stamp: Stamp, serviceImage: Json): string | undefined {
  const mine = tierOf(serviceImage, stamp.before)
  if (!mine || !isInTurn(stamp) || wasComplete(serviceImage, mine)) return undefined
  const halting = moment
    .members(serviceImage)
    .find(
      ({ object, tier, isCounted, hasImage, isWell, failsUntil }) =>
        tier.priority === mine.priority &&
        isCounted &&
        hasImage &&
        !isWell &&
        haltsOnFailure(object) &&
        moment.now > failsUntil &&
        !wasComplete(serviceImage, tier),
    )
  return halting && `${halting.object.metadata.name} has failed and halts the rollout`
}

/** Whether a step may begin is looked at where the status says so; a stamp only keeps to what was said. */
function isBehindItsStep(moment: Moment, stamp: Stamp, serviceImage: Json): string | undefined {
  const mine = tierOf(serviceImage, stamp.before)
  if (!mine || mine.steps.length === 1 || !isInTurn(stamp) || wasComplete(serviceImage, mine)) return undefined
  const said = tierStatusOf(serviceImage, mine)?.step?.percent ?? 100
  const members = moment.members(serviceImage).filter(({ tier, isCounted }) => tier.name === mine.name && isCounted)
  if (!members.some(({ object }) => object.metadata.uid === stamp.before.metadata.uid)) return undefined
  const inside = cohortOf(members, said)
  const isInside = inside.some(({ object }) => object.metadata.uid === stamp.before.metadata.uid)
  return isInside ? undefined : `the tier is at ${said}%, and it is not among these`
}

// ── pace ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** No second sees more pods than its share; a large object goes alone, and the next waits until it is paid for. */
function paces(past: Past): string[] {
  const paid = past.stamps.filter(stamp => !isFirst(stamp))
  const groups = Map.groupBy(paid, stamp => {
    const { metadata, spec } = past.at(stamp.commit.revision).serviceImage(stamp.by) ?? {}
    // What was spent is remembered by one process for one ServiceImage; another pace is another count.
    return JSON.stringify([metadata?.uid, stamp.sent.process, spec?.pace])
  })
  return [...groups].flatMap(([key, group]) => {
    const [uid, , pace] = JSON.parse(key)
    const perSecond = pace?.podsPerSecond ?? 10
    if (!uid || perSecond === 0) return []
    const atOnce = Math.max(1, perSecond / 10)
    return group.flatMap((last, index) =>
      costOf(last.before) === 0
        ? []
        : group.slice(0, index).flatMap((first, from) => {
            const isSteady = past
              .all(isServiceImage, first.commit.revision)
              .some(({ metadata, spec }) => metadata.uid === uid && JSON.stringify(spec.pace) === JSON.stringify(pace))
            const pods = group.slice(from, index).reduce((sum, { before }) => sum + costOf(before), 0)
            const mayBe = ((last.sent.at - first.sent.at) / secondMs) * perSecond + atOnce - 1
            return isSteady && pods > mayBe + 0.01
              ? [
                  `pace: ${pods} pods from ${first.commit.revision} to ${last.commit.revision}, ${mayBe.toFixed(1)} may be`,
                ]
              : []
          }),
    )
  })
}

/** As many pods as it says it has; without any such word one, if it ever ran. */
const costOf = (object: Json): number =>
  object.kind === "Deployment" ? (object.spec.replicas ?? 1) : isDeployed(object) ? 1 : 0

// ── what a status may say ─────────────────────────────────────────────────────────────────────────────────────────────

function wrongsOfStatus(past: Past, said: Said): string[] {
  const { commit } = said
  const { object } = commit
  const before = past.saidBefore(said)
  const problems: string[] = []
  const moments = past.moments(said)
  const always = (rule: string, check: (moment: Moment, serviceImage: Json) => string | undefined) => {
    const found = moments.map(moment => {
      const standing = moment.serviceImage(object.metadata.name)
      // What it was decided from: the spec at that time, and the operation as reported now.
      return standing?.metadata.uid === object.metadata.uid
        ? check(moment, { ...standing, spec: object.spec, metadata: object.metadata, status: object.status })
        : undefined
    })
    if (found.length > 0 && found.every(each => each !== undefined))
      problems.push(`${rule}: ${object.metadata.name} at ${commit.revision}: ${found.at(-1)}`)
  }
  for (const tier of tiersOf(object)) {
    const [now, was] = [tierStatusOf(object, tier), tierStatusOf({ status: before }, tier)]
    const wasWhole = isTrue(was, "Complete") && sameImage(was?.newDeploymentImage, tier.image)
    if (isReopened(now) && !isReopened(was) && !wasWhole)
      problems.push(`reopened: ${object.metadata.name} at ${commit.revision}: tier "${tier.name}" was not complete`)
    if (isTrue(now, "Complete") && !isTrue(was, "Complete"))
      always("complete", (moment, serviceImage) => isUnfinished(moment, serviceImage, tier))
    const from = stepsFrom(tier, object, before)
    if (from !== undefined) always("soak", (moment, serviceImage) => isSoaking(moment, serviceImage, tier, from))
  }
  return problems
}

function isUnfinished(moment: Moment, serviceImage: Json, tier: Tier): string | undefined {
  const late = moment
    .members(serviceImage)
    .filter(member => member.tier.name === tier.name && isAwaited(member, moment.now))
  // An image that is refused or put back all the time fails in its time too; its reported reason counts.
  const told = tierStatusOf(serviceImage, tier)?.ignoredFailures ?? 0
  const [first] = late
  return first && late.length > told ? `tier "${tier.name}" is said to be complete, ${lackOf(first)}` : undefined
}

/**
 * The percent from which on steps are over by now, where the tier goes on to another one or is complete, or begins an
 * operation; undefined where steps are no matter.
 */
function stepsFrom(tier: Tier, { status }: Json, before: Json | undefined): number | undefined {
  const [now, was] = [tierStatusOf({ status }, tier), tierStatusOf({ status: before }, tier)]
  const isEnd = isTrue(now, "Complete")
  if (!now?.step || isReopened(now) || /^Roll/.test(status.operation.phase)) return undefined
  // It was complete with this image: steps are behind it.
  if (isTrue(was, "Complete") && sameImage(was?.newDeploymentImage, tier.image)) return undefined
  if (before?.operation?.id !== status.operation.id) return isEnd ? undefined : 0
  const isUp = was?.step && !isReopened(was) && (isEnd || now.step.percent > was.step.percent)
  return isUp ? was.step.percent : undefined
}

/** Each step up to the one that begins must have been done for as long as it soaks, without a break that was seen. */
function isSoaking(moment: Moment, serviceImage: Json, tier: Tier, from: number): string | undefined {
  const now = tierStatusOf(serviceImage, tier)!
  const isEnd = isTrue(now, "Complete")
  const members = moment.members(serviceImage).filter(member => member.tier.name === tier.name && member.isCounted)
  let smaller = -1
  for (const { percent, soakMs } of tier.steps) {
    const cohort = cohortOf(members, percent)
    const isPassed = percent < from
    const isReached = isEnd || percent < now.step.percent
    const adds = cohort.length !== smaller
    smaller = cohort.length
    if (isPassed || !isReached) continue
    const late = cohort.find(member => isAwaited(member, moment.now))
    if (late) return `step ${percent}% is over, ${lackOf(late)}`
    if (!adds || !hasStood(moment, serviceImage, soakMs)) continue
    const soaks = cohort.find(member => moment.now - brokenUntil(moment, serviceImage, member) < soakMs - secondMs)
    if (soaks) return `step ${percent}% must soak ${soakMs / secondMs} s, ${soaks.object.metadata.name} has not`
  }
  return undefined
}

/** The tiers have been what they are for so long. */
function hasStood(moment: Moment, serviceImage: Json, ms: number): boolean {
  const states = moment.past
    .life(serviceImage)
    .filter(({ revision, at }) => revision <= moment.revision && at >= moment.now - ms - 2 * secondMs)
  const tiers = JSON.stringify(tiersOf(serviceImage))
  return states.every(({ object }) => object !== undefined && JSON.stringify(tiersOf(object)) === tiers)
}

/** Until when a controller saw that it was not done. */
function brokenUntil({ past, revision }: Moment, serviceImage: Json, member: Member): number {
  const life = past.life(member.object).filter(state => state.revision <= revision)
  const all = past.all(isServiceImage, revision)
  const settleMs = settleMsOf(serviceImage, member.object, member.tier)
  const breaks = life.flatMap(({ object, at }, index) => {
    const end = life[index + 1]?.at ?? Number.POSITIVE_INFINITY
    if (!object || end === at || object.metadata.uid !== member.object.metadata.uid) return []
    const tier = tierOf(serviceImage, object)
    const isMine = !isPinned(object) && ownerOf(all, object)?.metadata.uid === serviceImage.metadata.uid
    if (!isMine || tier?.name !== member.tier.name || !isCountedIn(serviceImage, object)) return []
    if (sameImage(imageOf(object), tier.image) && isUpToDate(object)) return []
    // A failure is waited for no longer, and does not settle.
    return [{ from: at, to: end < member.failsFrom ? end + settleMs : member.failsFrom }]
  })
  const isSeen = ({ from, to }: { from: number; to: number }) =>
    !past.outages.some(outage => outage.from <= from && to <= outage.to)
  return Math.max(0, ...breaks.filter(isSeen).map(({ to }) => to))
}

// ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Nothing moves any more: each ServiceImage is complete, or there is a reason why not; and the images are right. */
function endings(past: Past, revision: number, { isMended = false } = {}): string[] {
  const moment = new Moment(past, revision, isMended ? past.endedAt : Math.min(past.at(revision).now, past.endedAt))
  const later = new Moment(past, revision, moment.now + 300 * secondMs)
  return later.serviceImages().flatMap(serviceImage => {
    const { metadata, status } = serviceImage
    const complete = status?.conditions?.find((each: Json) => each.type === "Complete")
    const isComplete = complete?.status === "True" && complete.observedGeneration === metadata.generation
    const members = later.members(serviceImage)
    if (!isComplete) {
      const why = isMended ? hasConflict(later, serviceImage) : reasonToStand(later, serviceImage, members)
      const words = JSON.stringify(
        status?.conditions?.map((each: Json) => `${each.type} ${each.status} ${each.message}`),
      )
      return why ? [] : [`stuck: ${metadata.name} is not complete: ${words}`]
    }
    // What is created while a rollout is paused waits, and counts for nothing.
    const isHeld = ({ isCounted }: Member) => serviceImage.spec.paused && !isCounted && !isMended
    return members
      .filter(member => !member.hasImage && !isHeld(member))
      .map(
        ({ object, tier }) =>
          `final: ${object.metadata.name} has ${imageOf(object)}, ${metadata.name} wants ${tier.image}`,
      )
  })
}

function hasConflict(moment: Moment, serviceImage: Json): boolean {
  const all = moment.serviceImages()
  return moment.past
    .all(object => !isServiceImage(object), moment.revision)
    .some(object => selects(serviceImage, object) && ownerOf(all, object) !== serviceImage)
}

function reasonToStand(moment: Moment, serviceImage: Json, members: readonly Member[]): boolean {
  const { spec, status } = serviceImage
  if (spec.paused || status?.operation?.phase === "RolledBack" || hasConflict(moment, serviceImage)) return true
  return members.some(({ tier, isCounted, hasImage, isDone }) =>
    hasImage ? isCounted && !isDone : tier.requireApproval && isCounted,
  )
}

/** The members with a place below the share; if there are none, the first in the queue. */
function cohortOf(members: readonly Member[], percent: number): readonly Member[] {
  const inside = members.filter(({ place }) => place < (percent / 100) * 2 ** 32)
  const first = members.reduce<Member | undefined>((a, b) => (a && a.place <= b.place ? a : b), undefined)
  return inside.length > 0 || !first ? inside : [first]
}
