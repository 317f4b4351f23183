import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import {
  digestOf,
  everyPart,
  type Json,
  openRegistries,
  type PartsOptions,
  parseRegistries,
} from "#cluster-sim/index.ts"
import { createAlternateImageSourceController } from "#controllers/alternateimagesource/controller.ts"
import { alternateImageSources, pods } from "#controllers/alternateimagesource/resources.ts"
import type { Surroundings } from "#controllers/surroundings.ts"
import { formatImageReference } from "#core/image/reference.ts"
import type { FailureClass, Resolution } from "#registry/index.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Controller } from "#runtime/controller.ts"
import type { Resource } from "#runtime/resource.ts"
import { scenario, type World } from "./scenario.ts"

// Registries that fail, in virtual time, with kubelets that really try to pull, described by the state of the world: which pod
// runs which image, and what the AlternateImageSource says.

export type Registries = ReturnType<typeof openRegistries>

/** Three places for the same images. */
export const [quay, hub, ghcr] = ["quay.io/fairwinds/docker-demo", "docker.io/ehazlett/docker-demo", "ghcr.io/demo/app"]
export const digest = (digit: string) => `sha256:${digit.repeat(64)}`

/** The same image under a tag in each of these repositories. */
export function pushEverywhere(
  registries: Registries,
  tag: string,
  repositories: readonly string[] = [quay, hub, ghcr],
) {
  for (const repository of repositories) registries.push(`${repository}:${tag}`, { digest: digest("1") })
}

export const source = (spec: Json = {}, metadata: Json = {}): Json => ({
  apiVersion: AlternateImageSource.apiVersion,
  kind: AlternateImageSource.kind,
  metadata: { name: "demo", namespace: "default", ...metadata },
  spec: { imageSourceReplacements: [{ equivalentRepositories: [quay, hub] }], ...spec },
})

export const containers = (image: string): Json => ({ containers: [{ name: "basic-demo", image }] })

/** A workload of any kind that has a template. */
export const workload = (kind: string, name: string, image: string, { spec, pod, metadata }: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name, namespace: "default", ...metadata },
  spec: {
    ...(kind !== "DaemonSet" && { replicas: 3 }),
    ...(kind === "StatefulSet" && { serviceName: name }),
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { ...containers(image), ...pod } },
    ...spec,
  },
})

export const deployment = (name: string, image: string, more: Json = {}): Json =>
  workload("Deployment", name, image, more)

const apps = (plural: string, kind: string): Resource => ({
  group: "apps",
  version: "v1",
  plural,
  kind,
  namespaced: true,
})
export const Deployments = apps("deployments", "Deployment")

export type FailoverStory = {
  world: World
  registries: Registries
  controller(): Controller
  /** Images that registries were asked about, in order. */
  asked: string[]
  /** Images of running pods, in order. */
  running(): Promise<string[]>
  /** Waits until so many pods run, and these are all there are. */
  untilRunning(count: number, within?: string): Promise<string[]>
  pods(): Promise<Json[]>
  status(name?: string): Promise<Json>
  target(name: string, container?: string): Promise<Json | undefined>
  condition(type: string, name?: string): Promise<Json | undefined>
  /** Waits until a condition gives this reason. */
  untilReason(reason: string, type?: string): Promise<void>
}

export type FailoverOptions = PartsOptions & {
  seed?: number
  /** Registries that require credentials, as `user:password`. */
  accounts?: Readonly<Record<string, string>>
  /** Registries that answer nodes only. */
  isBlind?: boolean
  /** Registries that answer the controller differently than nodes. */
  says?: (image: string, clock: Clock) => Resolution | undefined | Promise<Resolution | undefined>
  /** Run nothing yet. */
  isIdle?: boolean
  description?: string
}

/** A cluster with nodes that pull from registries which can be made to fail, and our controller. */
export async function failover({
  seed = 7,
  accounts = {},
  isBlind,
  says,
  isIdle,
  description,
  ...parts
}: FailoverOptions = {}) {
  const begin = Date.parse("2026-01-01T00:00:00Z")
  const registries = openRegistries(begin, description === undefined ? undefined : parseRegistries(description))
  const world = await scenario({ seed, parts: everyPart({ nodes: 3, ...parts, registries }) })
  await world.apply(crdOf(AlternateImageSource) as Json)
  const asked: string[] = []
  const registry: NonNullable<Surroundings["registry"]> = {
    async resolve(reference, { credentials } = {}) {
      const image = formatImageReference(reference)
      asked.push(image)
      const { host = "docker.io" } = reference
      const shown = credentials?.get(host)
      if (host in accounts && `${shown?.username}:${shown?.password}` !== accounts[host])
        return { ok: false, class: "Denied", message: `${host} refuses` }
      return (await says?.(image, world.clock)) ?? answerOf(registries, image, world.clock.now())
    },
  }
  const controller = () => createAlternateImageSourceController(isBlind ? {} : { registry })
  if (!isIdle) world.run([controller()])
  return about(world, registries, controller, asked)
}

/** As a registry answers the controller. */
export function answerOf(registries: Registries, image: string, now: number): Resolution {
  const answer = digestOf(registries, image, now)
  if ("digest" in answer) return { ok: true, digest: answer.digest, mediaType: "" }
  const { message } = answer
  return { ok: false, class: classes.find(([words]) => words.test(message))?.[1] ?? "Unreachable", message }
}

const classes: [RegExp, FailureClass][] = [
  [/not found/, "NotFound"],
  [/401|403|denied/, "Denied"],
  [/429/, "RateLimited"],
  [/x509/, "TLS"],
  [/timeout/, "Timeout"],
]

function about(world: World, registries: Registries, controller: () => Controller, asked: string[]): FailoverStory {
  const all = async () => (await world.list(pods)).filter(({ metadata }) => !metadata.deletionTimestamp)
  const running = async () =>
    (await all())
      .filter(({ status }) => status.phase === "Running")
      .map(({ spec }) => spec.containers.map(({ image }: Json) => image).join(" "))
      .sort()
  const status = async (name = "demo") => (await world.get(alternateImageSources, name, "default")).status ?? {}
  const condition = async (type: string, name?: string) =>
    (await status(name)).conditions?.find((each: Json) => each.type === type)
  return {
    world,
    registries,
    controller,
    asked,
    running,
    async untilRunning(count, within = "20m") {
      const isSo = async () => (await running()).length === count && (await all()).length === count
      await world.until(`${count} pods to run`, isSo, within)
      return running()
    },
    pods: all,
    status,
    target: async (name, container = "basic-demo") =>
      (await status()).targetsAvailable?.find((each: Json) => each.name === name && each.container === container),
    condition,
    untilReason: (reason, type = "Ready") =>
      world.until(`${type} for ${reason}`, async () => (await condition(type))?.reason === reason, "2h"),
  }
}
