import { approvedAnnotation, retryAnnotation, rollbackAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import type { Judges } from "#controllers/serviceimage/questions.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { QueryValues } from "#core/canary/query-template.ts"
import { formatApproval } from "#core/fleet/approval.ts"
import type { Wiring } from "#runtime/controller.ts"
import { quickOperator } from "#test/support/quick-operator.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"

/**
 * A story of a fleet, described by conditions rather than times: whatever delays the controller, the next
 * thing happens when the story has come there.
 */
export type Story = {
  spec?: Json
  tiers?: Json[]
  /** Tenants that are not like the others. */
  tenants?: Record<string, Json>
  /** Two processes stand for election. */
  leaderElect?: boolean
  /** What steps are judged with, where tiers have an analysis. */
  judges?: (wiring: Wiring) => Judges
  /** Only a death and a lost answer can make it differ from the others: the short form tries no more. */
  isBrief?: boolean
  /** From where all have v1. */
  tell(world: World): Promise<void>
}

const image = (tag: string) => `registry.example.com/dicom:${tag}`
const [v1, v2, v3] = [image("v1"), image("v2"), image("v3")]

const early = { upgradeTier: "early", priority: 1 }
const rest = { upgradeTier: "", priority: 0 }
const standardTiers = [early, { ...rest, maxConcurrent: 2 }]

const analysis = {
  interval: "30s",
  threshold: 2,
  metrics: [{ name: "errors", templateRef: { name: "errors" }, thresholdRange: { max: 5 } }],
}

/** Numbers that are measured instead of a metric service, and that take a moment. More than five is bad. */
function judgedBy({ clock, enqueue }: Wiring, measure: (values: QueryValues) => number): Judges {
  const known = new Set<string>()
  const found = (value: number) =>
    value > 5
      ? ({ name: "errors", verdict: "Bad", value, why: `${value} is above 5` } as const)
      : ({ name: "errors", verdict: "Good", value } as const)
  return {
    measuring: {
      checksOf({ key, id, values }) {
        if (known.has(id)) return [found(measure(values))]
        clock.after(500, () => {
          known.add(id)
          enqueue(key)
        })
        return undefined
      },
    },
    hooks: { answerOf: () => undefined },
  }
}

export const stories: Record<string, Story> = {
  "an upgrade over two tiers, two at once in the second": {
    async tell(world) {
      await setImage(world, v2)
      await complete(world)
    },
  },
  "steps that soak, after an approval": {
    tiers: [
      { ...early, requireApproval: true },
      { ...rest, steps: [{ percent: 30, soakSeconds: 60 }] },
    ],
    async tell(world) {
      await setImage(world, v2)
      const waits = ({ conditions }: Json) => conditions.some((each: Json) => each.reason === "AwaitingApproval")
      await world.until("the question", async () => (await status(world)).tierStatus.some(waits))
      const { operation } = await status(world)
      await annotate(world, approvedAnnotation, formatApproval({ operation: operation.id, tiers: ["early"] }))
      await complete(world)
    },
  },
  "a pause, a change of mind in the middle, and back again": {
    async tell(world) {
      await setImage(world, v2)
      await has(world, "early-1", v2)
      await world.patch(serviceImages, "dicom", { spec: { paused: true } })
      await world.advance("1m")
      await world.patch(serviceImages, "dicom", { spec: { paused: false } })
      await has(world, "late-1", v2)
      await setImage(world, v3)
      await has(world, "early-2", v3)
      await setImage(world, v1)
      await complete(world)
    },
  },
  "an image that is withdrawn as soon as it is announced": {
    async tell(world) {
      await setImage(world, v2)
      await world.until("it to be announced", async () => (await status(world)).observedGeneration === 2, "6h")
      await setImage(world, v1)
      await complete(world)
    },
  },
  "a tenant whose failure halts the rollout, and a fixed image": {
    tiers: [early, { ...rest, progressDeadlineSeconds: 300, maxConcurrent: 1 }],
    tenants: { "late-1": { failureHaltsUpdate: true } },
    async tell(world) {
      await label(world, "late-1", { sick: "yes" })
      await setImage(world, v2)
      await world.until("the halt", async () => (await status(world)).operation.phase === "Halted", "6h")
      await world.advance("1m")
      await label(world, "late-1", { sick: null })
      await setImage(world, v3)
      await complete(world)
    },
  },
  "a spent budget takes back what was changed": {
    spec: { onFailure: "Rollback" },
    tiers: [{ ...early, progressDeadlineSeconds: 300, failureBudget: 0 }, rest],
    async tell(world) {
      await label(world, "early-1", { sick: "yes" })
      await setImage(world, v2)
      await world.until("it to be back", async () => (await status(world)).operation.phase === "RolledBack", "6h")
    },
  },
  "a step whose metrics are bad, and a fixed image": {
    spec: { analysisNamespace: "default" },
    tiers: [early, { ...rest, steps: [{ percent: 30 }], analysis }],
    isBrief: true,
    // What is measured depends on the image alone.
    judges: wiring => judgedBy(wiring, ({ target }) => (target === v2 ? 9 : 1)),
    async tell(world) {
      await setImage(world, v2)
      await world.until("the halt", async () => (await status(world)).operation.phase === "Halted", "6h")
      await setImage(world, v3)
      await complete(world)
    },
  },
  "an upgrade that is taken back by hand, and tried again": {
    async tell(world) {
      await setImage(world, v2)
      await complete(world)
      const { id } = (await status(world)).operation
      await annotate(world, rollbackAnnotation, id)
      await world.until("it to be back", async () => (await status(world)).operation.phase === "RolledBack", "6h")
      await annotate(world, retryAnnotation, id)
      await world.until("another try", async () => (await status(world)).operation.id !== id, "6h")
      await complete(world)
    },
  },
  "tenants that are created, move and leave in the middle": {
    async tell(world) {
      await setImage(world, v2)
      await has(world, "early-1", v2)
      await world.apply(dicom("new-1"))
      await label(world, "late-1", { "upgrade-tier": "early" })
      await world.client.delete(Dicoms, { name: "late-2", namespace: "default" })
      await complete(world)
      await has(world, "new-1", v2)
    },
  },
  "a writer that puts the old image back three times": {
    async tell(world) {
      await setImage(world, v2)
      for (let turn = 0; turn < 3; turn++) {
        await has(world, "late-1", v2)
        await world.patch(Dicoms, "late-1", { spec: { image: v1 } }, "default")
      }
      await has(world, "late-1", v2)
      await complete(world)
    },
  },
  "two processes, and intents that are used up slowly": {
    leaderElect: true,
    spec: { pace: { podsPerSecond: 1 } },
    tiers: [early, rest],
    async tell(world) {
      await setImage(world, v2)
      await complete(world)
    },
  },
}

const setImage = (world: World, defaultImage: string) => world.patch(serviceImages, "dicom", { spec: { defaultImage } })
const status = async (world: World): Promise<Json> => (await world.get(serviceImages, "dicom")).status ?? {}
const annotate = (world: World, name: string, value: string) =>
  world.patch(serviceImages, "dicom", { metadata: { annotations: { [name]: value } } })
const label = (world: World, name: string, labels: Json) =>
  world.patch(Dicoms, name, { metadata: { labels } }, "default")

const has = (world: World, name: string, image: string) =>
  world.until(
    `${name} to have ${image}`,
    async () => (await world.get(Dicoms, name, "default")).spec.image === image,
    "6h",
  )

const complete = (world: World) =>
  world.until(
    "what the spec says now to be complete",
    async () => {
      const { metadata, status } = await world.get(serviceImages, "dicom")
      const condition = status?.conditions.find((each: Json) => each.type === "Complete")
      return condition?.status === "True" && condition.observedGeneration === metadata.generation
    },
    "6h",
  )

const dicom = (name: string, spec: Json = {}): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default", labels: name.startsWith("early") ? { "upgrade-tier": "early" } : {} },
  spec,
})

