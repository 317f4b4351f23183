import { describe, expect, test } from "vitest"
import { breakWatch, isDecision, isWatch, nth, silence, stale } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import type { Resolution } from "#registry/index.ts"
import { type Clock, sleep } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import {
  Deployments,
  deployment,
  digest,
  type FailoverOptions,
  type FailoverStory,
  failover,
  ghcr,
  hub,
  pushEverywhere,
  quay,
  source,
  workload,
} from "#test/support/failover-story.ts"
import type { ProcessOptions } from "#test/support/scenario.ts"
import { type Fate, faults, keepRunning, watches } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"
import { failoverFaultSeeds } from "./operations/seeds.ts"
import { playSeeds } from "./runs.ts"

/** Registries that fail and return, described by conditions rather than times. */
type Story = Pick<FailoverOptions, "says"> & {
  spec?: Json
  workload?: Json
  tell(story: FailoverStory): Promise<void>
}

const refused = { kind: "refused" } as const
const three = { imageSourceReplacements: [{ equivalentRepositories: [quay, hub, ghcr] }] }
const always = { containers: [{ name: "basic-demo", image: `${quay}:1`, imagePullPolicy: "Always" }] }
const scale = ({ world }: FailoverStory, replicas: number) =>
  world.patch(Deployments, "demo", { spec: { replicas } }, "default")
/** Long enough for any wait that a fault may have made longer. */
const patience = "4h"

const stories: Record<string, Story> = {
  "the first repository is out": {
    async tell(story) {
      await story.untilRunning(3, patience)
    },
  },
  "the tag is missing in the mirror": {
    spec: three,
    async tell(story) {
      await story.untilRunning(3, patience)
    },
  },
  "the template is changed": {
    spec: { policy: { apply: "Template" } },
    async tell(story) {
      const isChanged = async () => (await story.running()).every(image => image === `${hub}:1`)
      await story.untilRunning(3, patience)
      await story.world.until("new pods", isChanged, patience)
    },
  },
  "a second one answers, and does not serve either": {
    spec: { ...three, policy: { cooldownSeconds: 90 } },
    says: image => (image.startsWith(hub) ? { ok: true, digest: digest("1"), mediaType: "" } : undefined),
    async tell(story) {
      story.registries.setFault("docker.io", refused)
      await story.untilRunning(3, patience)
    },
  },
  "the registries take turns": {
    workload: deployment("demo", `${quay}:1`, { pod: always }),
    async tell(story) {
      const { registries } = story
      await story.untilRunning(3, patience)
      registries.setFault("quay.io", undefined)
      registries.setFault("docker.io", refused)
      await scale(story, 4)
      await story.untilRunning(4, patience)
      registries.setFault("quay.io", refused)
      registries.setFault("docker.io", undefined)
      await scale(story, 5)
      await story.untilRunning(5, patience)
    },
  },
  "the pods of a StatefulSet, one after the other": {
    workload: workload("StatefulSet", "demo", `${quay}:1`),
    async tell(story) {
      await story.untilRunning(3, patience)
    },
  },
}

async function play(
  story: Story,
  seed: number,
  make: (clock: Clock) => Fate,
  says: FailoverOptions["says"] = story.says,
): Promise<FailoverStory> {
  const told = await failover({ seed, nodes: 1, isIdle: true, ...(says && { says }) })
  const { world, registries } = told
  pushEverywhere(registries, "1")
  registries.setFault("quay.io", refused)
  if (story === stories["the tag is missing in the mirror"]) registries.remove(`${hub}:1`)
  keepRunning(world, told.controller, make(world.clock))
  await world.apply(source(story.spec), story.workload ?? deployment("demo", `${quay}:1`))
  await story.tell(told)
  // What was bad for a template is remembered for ten minutes.
  await world.settle(story.spec?.policy?.apply === "Template" ? "12m" : "3m")
  return told
}

/** What remains of a run once the times are taken out: what runs, whether it was made anew, and what is said of it. */
async function outcome(story: FailoverStory): Promise<Json> {
  const { world } = story
  const { conditions, targetsAvailable, ...status } = await story.status()
  const isPod = ({ object }: { object: Json }) => object.kind === "Pod"
  return {
    images: await story.running(),
    restarts: (await story.pods()).map(({ status }) => status.containerStatuses[0].restartCount),
    made: world.history.filter(each => isPod(each) && each.type === "ADDED").length,
    template: [...new Set(world.history.filter(({ object }) => object.spec?.template).map(templateOf))],
    conditions: conditions.map(({ type, status, reason }: Json) => `${type} ${status} ${reason}`),
    containers: targetsAvailable.map(({ uid: _, switches = [], incident, ...target }: Json) => ({
      ...target,
      switches: switches.map(({ oldImage, newImage, reason }: Json) => `${oldImage} → ${newImage} (${reason})`),
      ...(incident && { incident: { ...incident, since: "", attempts: 0 } }),
    })),
    ...status,
  }
}

const templateOf = ({ object }: { object: Json }) => object.spec.template.spec.containers[0].image

/** Those that came to something. */
const writesOf = ({ world }: FailoverStory) =>
  world.record.failovers?.filter(({ revision }) => revision !== undefined).length ?? 0

