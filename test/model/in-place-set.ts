import { deliver, isCaughtUp, numbering, steps, type Take, truth, type Watched, write } from "./in-place-world.ts"
import type { Model } from "./search.ts"

/**
 * An update in place of a StatefulSet or DaemonSet beside the native controller, whose caches are behind. A revision
 * has the number of its template.
 *
 *   hold      the user's own write of another image also sets the partition above every ordinal, or OnDelete
 *   patch     a pod gets the image; tests the image it had
 *   label     once the pod runs the image in health, it gets the label of the revision
 *   fence     wait until the native controller counts every label
 *   release   restore the strategy, on condition that the workload has not changed since it was read
 *
 * What the native controller does is as `test/conformance` found it: unless held it deletes pods with another label. A
 * pod that is lost comes back from the current revision while a StatefulSet is held, and else from the template. The
 * current revision becomes that of the template when every pod has its label and is ready. The status is written on
 * condition of the version that was read; the workload is read first, and its pods are listed later.
 */
export type Protocol = {
  readonly holds: "in the same write" | "in a second write"
  /** A write of the same manifest does not take the hold away. */
  readonly reasserts: boolean
  readonly labels: "after health" | "with the image" | "never"
  /** Labels are written only after the native controller has reported the generation with the hold. */
  readonly waitsForHold: boolean
  /** Labels are written only while the native controller counts the labels, and the pods, that are there. */
  readonly labelsWhenCounted: "labels and pods" | "labels" | "no"
  /** Labels are written only after every pod that an earlier target changed has been changed again. */
  readonly labelsAfterTakingBack: boolean
  /** version: on the very version of the pod that was verified; image: on the pod of that uid with that image. */
  readonly labelOnCondition: "version" | "image" | "none"
  /** counted: every pod is updated, and so is the current revision; observed: observedGeneration alone. */
  readonly fence: "counted" | "observed" | "none"
  readonly releaseOnCondition: boolean
  /** A pod with another image than the template, after the release, gets the template's. */
  readonly repairs: boolean
}

export const sound: Protocol = {
  holds: "in the same write",
  reasserts: true,
  labels: "after health",
  waitsForHold: true,
  labelsWhenCounted: "labels and pods",
  labelsAfterTakingBack: true,
  labelOnCondition: "version",
  fence: "counted",
  releaseOnCondition: true,
  repairs: true,
}

export type Bounds = {
  readonly kind: "StatefulSet" | "DaemonSet"
  readonly replicas: number
  /** The templates that the user asks for, one after the other, each at any time. */
  readonly asks: readonly number[]
  /** The templates whose image crashes. */
  readonly bad: readonly number[]
  /** The user writes the same manifest again. */
  readonly reapplies: boolean
  readonly losesPods: boolean
  readonly writesLate: boolean
}

type Workload = { template: number; isHeld: boolean; isMarked: boolean }
type Pod = {
  uid: number
  image: number
  runs: number // the image of its container; another one than `image` until the kubelet restarts it
  isReady: boolean
  label: number
  isProven: boolean // was it seen to run the image of its label in health?
}
/** What the native controller counts of a pod. */
type Seen = { label: number; isReady: boolean } | null
type Action =
  | { do: "hold" }
  | { do: "patch"; pod: number; from: number; to: number }
  | { do: "label"; pod: number; uid: number; image: number; to: number }
  | { do: "release" }
type Late = { action: Action; isCurrent: boolean }

export const promises = [
  "no pod is made anew",
  "the current revision is one that every pod has run in health",
  "a release finds every pod on the image",
] as const
export type Promised = (typeof promises)[number]

export type World = {
  asked: number
  hasReapplied: boolean
  hasLost: boolean
  workload: Watched<Workload>
  pods: (Pod | null)[]
  cache: Watched<{ pods: Seen[] }>
  status: { isObserved: boolean; replicas: number; updated: number; current: number }
  reconcile: { workload: Workload; isCurrent: boolean } | undefined // has read it, and not yet its pods
  late: Late | undefined
  broken: Promised[]
}

