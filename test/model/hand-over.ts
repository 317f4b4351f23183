import { type HandOver, type HandOverStep, nextOfHandOver } from "#core/canary/hand-over.ts"
import { deliver, isCaughtUp, numbering, steps, type Take, truth, type Watched, write } from "./in-place-world.ts"
import type { Model } from "./search.ts"

/**
 * A tested ReplicaSet moves from the Deployment of a run to the user's Deployment, beside native controllers whose
 * caches are behind. The user's Deployment is held: paused, with the tested template T1, and its pods are those of the
 * old ReplicaSet, of T0. Our side is the product's own `nextOfHandOver`.
 *
 * What native controllers do is as it was found on a real cluster (reference §10 of progressive delivery) and as their
 * source reads: a paused Deployment makes no ReplicaSet; with one active ReplicaSet it scales that one; with several it
 * scales the old ones to zero when the new one has its size, and resizes all in proportion when it has not. The oldest
 * ReplicaSet with an equal template counts as the new one, and gets the revision as an annotation. Deployments come by
 * one watch and ReplicaSets by another; a reconcile reads its Deployment first and the ReplicaSets later, and writes a
 * ReplicaSet on condition of the version that it read.
 */
export type Bounds = {
  readonly replicas: number
  /** What the user scales to, one after the other, each at any time. */
  readonly scales: readonly number[]
  readonly hasTwin: boolean
  readonly writesLate: boolean
}

/** What the sound protocol sees; a broken one is blind for something. */
export type Sight = (seen: HandOver) => HandOver

type Deployments = { user: { isPaused: boolean; replicas: number }; trial?: { isPaused: boolean; replicas: number } }
type Sets = {
  old: { replicas: number }
  tested: { owner: "trial" | "user"; replicas: number; isCounted: boolean }
  twin?: { replicas: number }
}
type Reading = { of: "user" | "trial"; deployments: Deployments; isCurrent: boolean }
type Due = Extract<HandOverStep, { do: string }>
type Late = { due: Due; isCurrent: boolean }

export const promises = ["no ReplicaSet is made", "no tested pod goes", "pods answer for the whole size"] as const
export type Promised = (typeof promises)[number]

export type World = {
  scaled: number
  deployments: Watched<Deployments>
  sets: Watched<Sets>
  isPauseSeen: boolean // the run's Deployment has reported the generation with the pause
  reading: Reading | undefined // has read a Deployment, and not yet the ReplicaSets
  late: Late | undefined
  broken: Promised[]
}

