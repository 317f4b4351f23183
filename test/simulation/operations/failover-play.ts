import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { alternateImageSources, pods } from "#controllers/alternateimagesource/resources.ts"
import { type Chance, chanceOf } from "#runtime/test-chance.ts"
import {
  Deployments,
  deployment,
  type FailoverStory,
  failover,
  ghcr,
  hub,
  quay,
  source,
} from "#test/support/failover-story.ts"
import type { Process, World } from "#test/support/scenario.ts"
import { requestInTime } from "./in-time.ts"

/** What users and registries did in one run, and the world it left. */
export type Played = {
  world: World
  told: string[]
  /** The revision at which nothing moved any more, and which images could be pulled then; then all registries served. */
  restedAt: number
  servedAtRest: ReadonlySet<string>
}

/** One image in three places, and another one that no AlternateImageSource knows. */
const repositories = [quay, hub, ghcr]
const strange = "registry.example.com/other"
const tags = ["1", "2"]
const hosts = ["quay.io", "docker.io", "ghcr.io"]
const faults = [
  { kind: "refused" },
  { kind: "status", status: 500 },
  { kind: "status", status: 429 },
  { kind: "timeout" },
  { kind: "tls" },
] as const

/** Plays the operations of one seed: registries that fail and recover, users who change, scale and delete workloads. */
export async function play(seed: number): Promise<Played> {
  const chance = chanceOf(seed)
  const run = new Run(chance, await failover({ seed, nodes: 1, isIdle: true }))
  await run.begin()
  for (let left = 3 + chance.below(7); left > 0; left--) {
    await run.operate()
    await run.pass()
  }
  await run.rest()
  const { world, told, served } = run
  const [restedAt, servedAtRest] = [world.cluster.store.revision, new Set(served)]
  await run.mend()
  await run.rest()
  return { world, told, restedAt, servedAtRest }
}

class Run {
  readonly world: World
  readonly told: string[] = []
  /** Images that can be pulled now. */
  served = new Set<string>()
  readonly #chance: Chance
  readonly #story: FailoverStory
  readonly #down = new Set<string>()
  readonly #missing = new Set<string>()
  #process: Process | undefined

  constructor(chance: Chance, story: FailoverStory) {
    this.#chance = chance
    this.#story = story
    this.world = story.world
  }

  async begin(): Promise<void> {
    for (const tag of tags)
      for (const repository of [...repositories, strange])
        this.#story.registries.push(`${repository}:${tag}`, { digest: `sha256:${tag.repeat(64)}` })
    this.#count()
    this.#start()
    await this.#createSource()
    for (let left = 1 + this.#chance.below(2); left > 0; left--) await this.#createWorkload()
    if (this.#chance.often(0.6)) await this.world.advance("30s")
  }

  async operate(): Promise<void> {
    const before = this.told.length
    await this.#chance.pick(this.#operations)()
    if (this.told.length === before) await this.#fail()
  }

  async pass(): Promise<void> {
    await this.world.clock.advance(this.#chance.pick([0, 100, 1500, 8000, 25_000, 70_000, 400_000]))
  }

  /** Until nothing moves any more: where all sources are down they are asked again every quarter of an hour at last. */
  async rest(): Promise<void> {
    await this.world.advance("25m")
  }

  async mend(): Promise<void> {
    for (const host of hosts) this.#story.registries.setFault(host, undefined)
    for (const image of this.#missing)
      this.#story.registries.push(image, { digest: `sha256:${image.at(-1)!.repeat(64)}` })
    this.#down.clear()
    this.#missing.clear()
    this.#count()
    this.#tell("all registries serve everything")
  }

  readonly #operations: (() => Promise<void>)[] = [
    () => this.#fail(),
    () => this.#fail(),
    () => this.#fail(),
    () => this.#recover(),
    () => this.#recover(),
    () => this.#loseTag(),
    () => this.#setImage(),
    () => this.#setImage(),
    () => this.#scale(),
    () => this.#scale(),
    () => this.#deletePod(),
    () => this.#deletePod(),
    () => this.#createWorkload(),
    () => this.#deleteWorkload(),
    () => this.#deleteSource(),
    () => this.#createSource(),
    () => this.#kill(),
  ]

  async #fail(): Promise<void> {
    const host = this.#chance.pick(hosts)
    const fault = this.#chance.pick(faults)
    this.#story.registries.setFault(host, fault)
    this.#down.add(host)
    this.#count()
    this.#tell(`${host} fails: ${JSON.stringify(fault)}`)
  }

  async #recover(): Promise<void> {
    const host = this.#chance.pick(hosts)
    if (!this.#down.delete(host)) return
    this.#story.registries.setFault(host, undefined)
    this.#count()
    this.#tell(`${host} serves again`)
  }

  async #loseTag(): Promise<void> {
    const image = `${this.#chance.pick(repositories)}:${this.#chance.pick(tags)}`
    this.#story.registries.remove(image)
    this.#missing.add(image)
    this.#count()
    this.#tell(`${image} is removed`)
  }

  async #setImage(): Promise<void> {
    const workload = await this.#pickWorkload()
    if (!workload) return
    const places = [...repositories, strange]
    const image = `${this.#chance.pick(places)}:${this.#chance.pick(tags)}`
    await this.#patch(workload, { template: { spec: { containers: [{ name: "basic-demo", image }] } } })
  }

