import { deliver, isCaughtUp, numbering, steps, type Take, truth, type Watched, write } from "./in-place-world.ts"
import type { Model } from "./search.ts"

/**
 * An update in place of a Deployment beside the native controllers, whose caches are behind. Templates are numbered:
 * T0 is that of the one ReplicaSet, R0, at the start.
 *
 *   hold      the user's own write of another image also pauses the Deployment and marks it as held (a policy does that)
 *   patch     a pod gets the image; tests the image it had
 *   flip      the template of R0 gets the image
 *   fence     wait until the native controller has seen the hold and the flip
 *   release   unpause, on condition that the Deployment has not changed since it was read
 *   settle    instead of the release where the hold stands: says that the update is over
 *
 * What native controllers do is as `test/conformance` found it: a paused Deployment makes no ReplicaSet and still
 * scales; of an unpaused one the ReplicaSet with an equal template counts, and without one another is made. Statuses and
 * ReplicaSets are written on condition of the version that was read. One reconcile of a Deployment reads it first and
 * lists its ReplicaSets later. The annotations of a Deployment are copied to the ReplicaSet that counts. The name of R0
 * prevents nothing: after an earlier update in place it is not that of its template.
 *
 * Our own controller keeps nothing: each step follows from what the server shows. A write may be sent by a process that
 * stops before it arrives; its successor goes on, and the write arrives at any later time, or never.
 */
export type Protocol = {
  /** By the write that changes the template, by a second one, or not at all. */
  readonly holds: "in the same write" | "in a second write" | "never"
  /** Each hold writes an annotation that no other has. */
  readonly marksOperation: boolean
  /** R0 is changed only after the native controller has reported the generation with the hold. */
  readonly waitsForHold: boolean
  readonly flipsBeforeRelease: boolean
  readonly flipOnCondition: "version" | "image"
  /**
   * copied: R0 has the annotation of this operation, which the native controller copies; counted: observedGeneration,
   * updatedReplicas and R0's own observedGeneration; updated: the first two; observed: the first alone.
   */
  readonly fence: "copied" | "counted" | "updated" | "observed" | "none"
  readonly releaseOnCondition: "version" | "image" | "none"
  /** A pod with another image than the template, after the release, gets the template's. */
  readonly repairs: boolean
}

export const sound: Protocol = {
  holds: "in the same write",
  marksOperation: true,
  waitsForHold: true,
  flipsBeforeRelease: true,
  flipOnCondition: "version",
  fence: "copied",
  releaseOnCondition: "version",
  repairs: true,
}

export type Bounds = {
  /** The templates that the user asks for, one after the other, each at any time. */
  readonly asks: readonly number[]
  readonly replicas: number
  /** What the user scales to, one after the other. */
  readonly scales: readonly number[]
  readonly resumes: boolean
  /** The hold stands before the first change and stays; a person releases it between two updates, at any time. */
  readonly isStanding: boolean
  readonly losesPods: boolean
  readonly writesLate: boolean
}

type Deployment = {
  template: number
  isPaused: boolean
  isHeld: boolean
  operation: number
  replicas: number
  settled: number
}
type ReplicaSet = { template: number; replicas: number; operation: number }
type Action =
  | { do: "hold" }
  | { do: "patch"; from: number; to: number }
  | { do: "flip"; from: number; to: number }
  | { do: "release" | "settle"; template: number }
  | { do: "yield" }
type Late = { action: Action; isCurrent: boolean }

export const promises = ["no ReplicaSet is made beside the first", "no pod is made anew"] as const
export type Promised = (typeof promises)[number]

export type World = {
  asked: number // how many of the user's requests were made
  scaled: number
  isResumed: boolean // by the user: from then on a native rollout is what was asked for
  hasLost: boolean
  deployment: Watched<Deployment>
  first: Watched<ReplicaSet>
  isFirstObserved: boolean // R0's observedGeneration is its generation
  second: number | undefined // the template of another ReplicaSet
  pods: number[] // their images, in order: pods are interchangeable
  status: { isObserved: boolean; isUpdated: boolean } // observedGeneration is the generation; updatedReplicas are all
  reconcile: { deployment: Deployment; isCurrent: boolean } | undefined // has read it, and not yet its ReplicaSets
  late: Late | undefined
  broken: Promised[] // by the step that led here
}