type Calm = { story: Story; writes: number; outcome: Json }

const calm = new Map<string, Calm>()
for (const [name, story] of Object.entries(stories)) {
  const told = await play(story, 1, () => ({}))
  calm.set(name, { story, writes: writesOf(told), outcome: await outcome(told) })
}

/** Plays a story with misfortunes: it ends as it did without, what always holds did, and nothing was written in vain. */
async function endure(
  { story, ...calm }: Calm,
  where: string,
  seed: number,
  make: (clock: Clock) => Fate,
  says?: Says,
) {
  try {
    const told = await play(story, seed, make, says)
    judge(told.world.record)
    expect(await outcome(told)).toEqual(calm.outcome)
    expect(writesOf(told)).toBeLessThanOrEqual(calm.writes * 2 + 5)
  } catch (error) {
    throw new Error(`${where}: ${(error as Error).message}`, { cause: error })
  }
}
type Says = FailoverOptions["says"]

/** A view of the world that is wrong for a while. A silence is noticed after two and a half minutes. */
const views: Record<string, (clock: Clock) => ProcessOptions> = Object.fromEntries(
  ["pods", "alternateimagesources", "deployments"].flatMap(kind => [
    [
      `the first watch of ${kind} says nothing`,
      () => ({ faults: [silence(nth(watches(kind), 1))], seesLateByMs: 180_000 }),
    ],
    [
      `every watch of ${kind} breaks after a few events`,
      () => ({ faults: [breakWatch(watches(kind), 3)], seesLateByMs: 60_000 }),
    ],
  ]),
)
const lateViews: typeof views = {
  "what watches say comes half a minute late": clock => ({
    faults: [stale(isWatch, clock, 30_000)],
    seesLateByMs: 30_000,
  }),
}

/** Registries that are in a bad mood when they are asked. */
const answers: Record<string, () => Says> = {
  "each is unreachable at first": () => once({ ok: false, class: "Unreachable", message: "" }),
  "each limits us at first": () => once({ ok: false, class: "RateLimited", message: "", retryAfterMs: 30_000 }),
  "each answers nonsense at first": () => once({ ok: false, class: "InvalidAnswer", message: "" }),
  "each lets us wait": () => async (_, clock) => void (await sleep(clock, 9000)),
}

function once(said: Resolution): Says {
  const asked = new Set<string>()
  return image => {
    if (asked.has(image)) return undefined
    asked.add(image)
    return said
  }
}

// In the long form every fault strikes at every write; in the short form each at some, and together at all of them.
const isLong = process.env.AIM_RUNS !== undefined
const every = isLong ? 1 : 7

for (const [title, story] of calm)
  describe(title, () => {
    test("the trace is long enough to mean something", () => expect(story.writes).toBeGreaterThan(3))

    for (const [index, [name, make]] of Object.entries(faults).entries())
      test(`ends as it would have: ${name}, at each of ${story.writes} writes`, async () => {
        for (let n = 1 + (index % every); n <= story.writes; n += every)
          await endure(story, `${name}, at write ${n}`, 1, clock =>
            make(nth(isDecision, n), clock, nth(isDecision, n + 1)),
          )
      })

    for (const [name, make] of Object.entries({ ...views, ...lateViews }))
      test(`ends as it would have: ${name}`, () => endure(story, name, 1, make))

    if (!story.story.says)
      for (const [name, make] of Object.entries(answers))
        test(`ends as it would have: ${name}`, () => endure(story, name, 1, () => ({}), make()))
  })

/** Up to three faults at random writes of a random story; the seed is all there is to it. */
async function misfortunes(seed: number) {
  const random = seededRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!
  const [title, story] = pick([...calm])
  const chosen = Array.from({ length: 1 + Math.floor(random.next() * 3) }, () => ({
    fault: pick(Object.entries(faults)),
    n: 1 + Math.floor(random.next() * story.writes),
  }))
  const where = `seed ${seed}, ${title}: ${chosen.map(({ fault: [name], n }) => `${name} at ${n}`).join("; ")}`
  await endure(story, where, seed, clock => {
    const all = chosen.map(({ fault: [, make], n }) => make(nth(isDecision, n), clock, nth(isDecision, n + 1)))
    const [successor = {}] = all.flatMap(({ successor = [] }) => successor)
    const dies = Object.assign({}, ...all.map(({ dies }) => dies))
    return { faults: all.flatMap(({ faults = [] }) => faults), dies, successor }
  })
  return { wrongs: [], told: [where] }
}

playSeeds("several misfortunes in one story", { short: 20, share: 0.25 }, misfortunes)

for (const [seed, lesson] of Object.entries(failoverFaultSeeds))
  test(`seed ${seed}: ${lesson}`, async () => {
    await misfortunes(Number(seed))
  })

test("what runs from elsewhere is left alone, over a day", async () => {
  const { world } = await play(stories["the first repository is out"]!, 1, () => ({}))
  const looked = world.history.length
  await world.advance("24h")
  const written = world.history
    .slice(looked)
    .filter(({ object }) => object.kind === "AlternateImageSource" || object.kind === "Pod")
  expect(written.map(({ place, object }) => `${place} ${object.metadata.name}`)).toEqual([])
})