const serviceImage = ({ spec = {}, tiers = standardTiers }: Story): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage: v1,
    tiers,
    pace: { podsPerSecond: 0 },
    ...spec,
  },
})

const empty = await (async () => {
  const world = await scenario()
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  return world.cluster.store.dump()
})()

/** Plays a story to its end, and until nothing moves any more. Two tenants go early, three follow, one is left alone. */
export async function play(story: Story, seed: number, start: (world: World) => void): Promise<World> {
  const world = await scenario({ seed, saved: empty })
  for (const name of ["early-1", "early-2", "late-1", "late-2", "late-3"])
    await world.apply(dicom(name, story.tenants?.[name]))
  await world.apply(dicom("pinned", { image: image("own"), manuallySpecifiedImage: true }))
  world.run([quickOperator])
  start(world)
  await world.apply(serviceImage(story))
  await complete(world)
  await story.tell(world)
  await world.settle()
  return world
}

/** What remains of a run once the times are taken out: the images of all, and what is said of the rollout. */
export async function outcome(world: World): Promise<Json> {
  const images = (await world.list(Dicoms)).map(({ metadata, spec }) => [metadata.name, spec.image])
  const { status } = await world.get(serviceImages, "dicom")
  const words = (conditions: Json[]) => conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`)
  const { progress, currentPriority, observedGeneration, operation, inflight } = status
  return {
    images,
    conditions: words(status.conditions),
    tiers: status.tierStatus.map(({ conditions, step, analysis, ...tier }: Json) => ({
      ...tier,
      conditions: words(conditions),
      ...(step && { step: step.percent }),
      ...(analysis && { verdict: analysis.verdict, failedChecks: analysis.failedChecks }),
    })),
    progress,
    currentPriority,
    observedGeneration,
    operation: operation.id,
    phase: operation.phase,
    inflight,
  }
}