  async #scale(): Promise<void> {
    const workload = await this.#pickWorkload()
    if (workload) await this.#patch(workload, { replicas: this.#chance.below(4) })
  }

  async #deletePod(): Promise<void> {
    const all = await this.world.list(pods)
    if (all.length === 0) return
    const { name, namespace } = this.#chance.pick(all).metadata
    await requestInTime(this.world, this.world.client.delete(pods, { name, namespace }))
    this.#tell(`delete pod ${name}`)
  }

  async #createWorkload(): Promise<void> {
    const name = this.#chance.pick(["d1", "d2", "d3"])
    if ((await this.world.list(Deployments)).some(({ metadata }) => metadata.name === name)) return
    const image = `${this.#chance.pick([...repositories, strange])}:${this.#chance.pick(tags)}`
    const replicas = 1 + this.#chance.below(3)
    const container = { name: "basic-demo", image, ...(this.#chance.often(0.4) && { imagePullPolicy: "Always" }) }
    await this.world.apply(deployment(name, image, { spec: { replicas }, pod: { containers: [container] } }))
    this.#tell(`create ${name} with ${replicas} of ${image}`)
  }

  async #deleteWorkload(): Promise<void> {
    const workload = await this.#pickWorkload()
    if (!workload) return
    const { name, namespace } = workload.metadata
    await requestInTime(this.world, this.world.client.delete(Deployments, { name, namespace }))
    this.#tell(`delete ${name}`)
  }

  async #deleteSource(): Promise<void> {
    const [found] = await this.world.list(alternateImageSources)
    if (!found || this.#chance.often(0.5)) return
    const { name, namespace } = found.metadata
    await requestInTime(this.world, this.world.client.delete(alternateImageSources, { name, namespace }))
    this.#tell(`delete ais ${name}`)
  }

  async #createSource(): Promise<void> {
    const { length } = await this.world.list(alternateImageSources)
    if (length > 0) return
    const { pick, often } = this.#chance
    const policy = {
      confirmSeconds: pick([0, 5, 20]),
      cooldownSeconds: pick([10, 60]),
      requireSameDigest: pick(["IfKnown", "Never"]),
      ...(often(0.25) && { apply: "Template" }),
    }
    const equivalentRepositories = often(0.7) ? repositories : [hub, quay]
    await this.world.apply(source({ imageSourceReplacements: [{ equivalentRepositories }], policy }))
    this.#tell(`create ais demo ${JSON.stringify({ equivalentRepositories, policy })}`)
  }

  async #kill(): Promise<void> {
    this.#process?.die()
    this.#tell("kill the controller")
  }

  #start(): void {
    const { world } = this
    const { often, pick, below } = this.#chance
    const strikes = nth(isDecision, 1 + below(8))
    const fate = often(0.25) ? { [pick(["before", "after"])]: strikes } : {}
    const downMs = pick([0, 2000, 30_000])
    const onDeath = () => void world.clock.after(downMs, () => this.#start())
    this.#process = world.run([this.#story.controller()], { dies: { ...fate, onDeath } })
  }

  #count(): void {
    const all = repositories.flatMap((repository, index) =>
      this.#down.has(hosts[index]!) ? [] : tags.map(tag => `${repository}:${tag}`),
    )
    this.served = new Set(all.filter(image => !this.#missing.has(image)))
  }

  async #pickWorkload(): Promise<Json | undefined> {
    const all = await this.world.list(Deployments)
    return all.length > 0 ? this.#chance.pick(all) : undefined
  }

  async #patch({ metadata: { name, namespace } }: Json, spec: Json): Promise<void> {
    // Strategic, as kubectl has it: a merge would lose the other fields of the container.
    const body = { spec }
    const { client } = this.world
    await requestInTime(
      this.world,
      client.patch(Deployments, { name, namespace }, { type: "strategic", body }, { fieldManager: "test" }),
    )
    this.#tell(`${name}: ${JSON.stringify(spec)}`)
  }

  #tell(what: string): void {
    this.told.push(`${new Date(this.world.clock.now()).toISOString().slice(11, 23)} ${what}`)
  }
}
