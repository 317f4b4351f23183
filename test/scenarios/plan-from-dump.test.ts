import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import type { ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { run as dump } from "#cli/commands/dump.ts"
import { run as plan } from "#cli/commands/plan.ts"
import { testWorld } from "#cli/test-world.ts"
import type { Fault } from "#cluster-sim/faults/faults.ts"
import { createCluster, everyPart, type Json, parseRegistries } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { Instant } from "#lib/instant.ts"
import { createClient } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { Controller } from "#runtime/controller.ts"
import { seededRandom } from "#runtime/random.ts"
import { quickOperator } from "#test/support/quick-operator.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"
import { dicomController } from "../../examples/dicom/controller.ts"

// Whatever the controller decided in a rollout, `aim plan` decides the same from a dump of that very moment.

/** What the controller decided, and the world it decided from. */
type Moment = {
  at: Instant
  revision: number
  status: ServiceImageStatus
  /** The stamps that followed at once. */
  stamps: { object: string; to: string }[]
}

const image = (tag: string) => `registry.example.com/dicom:${tag}`

const dicom = (name: string, tier: string, spec: Json = {}): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default", labels: tier ? { "upgrade-tier": tier } : {} },
  spec,
})

const serviceImage = (tag: string, spec: Json): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage: image(tag),
    // Which pods were disturbed a moment ago, only the controller knows.
    pace: { podsPerSecond: 0 },
    ...spec,
  },
})