export function handOver(sight: Sight, bounds: Bounds): Model<World> {
  const { replicas } = bounds
  const start: World = {
    scaled: 0,
    deployments: {
      seen: { user: { isPaused: true, replicas }, trial: { isPaused: false, replicas } },
      coming: [],
    },
    sets: {
      seen: {
        old: { replicas },
        tested: { owner: "trial", replicas, isCounted: false },
        ...(bounds.hasTwin && { twin: { replicas: 0 } }),
      },
      coming: [],
    },
    isPauseSeen: false,
    reading: undefined,
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
    const wanted = bounds.scales[world.scaled]
    if (wanted !== undefined)
      take("the user", "scale", `scales to ${wanted}`, next => {
        next.scaled++
        writeDeployments(next, { user: { ...truth(next.deployments).user, replicas: wanted } })
      })
  }

  function moveNative(world: World, take: Take<World>): void {
    const { deployments, sets, reading } = world
    if (!isCaughtUp(deployments))
      take("the native cache", "see", "sees the next version of the Deployments", next => deliver(next.deployments))
    if (!isCaughtUp(sets))
      take("the native cache", "see", "sees the next version of the ReplicaSets", next => deliver(next.sets))
    if (reading) {
      take("the native controller", "reconcile", `acts for the ${reading.of} Deployment`, reconciled)
      return
    }
    for (const of of ["user", "trial"] as const)
      if (deployments.seen[of])
        take("the native controller", `read ${of}`, `reads the ${of} Deployment`, next => {
          next.reading = { of, deployments: next.deployments.seen, isCurrent: isCaughtUp(next.deployments) }
        })
  }

  function reconciled(world: World): void {
    const { of, deployments, isCurrent } = world.reading!
    world.reading = undefined
    if (of === "user") reconcileUser(world, deployments.user)
    else if (deployments.trial) reconcileTrial(world, deployments.trial)
    if (of === "trial" && isCurrent && deployments.trial?.isPaused) world.isPauseSeen = true
  }

  function reconcileTrial(world: World, { isPaused, replicas: wanted }: { isPaused: boolean; replicas: number }): void {
    const { tested } = world.sets.seen
    if (tested.owner === "trial") resize(world, "tested", wanted)
    else if (!isPaused && truth(world.deployments).trial) world.broken.push("no ReplicaSet is made")
  }

  function reconcileUser(world: World, { isPaused, replicas: wanted }: { isPaused: boolean; replicas: number }): void {
    const { old, tested, twin } = world.sets.seen
    const isTested = tested.owner === "user" && !twin
    if (!twin && !isTested) {
      if (!isPaused) world.broken.push("no ReplicaSet is made")
      else resize(world, "old", wanted)
      return
    }
    if (twin) {
      // The older one of two with the tested template counts: the tested one is an old one now.
      if (tested.owner === "user") world.broken.push("no tested pod goes")
      else if (isPaused) resize(world, "old", wanted)
      return
    }
    if (!tested.isCounted) writeSet(world, "tested", { isCounted: true })
    if (tested.replicas === wanted) resize(world, "old", 0)
    else if (old.replicas === 0 || !isPaused) resize(world, "tested", wanted)
    // In proportion: both shrink, or both grow.
    else if (bounds.scales.length === 0) world.broken.push("no tested pod goes")
    else {
      resize(world, "old", 0)
      resize(world, "tested", wanted)
    }
  }

  function resize(world: World, name: "old" | "tested", wanted: number): void {
    if (world.sets.seen[name].replicas === wanted) return
    if (name === "tested" && wanted < world.sets.seen.tested.replicas && bounds.scales.length === 0)
      world.broken.push("no tested pod goes")
    writeSet(world, name, { replicas: wanted })
    const { old, tested } = truth(world.sets)
    if (old.replicas + tested.replicas < Math.min(replicas, ...bounds.scales))
      world.broken.push("pods answer for the whole size")
  }

  /** On condition of the version that was read: what is behind is refused. */
  function writeSet(world: World, name: "old" | "tested", change: Partial<Sets["tested"]>): void {
    const now = truth(world.sets)
    if (JSON.stringify(now[name]) !== JSON.stringify(world.sets.seen[name])) return
    write(world.sets, { [name]: { ...now[name], ...change } })
    if (world.late?.due.do === "moveSet" && name === "tested") world.late.isCurrent = false
  }

  function moveOurs(world: World, take: Take<World>): void {
    const { late } = world
    if (late)
      take("a late write", "arrive", `arrives: ${late.due.do}`, next => {
        next.late = undefined
        carryOut(next, late)
      })
    const due = nextOfHandOver(sight(whatIsSeen(world)))
    if (due === "done" || !("do" in due)) return
    take("aim", due.do, due.do, next => carryOut(next, { due, isCurrent: true }))
    if (bounds.writesLate && !late)
      take(
        "aim",
        due.do,
        due.do,
        next => {
          next.late = { due, isCurrent: true }
        },
        "and stops before it arrives",
      )
  }

  function whatIsSeen(world: World): HandOver {
    const { user, trial } = truth(world.deployments)
    const { old, tested, twin } = truth(world.sets)
    return {
      ...(trial && { trial: { isPaused: trial.isPaused, isPauseSeen: world.isPauseSeen, size: trial.replicas } }),
      set: { owner: tested.owner, size: tested.replicas, ready: tested.replicas },
      ...(twin && { twin: { size: twin.replicas } }),
      user: {
        size: user.replicas,
        isHeld: user.isPaused,
        hasTestedTemplate: true,
        hasCounted: tested.isCounted && old.replicas === 0,
      },
    }
  }

  function carryOut(world: World, { due, isCurrent }: Late): void {
    const now = truth(world.deployments)
    switch (due.do) {
      case "scaleTrial":
        if (now.trial) writeDeployments(world, { trial: { ...now.trial, replicas: due.size } })
        break
      case "pauseTrial":
        if (now.trial) writeDeployments(world, { trial: { ...now.trial, isPaused: true } })
        break
      case "deleteTrial":
        writeDeployments(world, { trial: undefined as never })
        break
      case "resumeUser":
        if (isCurrent) writeDeployments(world, { user: { ...now.user, isPaused: false } })
        break
      case "deleteTwin":
        write(world.sets, { twin: undefined as never })
        break
      case "moveSet":
        if (!isCurrent || truth(world.sets).tested.owner !== "trial") return
        write(world.sets, { tested: { ...truth(world.sets).tested, owner: "user", isCounted: false } })
    }
  }

  function writeDeployments(world: World, change: Partial<Deployments>): void {
    write(world.deployments, change)
    if (world.reading) world.reading.isCurrent = false
    if (world.late?.due.do === "resumeUser" && change.user) world.late.isCurrent = false
  }

  return { start, steps: stepsFrom, keyOf: numbering() }
}

/** Handed over: one Deployment, resumed, with the tested ReplicaSet at the size that was asked for last. */
export function isHandedOver(world: World, { replicas, scales }: Bounds): boolean {
  const { user, trial } = truth(world.deployments)
  const { old, tested } = truth(world.sets)
  const wanted = scales[world.scaled - 1] ?? replicas
  return !trial && !user.isPaused && old.replicas === 0 && tested.owner === "user" && tested.replicas === wanted
}
