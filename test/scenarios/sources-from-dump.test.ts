import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { run as dump } from "#cli/commands/dump.ts"
import { run as plan } from "#cli/commands/plan.ts"
import { run as why } from "#cli/commands/why.ts"
import { testWorld } from "#cli/test-world.ts"
import type { Fault } from "#cluster-sim/faults/faults.ts"
import { createCluster, type Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import { createClient } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { Deployments, deployment, failover, quay, source, workload } from "#test/support/failover-story.ts"
import { manifest, type World } from "#test/support/scenario.ts"

// What `aim why pod`, `aim why ais` and `aim plan ais` say from a dump equals what they say from the cluster at that
// moment; and where the repository is known, the plan names the very images that the controller writes.

/** A pod before the controller writes its image. */
type Moment = { at: Instant; revision: number; pod: string; to: string }

/** Notes each image that is written to a pod, and the world it was decided from. */
function noting(world: World, moments: Moment[]): Fault {
  return next => ({
    ...next,
    send(request) {
      const [, pod] = /\/pods\/([^/?]+)/.exec(request.path) ?? []
      const to = request.method === "PATCH" && JSON.parse(request.body ?? "{}").spec?.containers?.[0]?.image
      if (pod && to) moments.push({ at: world.clock.now(), revision: world.cluster.store.revision, pod, to })
      return next.send(request)
    },
  })
}

/** The command line on a copy of the world as it was at a revision. */
async function commandLine({ cluster: { store } }: World, at: Instant, revision: number) {
  const places = [...new Set(store.dump().objects.map(({ place }) => place))]
  const objects = places.flatMap(place => store.listAt(place, revision)!.map(object => ({ place, object })))
  const { transport } = createCluster({ clock: virtualClock(at), saved: { revision, objects } })
  const shared = { send: transport.send, close: () => {} }
  const connect = () => createClient({ transport: shared, clock: virtualClock(at), random: seededRandom(1) })
  const { world } = testWorld({ client: connect() }, { clock: virtualClock(at), connect: async () => connect() })
  const folder = await mkdtemp(join(tmpdir(), "aim-sources-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, "dump")
  await dump({ arguments: [], options: { output: file } }, world)
  return async (run: typeof why, reference: string) => {
    const asked = (options: Json) => run({ arguments: [reference], options: { output: "json", ...options } }, world)
    const live = (await asked({ namespace: "default" })).text
    expect((await asked({ from: file })).text, reference).toBe(live)
    return JSON.parse(live)
  }
}

function podsAt({ cluster: { store } }: World, revision: number): string[] {
  const { place } = store.dump().objects.find(({ object }) => object.kind === "Pod")!
  return store.listAt(place, revision)!.map(({ metadata }) => metadata.name)
}

const serviceImage: Json = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "web" },
  spec: {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "basic-demo" } },
    defaultImage: `${quay}:1`,
  },
}

type Story = {
  policy: Json
  workloads: Json[]
  /** What is done once every pod runs. */
  afterwards(world: World): Promise<void>
  running: [number, number]
  /** How many pods are sent where the others went. */
  follow: number
  reasons: string[]
}

const scale = (name: string, replicas: number) => (world: World) =>
  world.patch(Deployments, name, { spec: { replicas } }, "default")

const stories: Record<string, Story> = {
  "pods are repaired, and those that come later follow": {
    policy: {},
    workloads: [deployment("web", `${quay}:1`), workload("StatefulSet", "db", `${quay}:1`, { spec: { replicas: 1 } })],
    afterwards: scale("web", 5),
    running: [4, 6],
    follow: 2,
    reasons: ["Confirming", "Switched", "Repairing"],
  },
  "the workload itself is changed": {
    policy: { apply: "Template" },
    workloads: [deployment("web", `${quay}:1`)],
    afterwards: scale("web", 4),
    running: [3, 4],
    follow: 0,
    reasons: ["Confirming", "Switched"],
  },
}

for (const [name, { policy, workloads, afterwards, running, follow, reasons }] of Object.entries(stories))
  test(name, async () => {
    const { world, controller, untilRunning } = await failover({
      isIdle: true,
      description: "registries: {quay.io: {fault: refused}}",
    })
    const moments: Moment[] = []
    world.run([controller()], { faults: [noting(world, moments)] })
    // Of a kind that a ServiceImage stamps too, a dump holds what both controllers read.
    await world.apply(manifest("charts/aim/crds/serviceimages.yaml"))
    await world.apply(serviceImage, source({ policy }), ...workloads)
    await untilRunning(running[0])
    await world.settle()
    const known = world.clock.now()
    await afterwards(world)
    await untilRunning(running[1])

    const seen = new Set<string>()
    const commits = world.history.filter(({ object }) => ["Pod", "AlternateImageSource"].includes(object.kind))
    const sample = commits.filter((_, index) => index % Math.ceil(commits.length / 25) === 0)
    const noted = moments.map(({ at, revision }) => ({ at, revision }))
    for (const { at, revision } of [...sample, ...noted]) {
      const ask = await commandLine(world, at, revision)
      seen.add((await ask(why, "ais/demo")).reason)
      seen.add((await ask(plan, "ais/demo"))[0].reason)
      for (const name of podsAt(world, revision)) seen.add((await ask(why, `pod/${name}`)).reason)
    }
    expect([...seen]).toEqual(expect.arrayContaining(reasons))

    const later = moments.filter(moment => moment.at > known)
    expect(later).toHaveLength(follow)
    for (const { at, revision, to } of later) {
      const ask = await commandLine(world, at, revision)
      const [{ next }] = await ask(plan, "ais/demo")
      expect(next).toContainEqual(expect.objectContaining({ workload: "deployment/web", container: "basic-demo", to }))
    }
  })