export function inPlaceDeployment(protocol: Protocol, bounds: Bounds): Model<World> {
  const start: World = {
    asked: 0,
    scaled: 0,
    isResumed: false,
    hasLost: false,
    deployment: {
      seen: {
        ...{ template: 0, isPaused: bounds.isStanding, isHeld: bounds.isStanding },
        ...{ operation: 0, replicas: bounds.replicas, settled: 0 },
      },
      coming: [],
    },
    first: { seen: { template: 0, replicas: bounds.replicas, operation: 0 }, coming: [] },
    isFirstObserved: true,
    second: undefined,
    pods: Array.from({ length: bounds.replicas }, () => 0),
    status: { isObserved: true, isUpdated: bounds.replicas > 0 },
    reconcile: undefined,
    late: undefined,
    broken: [],
  }

  const stepsFrom = (world: World) =>
    steps(world, take => {
      moveUser(world, take)
      moveNative(world, take)
      moveOurs(world, take)
    })

  function moveUser(world: World, take: Take<World>): void {
    const { asked, scaled, isResumed, hasLost, pods } = world
    const { isPaused, isHeld, operation, settled } = truth(world.deployment)
    const template = bounds.asks[asked]
    if (template !== undefined)
      take("the user", "ask", `asks for T${template}`, next => {
        next.asked++
        const hold = protocol.holds === "in the same write" ? { isPaused: true, isHeld: true } : {}
        writeDeployment(next, { template, operation: operation + Number(protocol.marksOperation), ...hold })
      })
    const replicas = bounds.scales[scaled]
    if (replicas !== undefined)
      take("the user", "scale", `scales to ${replicas}`, next => {
        next.scaled++
        writeDeployment(next, { replicas })
      })
    if (bounds.resumes && !isResumed && isPaused && isHeld)
      take("the user", "resume", "resumes", next => {
        next.isResumed = true
        writeDeployment(next, { isPaused: false })
      })
    if (bounds.isStanding && isHeld && settled === operation && asked === bounds.asks.length)
      take("the user", "let go", "releases the Deployment at rest", next =>
        writeDeployment(next, { isPaused: false, isHeld: false }),
      )
    if (bounds.losesPods && !hasLost && pods.length > 0)
      take("a node", "lose", "loses a pod", next => {
        next.hasLost = true
        next.pods.shift()
      })
  }

  function moveNative(world: World, take: Take<World>): void {
    const { deployment, first, reconcile } = world
    if (!isCaughtUp(deployment))
      take("the native cache", "see", `sees ${wordsOf(deployment.coming[0]!)}`, next => deliver(next.deployment))
    if (!isCaughtUp(first))
      take("the native cache", "see", `sees R0 with T${first.coming[0]!.template}`, next => deliver(next.first))
    if (!reconcile)
      take("the native controller", "read", `reads ${wordsOf(deployment.seen)}`, next => {
        next.reconcile = { deployment: deployment.seen, isCurrent: isCaughtUp(deployment) }
      })
    else take("the native controller", "reconcile", `acts with R0 of T${first.seen.template}`, reconciled)
    take("the native controller", "count", `counts the pods of R0 with T${first.seen.template}`, counted)
  }

  /** The second half of a reconcile of the Deployment: lists its ReplicaSets and acts. */
  function reconciled(world: World): void {
    const { deployment, isCurrent } = world.reconcile!
    const { seen } = world.first
    world.reconcile = undefined
    const isFirst = seen.template === deployment.template
    const isScaled = world.second === undefined && seen.replicas > 0 && seen.replicas !== deployment.replicas
    if (isFirst && seen.operation !== deployment.operation && isCaughtUp(world.first))
      writeFirst(world, { operation: deployment.operation })
    else if (deployment.isPaused || isScaled) resize(world, deployment)
    else roll(world, deployment)
    if (isCurrent) world.status = { isObserved: true, isUpdated: isFirst && deployment.replicas > 0 }
  }

  function resize(world: World, { replicas }: Deployment): void {
    if (world.second === undefined && world.first.seen.replicas !== replicas) scaleFirst(world, replicas)
  }

  function roll(world: World, { template, replicas }: Deployment): void {
    const { seen } = world.first
    if (seen.template === template) {
      // R0 is the older one: another of the same template is scaled down.
      world.second = undefined
      if (seen.replicas !== replicas) scaleFirst(world, replicas)
    } else if (world.second !== template) {
      world.second = template
      breaks(world, "no ReplicaSet is made beside the first")
    } else if (seen.replicas > 0 && isCaughtUp(world.first)) {
      scaleFirst(world, 0)
      breaks(world, "no pod is made anew")
    }
  }

  function scaleFirst(world: World, replicas: number): void {
    if (isCaughtUp(world.first)) writeFirst(world, { replicas })
  }

  /** The controller of ReplicaSets: pods of R0, from the template that its cache shows. */
  function counted(world: World): void {
    const { template, replicas } = world.first.seen
    while (world.pods.length < replicas) world.pods.push(template)
    while (world.pods.length > replicas) world.pods.pop()
    world.pods.sort()
    if (isCaughtUp(world.first)) world.isFirstObserved = true
  }

  function moveOurs(world: World, take: Take<World>): void {
    const { late } = world
    if (late)
      take("a late write", "arrive", `arrives: ${inWords(late.action)}`, next => {
        next.late = undefined
        carryOut(next, late)
      })
    const action = nextAction(world)
    if (!action) return
    take("aim", action.do, inWords(action), next => carryOut(next, { action, isCurrent: true }))
    if (bounds.writesLate && !late)
      take(
        "aim",
        action.do,
        inWords(action),
        next => {
          next.late = { action, isCurrent: true }
        },
        "and stops before it arrives",
      )
  }

  /** What is due, from what the server shows. */
  function nextAction(world: World): Action | undefined {
    const { pods, second, status } = world
    const { template, isPaused, isHeld, operation, settled } = truth(world.deployment)
    const first = truth(world.first)
    const stale = pods.find(image => image !== template)
    const patch: Action | undefined = stale === undefined ? undefined : { do: "patch", from: stale, to: template }
    const flip: Action | undefined =
      first.template === template ? undefined : { do: "flip", from: first.template, to: template }
    if (!isHeld) {
      if (protocol.holds === "in a second write" && flip) return { do: "hold" }
      if (protocol.holds === "never" || !protocol.flipsBeforeRelease) return patch ?? flip
      return protocol.repairs && !isPaused && !flip && second === undefined ? patch : undefined
    }
    if (!isPaused || second !== undefined) return { do: "yield" }
    if (patch) return patch
    if (flip && protocol.flipsBeforeRelease) return !protocol.waitsForHold || status.isObserved ? flip : undefined
    if (!isFenced(world)) return undefined
    if (!bounds.isStanding) return { do: "release", template }
    return settled === operation ? undefined : { do: "settle", template }
  }

  function isFenced({ deployment, first, status, isFirstObserved }: World): boolean {
    const { isObserved, isUpdated } = status
    const { operation, replicas } = truth(deployment)
    if (protocol.fence === "none") return true
    if (protocol.fence === "copied") return truth(first).operation === operation
    if (protocol.fence === "observed") return isObserved
    const isCounted = isObserved && (isUpdated || replicas === 0)
    return protocol.fence === "updated" ? isCounted : isCounted && isFirstObserved
  }

  function carryOut(world: World, { action, isCurrent }: Late): void {
    const deployment = truth(world.deployment)
    switch (action.do) {
      case "hold":
        if (isCurrent) writeDeployment(world, { isPaused: true, isHeld: true })
        break
      case "patch": {
        const index = world.pods.indexOf(action.from)
        if (index >= 0) world.pods[index] = action.to
        world.pods.sort()
        break
      }
      case "flip": {
        const isAccepted =
          protocol.flipOnCondition === "version" ? isCurrent : truth(world.first).template === action.from
        if (isAccepted) writeFirst(world, { template: action.to })
        break
      }
      case "release": {
        const isSame = deployment.template === action.template
        const { releaseOnCondition: condition } = protocol
        if (condition === "version" ? isCurrent : condition === "none" || isSame)
          writeDeployment(world, { isPaused: false, isHeld: false })
        break
      }
      case "settle":
        if (isCurrent) writeDeployment(world, { settled: deployment.operation })
        break
      case "yield":
        if (isCurrent) writeDeployment(world, { isPaused: false, isHeld: false })
    }
  }

  function writeDeployment(world: World, change: Partial<Deployment>): void {
    write(world.deployment, change)
    world.status.isObserved = false
    if (world.reconcile) world.reconcile.isCurrent = false
    if (world.late && world.late.action.do !== "flip") world.late.isCurrent = false
  }

  function writeFirst(world: World, change: Partial<ReplicaSet>): void {
    write(world.first, change)
    if (change.operation === undefined) world.isFirstObserved = false
    if (world.late?.action.do === "flip") world.late.isCurrent = false
  }

  /** After the user has resumed, a native rollout is what was asked for. */
  function breaks(world: World, promised: Promised): void {
    if (!world.isResumed) world.broken.push(promised)
  }

  return { start, steps: stepsFrom, keyOf: numbering() }
}

