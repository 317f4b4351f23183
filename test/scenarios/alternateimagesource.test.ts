import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { digestOf, everyPart, type Json, openRegistries, parseRegistries } from "#cluster-sim/index.ts"
import { createAlternateImageSourceController } from "#controllers/alternateimagesource/controller.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import { formatImageReference } from "#core/image-reference.ts"
import { core } from "#runtime/resource.ts"
import { scenario, type World } from "#test/support/scenario.ts"

// Stories of registries that fail, in virtual time, with pods that really try to pull.

const pods = core("pods", "Pod")
const [quay, hub] = ["quay.io/fairwinds/docker-demo", "docker.io/ehazlett/docker-demo"]

const source = (spec: Json = {}): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlternateImageSource",
  metadata: { name: "demo", namespace: "default" },
  spec: { imageSourceReplacements: [{ equivalentRepositories: [quay, hub] }], ...spec },
})

const deployment = (name: string, image: string, replicas = 3): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: "default" },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "basic-demo", image }] } },
  },
})

async function begin(registries: string): Promise<World> {
  const world: World = await scenario({
    seed: 7,
    parts: everyPart({ nodes: 3, registries: parseRegistries(registries) }),
  })
  const images = openRegistries(world.clock.now(), parseRegistries(registries))
  await world.apply(crdOf(AlternateImageSource) as Json)
  const registry = {
    async resolve(reference: Parameters<typeof formatImageReference>[0]) {
      const answer = digestOf(images, formatImageReference(reference), world.clock.now())
      if ("digest" in answer) return { ok: true, digest: answer.digest, mediaType: "" } as const
      const isAbsent = /not found|404/.test(answer.message)
      return { ok: false, class: isAbsent ? "NotFound" : "Unreachable", message: answer.message } as const
    },
  }
  world.run([createAlternateImageSourceController({ registry })])
  return world
}

const running = async (world: World) =>
  (await world.list(pods))
    .filter(({ status }) => status.phase === "Running")
    .map(({ spec }) => spec.containers[0].image)
    .sort()

test("a registry that is down is passed by, in place: the same pods, and the workload as it was", async () => {
  const world = await begin("registries: {quay.io: {fault: refused}}")
  await world.apply(source(), deployment("demo3-basic-demo", `${quay}:1`))
  await world.until("all three to run", async () => (await running(world)).length === 3, "10m")
  expect(await running(world)).toEqual(Array(3).fill(`${hub}:1`))
  const { status } = await world.get(alternateImageSources, "demo", "default")
  expect(status.targetsAvailable).toMatchObject([
    { name: "demo3-basic-demo", currentRepository: hub, switches: [{ pods: 3 }] },
  ])
})