/** Notes each status before it is written, and what is stamped after it. */
function noting(world: World, moments: Moment[]): Fault {
  return next => ({
    ...next,
    send(request) {
      const { method, path, body = "" } = request
      if (method === "PUT" && path.includes("/serviceimages/dicom/status")) {
        const { status } = JSON.parse(body)
        moments.push({ at: world.clock.now(), revision: world.cluster.store.revision, status, stamps: [] })
      } else if (method === "PATCH" && path.includes("/dicoms/")) {
        const [, namespace, name] = /namespaces\/([^/]+)\/dicoms\/([^/?]+)/.exec(path)!
        const to = JSON.parse(body).spec?.image
        const last = moments.at(-1)!
        // What is stamped later was decided later: intents are declared many at once and used up as there is room.
        if (to && last.at === world.clock.now()) last.stamps.push({ object: `${namespace}/${name}`, to })
      }
      return next.send(request)
    },
  })
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "aim-plan-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** `aim dump` of the world as it was at a revision, and `aim plan --from` that. */
async function planFrom(
  { cluster: { store } }: World,
  { at, revision }: Pick<Moment, "at" | "revision">,
  file: string,
) {
  const places = [...new Set(store.dump().objects.map(({ place }) => place))]
  const objects = places.flatMap(place => store.listAt(place, revision)!.map(object => ({ place, object })))
  const cluster = createCluster({ clock: virtualClock(at), saved: { revision, objects } })
  const client = createClient({ transport: cluster.transport, clock: virtualClock(at), random: seededRandom(1) })
  const { world } = testWorld({ client }, { clock: virtualClock(at) })
  await dump({ arguments: [], options: { output: file } }, world)
  const { text } = await plan({ arguments: [], options: { from: file, output: "json" } }, world)
  const [{ status, next }] = JSON.parse(text)
  const stamps = (next as Moment["stamps"]).map(({ object, to }) => ({ object, to }))
  return { status: told(status), stamps }
}

/** All but its writer and the writes under way: a dump does not hold these. */
const told = ({ electionID: _, inflight: __, ...status }: ServiceImageStatus) => JSON.parse(JSON.stringify(status))

/**
 * What is committed in the same instant reaches the controller one after the other, so it may have decided before it
 * saw the last of it.
 */
const revisionsOf = ({ history }: World, { at, revision }: Moment) => [
  revision,
  ...history.filter(commit => commit.at === at && commit.revision <= revision).map(commit => commit.revision - 1),
]

async function agree(world: World, moments: readonly Moment[]): Promise<void> {
  const folder = await temporaryFolder()
  for (const [index, moment] of moments.entries()) {
    const decided = { status: told(moment.status), stamps: moment.stamps }
    let planned: Awaited<ReturnType<typeof planFrom>> | undefined
    for (const revision of revisionsOf(world, moment).sort((a, b) => b - a)) {
      planned = await planFrom(world, { at: moment.at, revision }, join(folder, "dump"))
      if (isDeepStrictEqual(planned.status, decided.status)) break
    }
    expect({ index, status: planned!.status }).toEqual({ index, status: decided.status })
    // Where there is room again at once, another decision follows in the same instant.
    if (decided.stamps.length > 0)
      expect({ index, stamps: planned!.stamps }).toEqual({
        index,
        stamps: decided.stamps.slice(0, Math.max(1, planned!.stamps.length)),
      })
  }
}

type Story = {
  operator: Controller
  registries?: string
  tiers: Json[]
  dicoms: readonly Json[]
  /** What is done once all objects run v1. */
  rolls(world: World): Promise<void>
  until(status: ServiceImageStatus): boolean
  reasons: readonly string[]
}

const steps = [
  { upgradeTier: "early", priority: 1, steps: [{ percent: 40, soakSeconds: 60 }, { percent: 100 }] },
  { upgradeTier: "", priority: 0, maxConcurrent: 2 },
]
const fleet = [
  ...["e1", "e2", "e3", "e4", "e5"].map(name => dicom(name, "early")),
  ...["d1", "d2", "d3", "d4"].map(name => dicom(name, "")),
  dicom("own", "", { manuallySpecifiedImage: true, image: image("v0") }),
]
const setImage = (tag: string) => (world: World) =>
  world.patch(serviceImages, "dicom", { spec: { defaultImage: image(tag) } })
const isComplete = ({ operation }: ServiceImageStatus) => operation?.phase === "Complete"

const stories: Record<string, Story> = {
  "steps, soaks and concurrency, to the end": {
    operator: quickOperator,
    tiers: steps,
    dicoms: fleet,
    rolls: setImage("v2"),
    until: isComplete,
    reasons: ["Soaking", "WaitingForHealth", "AllUpToDate"],
  },
  "a rollback": {
    operator: quickOperator,
    tiers: steps,
    dicoms: fleet,
    async rolls(world) {
      await setImage("v2")(world)
      await world.until("the first step", async () => {
        const { status } = await world.get(serviceImages, "dicom")
        return status.tierStatus[0].step?.percent === 100
      })
      const id = (await world.get(serviceImages, "dicom")).status.operation.id
      await world.patch(serviceImages, "dicom", { metadata: { annotations: { "autoimagemanager.io/rollback": id } } })
    },
    until: ({ operation }) => operation?.phase === "RolledBack",
    reasons: ["RollingBack", "RolledBack"],
  },
  "pods that cannot pull, found through their owners": {
    operator: dicomController(),
    registries: "registries: {registry.example.com: {images: {dicom: {v0: {}, v1: {}}}}}",
    tiers: [{ upgradeTier: "early", priority: 1 }],
    dicoms: fleet.slice(0, 6),
    rolls: setImage("v2"),
    until: ({ operation }) => operation?.phase === "Halted",
    reasons: ["AllFailed"],
  },
}

for (const [name, story] of Object.entries(stories))
  test(name, async () => {
    const { operator, registries, tiers, dicoms, rolls, until, reasons } = story
    const parts = everyPart({ nodes: 2, registries: registries ? parseRegistries(registries) : undefined })
    const world = await scenario({ seed: 5, ...(registries && { parts }) })
    const moments: Moment[] = []
    await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
    world.run([operator])
    world.run([createServiceImageController()], { faults: [noting(world, moments)] })
    await world.apply(...dicoms, serviceImage("v1", { tiers }))
    const isSo = async (so: (status: ServiceImageStatus) => boolean) => {
      const { metadata, status } = await world.get(serviceImages, "dicom")
      return status?.observedGeneration === metadata.generation && so(status)
    }
    await world.until("v1 everywhere", () => isSo(isComplete), "2h")
    const before = moments.length
    await rolls(world)
    await world.until("the end of the story", () => isSo(until), "2h")

    expect(moments.length - before).toBeGreaterThan(2)
    expect(moments.filter(({ stamps }) => stamps.length > 0).length).toBeGreaterThan(1)
    const seen = moments.map(({ status }) => status.conditions.find(({ type }) => type === "Complete")!.reason)
    expect(seen).toEqual(expect.arrayContaining([...reasons]))
    await agree(world, moments)
  })