/** Released, with the template that was asked for last. */
export function isReleased(world: World, { asks }: Bounds): boolean {
  const { isPaused, isHeld, template, replicas } = truth(world.deployment)
  const first = truth(world.first)
  if (isPaused || isHeld || template !== (asks[world.asked - 1] ?? 0)) return false
  if (world.second !== undefined) return world.second === template && first.replicas === 0
  return first.template === template && world.pods.length === replicas && world.pods.every(image => image === template)
}

/** The hold stands, and every pod and R0 have the template that was asked for last; or a person has released it. */
export function isSettled(world: World, bounds: Bounds): boolean {
  const { isHeld, settled, operation, template } = truth(world.deployment)
  if (!isHeld) return isReleased(world, bounds)
  const isDone = settled === operation && template === (bounds.asks[world.asked - 1] ?? 0)
  return isDone && truth(world.first).template === template && world.pods.every(image => image === template)
}

const wordsOf = ({ template, isPaused, replicas }: Deployment): string =>
  `the Deployment with T${template}${isPaused ? ", held" : ""}, ${replicas} replicas`

function inWords(action: Action): string {
  switch (action.do) {
    case "hold":
      return "holds the Deployment"
    case "patch":
      return `changes a pod from T${action.from} to T${action.to}`
    case "flip":
      return `changes R0 from T${action.from} to T${action.to}`
    case "release":
      return `releases the Deployment with T${action.template}`
    case "settle":
      return `says that the update to T${action.template} is over`
    case "yield":
      return "leaves the Deployment to its controller"
  }
}
