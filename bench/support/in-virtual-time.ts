import { isWatch } from "#cluster-sim/faults/faults.ts"
import { controllers } from "#controllers/all.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { Transport } from "#runtime/client/transport.ts"
import { quickOperator } from "#test/support/quick-operator.ts"
import { manifest, type ScenarioOptions, scenario, type World } from "#test/support/scenario.ts"
import type { Json } from "#tools/kube/api.ts"
import type { Figure } from "./figures.ts"
import type { Progress } from "./progress.ts"
import { imageOf, name, tenant } from "./tenants.ts"

const objects = 20

/** Whether a finished rollout leaves anything in memory. */
export async function heapOverRollouts(collect: () => void, progress: Progress): Promise<Figure> {
  const [early, late] = [20, 200]
  const world = await convergedFleet({ keptChanges: 100 }) // what the cluster keeps is not what we measure
  world.run([quickOperator])
  world.run(controllers)
  progress.begin(`${late} rollouts in virtual time`, late)
  let heapEarly = 0
  for (let turn = 1; turn <= late; turn++) {
    await world.patch(serviceImages, name, { spec: { defaultImage: imageOf(`v${turn}`) } })
    await world.until(`rollout ${turn}`, () => isComplete(world))
    progress.at(turn)
    if (turn === early) heapEarly = heapUsed(world, collect)
  }
  const heapLate = heapUsed(world, collect)
  progress.end()
  return {
    name: "heap, 200th ÷ 20th rollout",
    measured: heapLate / heapEarly,
    most: 1.05,
    note: `${(heapLate / 2 ** 20).toFixed(1)} MiB, the cluster in it`,
  }
}

/** Whether a converged fleet is left alone, whatever happens to the connections. */
export async function quiescence(progress: Progress): Promise<Figure> {
  const [resyncs, reconnects] = [100, 10]
  const world = await convergedFleet()
  const watches = cuttableWatches()
  world.run([quickOperator])
  world.run(controllers, { leaderElect: true, faults: [watches.fault] })
  await world.until("the first rollout", () => isComplete(world))
  await world.settle()
  const lookedAt = world.history.length
  const before = watches.openings("/dicoms")

  progress.begin(`${resyncs} resyncs in virtual time`, resyncs)
  for (let done = 0; done < resyncs; done = watches.openings("/dicoms") - before) {
    await world.advance("10m")
    progress.at(done)
  }
  progress.begin(`${reconnects} reconnects`, reconnects)
  for (let turn = 0; turn < reconnects; turn++) {
    watches.cut({ forgetful: turn % 2 === 1 })
    await world.advance("2m")
  }
  const opened = watches.openings("/dicoms") - before
  if (opened < resyncs + reconnects) throw new Error(`only ${opened} watches were opened`)
  progress.end()
  const writes = world.history.slice(lookedAt).filter(({ place }) => !place.includes("leases"))
  return {
    name: "writes of a converged fleet",
    measured: writes.length,
    most: 0,
    note: `${opened} watches opened again, every second cut with a list`,
  }
}

async function convergedFleet(options: ScenarioOptions = {}): Promise<World> {
  const world = await scenario({ seed: 1, ...options })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  for (let index = 0; index < objects; index++) {
    const { metadata, ...object } = tenant(index)
    await world.apply({ ...object, metadata: { ...metadata, namespace: "default" } })
  }
  await world.apply({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: { name },
    spec: {
      target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
      defaultImage: imageOf("v0"),
      tiers: [{ upgradeTier: "", settleSeconds: 0 }],
      pace: { podsPerSecond: 0 },
    },
  })
  return world
}

async function isComplete(world: World): Promise<boolean> {
  const { metadata, status } = await world.get(serviceImages, name)
  const complete = status?.conditions?.find((each: Json) => each.type === "Complete")
  return complete?.status === "True" && complete.observedGeneration === metadata.generation
}

/** Without the records for tests, and without events, which a real server drops after an hour. */
function heapUsed(world: World, collect: () => void): number {
  ;(world.history as unknown[]).length = 0
  const { storage } = world.cluster
  storage.deleteCollection(storage.kind("v1", "Event")!, {})
  collect()
  return process.memoryUsage().heapUsed
}

/** Watches that can be broken, all at once; a forgetful server then no longer knows where they were. */
function cuttableWatches() {
  const opened: string[] = []
  let cutting = new AbortController()
  let gone = new Set<string>()
  const fault = (next: Transport): Transport => ({
    ...next,
    async send(request) {
      if (!isWatch(request)) return next.send(request)
      const [path = ""] = request.path.split("?")
      opened.push(path)
      if (gone.delete(path)) {
        const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Expired", code: 410 }
        return { status: 410, headers: {}, body: once(Buffer.from(JSON.stringify(status))) }
      }
      const signal = AbortSignal.any([request.signal, cutting.signal])
      return next.send({ ...request, signal })
    },
  })
  return {
    fault,
    openings: (part: string) => opened.filter(path => path.includes(part)).length,
    cut({ forgetful }: { forgetful: boolean }) {
      if (forgetful) gone = new Set(opened)
      const before = cutting
      cutting = new AbortController()
      before.abort(new Error("the connection broke"))
    },
  }
}

async function* once(chunk: Uint8Array): AsyncGenerator<Uint8Array> {
  yield chunk
}
