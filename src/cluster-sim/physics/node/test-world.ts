import { parseDuration } from "#lib/duration.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import { createCluster } from "../../cluster.ts"
import type { Json, Obj } from "../../object.ts"
import { scheduler } from "../scheduler/scheduler.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { type NodeSpec, nodeObject } from "./node-object.ts"
import { type Nodes, type NodesOptions, nodes } from "./nodes.ts"
import { createRegistries, type RegistryOptions } from "./registries.ts"

export type TestWorldOptions = NodesOptions & {
  seed?: number
  nodes?: string[]
  contents?: RegistryOptions[]
  more?: ((world: PhysicsWorld, machines: Nodes) => Part)[]
}

export const rootCertificate = { metadata: { name: "kube-root-ca.crt", namespace: "default" }, data: { "ca.crt": "" } }

/** A cluster with only a scheduler and kubelets, for the tests of this folder. */
export function testWorld(options: TestWorldOptions = {}) {
  const { seed = 1, nodes: names = ["node-0"], contents, more = [], ...rest } = options
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const registries = rest.registries ?? createRegistries(contents)
  let machines: Nodes | undefined
  const cluster = createCluster({
    clock,
    seed,
    parts: [
      world => {
        machines = nodes(world, { ...rest, registries })
        return machines
      },
      world => scheduler(world),
      ...more.map(part => (world: PhysicsWorld) => part(world, machines as Nodes)),
    ],
  })
  const { storage } = cluster
  const kind = (name: string) => storage.kind("v1", name) as ServedKind
  const at = (name: string) => ({ name, namespace: "default" })
  const world = {
    cluster,
    storage,
    clock,
    registries,
    machines: machines as unknown as Nodes,
    kind,
    advance: (duration: string) => clock.advance(parseDuration(duration) ?? 0),
    node: ({ unschedulable, ...spec }: NodeSpec & { unschedulable?: boolean }) => {
      const object = nodeObject(spec)
      return storage.create(kind("Node"), {
        ...object,
        spec: { ...object.spec, ...(unschedulable && { unschedulable }) },
      })
    },
    create: (name: string, spec: Json, metadata: Json = {}): Obj =>
      storage.create(kind("Pod"), { apiVersion: "v1", kind: "Pod", metadata: { ...at(name), ...metadata }, spec }),
    pod: (name: string) => storage.find(kind("Pod"), at(name)),
    patch: (name: string, body: Json) => storage.patch(kind("Pod"), at(name), { type: "strategic", body }),
    setImage: (name: string, image: string, container = "app") =>
      storage.patch(kind("Pod"), at(name), {
        type: "strategic",
        body: { spec: { containers: [{ name: container, image }] } },
      }),
    remove: (name: string, gracePeriodSeconds?: number) =>
      storage.delete(kind("Pod"), at(name), gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    /** About one pod, in the order they were written. */
    events: (about: string): string[] =>
      [...storage.list(kind("Event")).items]
        .filter(({ involvedObject }) => involvedObject.name === about)
        .sort((a, b) => (a.metadata.name.slice(-16) < b.metadata.name.slice(-16) ? -1 : 1))
        .map(({ type, reason, message, count }) => `${type} ${reason} ${message}${count > 1 ? ` x${count}` : ""}`),
  }
  storage.create(kind("ConfigMap"), rootCertificate) // pods mount it, and no controller publishes it here
  for (const name of names) world.node({ name })
  cluster.start()
  return world
}

export type TestWorld = ReturnType<typeof testWorld>
