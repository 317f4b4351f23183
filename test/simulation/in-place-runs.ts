import { expect } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { settingAnnotations } from "#core/in-place/names.ts"
import { type InPlaceStory, identity, imageOf, isHeld, isRolledOut, v2 } from "#test/support/in-place-story.ts"
import { judge } from "./invariants/invariants.ts"

/** With a gate and a grace period: each pod is written three times. */
export const withGate = { hasGate: true, annotations: { [settingAnnotations.graceSeconds]: "2" }, isAlone: true }

const gateOf = ({ status }: Json) =>
  status.conditions.find(({ type }: Json) => type === "autoimagemanager.io/InPlaceUpdateReady")?.status

export const isActive = ({ spec, status }: Json) => spec.replicas > 0 || (status?.replicas ?? 0) > 0

type Expected = {
  image?: string
  /** An image that does not work, or another one in between, leaves other revisions. */
  sets?: number
}

/** Every pod is the pod it was, the Deployment is complete, and what always holds did at every moment. */
export async function expectDone(
  story: InPlaceStory,
  before: readonly Json[],
  what: string,
  { image = v2, sets = 2 }: Expected = {},
): Promise<void> {
  const { world } = story
  // What always holds says more than an update that comes to no end.
  await story.free("1h").catch(error => {
    judge(world.record)
    throw new Error(`${what}: ${error.message}`)
  })
  await world.settle("2m")
  judge(world.record)
  const after = await story.pods()
  const deployment = await story.deployment()
  const active = (await story.sets()).filter(isActive)
  expect([what, after.map(identity)]).toEqual([what, before.map(identity)])
  expect([what, after.map(pod => imageOf(pod))]).toEqual([what, before.map(() => image)])
  expect([what, active.length, isRolledOut(deployment), isHeld(deployment)]).toEqual([what, 1, true, false])
  expect([what, after.some(pod => gateOf(pod) === "False")]).toEqual([what, false])
  // Neither for a moment: a controller that sees the release before the flip makes another ReplicaSet, which then goes.
  const ever = (kind: string) =>
    new Set(world.history.flatMap(({ object }) => (object.kind === kind ? [object.metadata.uid] : [])))
  expect([what, ever("Pod").size, ever("ReplicaSet").size]).toEqual([what, before.length, sets])
  // A create has no condition: one that arrives after the end leaves an idle job until the next update.
  if (!what.includes("late")) expect([what, await story.jobs()]).toEqual([what, []])
}