export function inPlaceSet(protocol: Protocol, bounds: Bounds): Model<World> {
  const newPod = (template: number, uid: number): Pod => ({
    uid,
    image: template,
    runs: template,
    isReady: !bounds.bad.includes(template),
    label: template,
    isProven: true,
  })
  const firstPods = Array.from({ length: bounds.replicas }, () => newPod(0, 0))
  const start: World = {
    asked: 0,
    hasReapplied: false,
    hasLost: false,
    workload: { seen: { template: 0, isHeld: false, isMarked: false }, coming: [] },
    pods: firstPods,
    cache: { seen: { pods: firstPods.map(seenOf) }, coming: [] },
    status: { isObserved: true, replicas: bounds.replicas, updated: bounds.replicas, current: 0 },
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
    const template = bounds.asks[world.asked]
    if (template !== undefined)
      take("the user", "ask", `asks for T${template}`, next => {
        next.asked++
        const isHeld = protocol.holds === "in the same write"
        writeWorkload(next, { template, ...(isHeld && { isHeld, isMarked: isHeld }) })
      })
    if (bounds.reapplies && !world.hasReapplied && truth(world.workload).isHeld)
      take("the user", "apply", "applies the same manifest again", next => {
        next.hasReapplied = true
        if (!protocol.reasserts) writeWorkload(next, { isHeld: false })
      })
    if (bounds.losesPods && !world.hasLost && world.pods[0])
      take("a node", "lose", "loses the first pod", next => {
        next.hasLost = true
        next.pods[0] = null
        podMoved(next, 0)
      })
  }

  function moveNative(world: World, take: Take<World>): void {
    const { workload, cache, reconcile } = world
    if (!isCaughtUp(workload))
      take("the native cache", "see", `sees ${wordsOf(workload.coming[0]!)}`, next => deliver(next.workload))
    if (!isCaughtUp(cache))
      take("the native cache", "see", `sees labels ${labelsOf(cache.coming[0]!.pods)}`, next => deliver(next.cache))
    if (!reconcile)
      take("the native controller", "read", `reads ${wordsOf(workload.seen)}`, next => {
        next.reconcile = { workload: workload.seen, isCurrent: isCaughtUp(workload) }
      })
    else take("the native controller", "reconcile", `acts with labels ${labelsOf(cache.seen.pods)}`, reconciled)
    world.pods.forEach((pod, index) => {
      if (pod && pod.runs !== pod.image)
        take("the kubelet", "restart", `restarts pod ${index} with T${pod.image}`, next => {
          Object.assign(next.pods[index]!, { runs: pod.image, isReady: !bounds.bad.includes(pod.image) })
          podMoved(next, index)
        })
    })
  }

  /** The second half of a reconcile: lists the pods and acts. */
  function reconciled(world: World): void {
    const { workload, isCurrent } = world.reconcile!
    const { template, isHeld } = workload
    world.reconcile = undefined
    const seen = world.cache.seen.pods
    const missing = seen.indexOf(null)
    const outdated = isHeld ? -1 : seen.findLastIndex(pod => pod !== null && pod.label !== template)
    if (missing >= 0) {
      const isKept = isHeld && bounds.kind === "StatefulSet"
      if (!world.pods[missing]) world.pods[missing] = newPod(isKept ? world.status.current : template, 1)
      podMoved(world, missing)
    } else if (outdated >= 0) {
      world.pods[outdated] = newPod(template, 1)
      podMoved(world, outdated)
      world.broken.push("no pod is made anew")
    }
    if (isCurrent) report(world, template, seen)
  }

  function report(world: World, template: number, seen: readonly Seen[]): void {
    const updated = seen.filter(pod => pod?.label === template).length
    const isComplete = updated === seen.length && seen.every(pod => pod?.isReady)
    const moves = isComplete && world.status.current !== template && bounds.kind === "StatefulSet"
    if (moves && world.pods.some(pod => pod?.label === template && !pod.isProven))
      world.broken.push("the current revision is one that every pod has run in health")
    const replicas = seen.filter(pod => pod !== null).length
    world.status = { isObserved: true, replicas, updated, current: moves ? template : world.status.current }
  }

  function moveOurs(world: World, take: Take<World>): void {
    const { late } = world
    if (late)
      take("a late write", "arrive", `arrives: ${inWords(late.action)}`, next => {
        next.late = undefined
        carryOut(next, late)
      })
    for (const action of nextActions(world)) {
      take("aim", action.do, inWords(action), next => carryOut(next, { action, isCurrent: true }))
      if (!bounds.writesLate || late) continue
      const send = (next: World) => {
        next.late = { action, isCurrent: true }
      }
      take("aim", action.do, inWords(action), send, "and stops before it arrives")
    }
  }

  /** What is due, from what the server shows. A pod may be labelled before the next one is changed, or after it. */
  function nextActions(world: World): Action[] {
    const { pods } = world
    const { template, isHeld, isMarked } = truth(world.workload)
    const stale = pods.findIndex(pod => pod && pod.image !== template)
    const patches: Action[] = stale < 0 ? [] : [{ do: "patch", pod: stale, from: pods[stale]!.image, to: template }]
    if (!isMarked) {
      if (protocol.holds === "in a second write" && stale >= 0) return [{ do: "hold" }]
      return protocol.repairs ? patches : []
    }
    if (!isHeld) return [{ do: "hold" }]
    const labels = dueLabels(world)
    const isWaiting = protocol.waitsForHold && !world.status.isObserved
    if (patches.length + labels.length > 0 || isWaiting) return [...patches, ...labels]
    const isBare = (pod: Pod) => protocol.labels !== "never" && pod.label !== template
    if (pods.some(pod => !pod || isBare(pod) || (!isHealthy(pod) && protocol.labels !== "with the image"))) return []
    return isFenced(world) ? [{ do: "release" }] : []
  }

  /** The next pod that runs the image in health and has another label. */
  function dueLabels({ pods, status, workload }: World): Action[] {
    const { template } = truth(workload)
    if (protocol.labels === "never" || (protocol.waitsForHold && !status.isObserved)) return []
    const isDue = (pod: Pod | null) =>
      pod &&
      pod.image === template &&
      pod.label !== template &&
      (isHealthy(pod) || protocol.labels === "with the image")
    const bare = pods.findIndex(isDue)
    if (bare < 0) return []
    // A late label of the earlier target may be on its way to such a pod, until the pod has another version.
    const isLeft = (pod: Pod | null) => pod && pod.image !== template && pod.image !== pod.label
    if (protocol.labelsAfterTakingBack && pods.some(isLeft)) return []
    const { uid, image } = pods[bare]!
    const counted = pods.filter(pod => pod?.label === template).length
    if (protocol.labelsWhenCounted !== "no" && status.updated !== counted) return []
    if (protocol.labelsWhenCounted === "labels and pods" && status.replicas !== pods.length) return []
    return [{ do: "label", pod: bare, uid, image, to: template }]
  }

  function isFenced({ status, workload }: World): boolean {
    if (protocol.fence === "none") return true
    if (protocol.fence === "observed") return status.isObserved
    const isMoved = bounds.kind === "DaemonSet" || status.current === truth(workload).template
    return status.isObserved && status.updated === bounds.replicas && isMoved
  }

  function carryOut(world: World, { action, isCurrent }: Late): void {
    if (action.do === "hold") {
      if (isCurrent) writeWorkload(world, { isHeld: true, isMarked: true })
      return
    }
    if (action.do === "release") {
      if (!isCurrent && protocol.releaseOnCondition) return
      const { template } = truth(world.workload)
      if (world.pods.some(pod => pod && pod.image !== template))
        world.broken.push("a release finds every pod on the image")
      writeWorkload(world, { isHeld: false, isMarked: false })
      return
    }
    const pod = world.pods[action.pod]
    if (!pod) return
    if (action.do === "patch") {
      if (pod.image !== action.from) return
      pod.image = action.to
      if (protocol.labels === "with the image") Object.assign(pod, { label: action.to, isProven: false })
    } else {
      const isSame = pod.uid === action.uid && pod.image === action.image
      if (protocol.labelOnCondition === "version" ? !isCurrent : protocol.labelOnCondition === "image" && !isSame)
        return
      Object.assign(pod, { label: action.to, isProven: isHealthy(pod) && pod.image === action.to })
    }
    podMoved(world, action.pod)
  }

  function writeWorkload(world: World, change: Partial<Workload>): void {
    write(world.workload, change)
    world.status.isObserved = false
    if (world.reconcile) world.reconcile.isCurrent = false
    if (world.late && !("pod" in world.late.action)) world.late.isCurrent = false
  }

  /** What the native controller does not count of pods brings it nothing. */
  function podMoved(world: World, index: number): void {
    if (world.late && "pod" in world.late.action && world.late.action.pod === index) world.late.isCurrent = false
    const pods = world.pods.map(seenOf)
    if (JSON.stringify(pods) !== JSON.stringify(truth(world.cache).pods)) write(world.cache, { pods })
  }

  return { start, steps: stepsFrom, keyOf: numbering() }
}

/** Released, with the template that was asked for last. */
export function isReleased({ workload, pods, asked }: World, { asks }: Bounds): boolean {
  const { template, isHeld, isMarked } = truth(workload)
  if (isHeld || isMarked || template !== (asks[asked - 1] ?? 0)) return false
  return pods.every(pod => pod && pod.runs === template && pod.label === template)
}

const isHealthy = ({ image, runs, isReady }: Pod): boolean => runs === image && isReady
const seenOf = (pod: Pod | null): Seen => pod && { label: pod.label, isReady: pod.isReady }
const labelsOf = (pods: readonly Seen[]): string => pods.map(pod => (pod ? `T${pod.label}` : "none")).join(" ")
const wordsOf = ({ template, isHeld }: Workload): string => `the workload with T${template}${isHeld ? ", held" : ""}`

function inWords(action: Action): string {
  switch (action.do) {
    case "hold":
      return "holds the workload"
    case "patch":
      return `changes pod ${action.pod} from T${action.from} to T${action.to}`
    case "label":
      return `labels pod ${action.pod} with T${action.to}`
    case "release":
      return "releases the workload"
  }
}
