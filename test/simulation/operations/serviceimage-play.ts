import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Resource } from "#runtime/resource.ts"
import { type Chance, chanceOf } from "#runtime/test-chance.ts"
import { manifest, type Process, scenario, type World } from "#test/support/scenario.ts"
import { Dicoms } from "../../../examples/dicom/dicom.ts"
import { requestInTime } from "./in-time.ts"
import { operatorOf } from "./operator.ts"

/** What users did in one run, and the world it left. */
export type Played = {
  world: World
  /** Each operation in words, with its time. */
  told: string[]
  /** When no controller ran. */
  outages: { from: number; to: number }[]
  /** The revision at which nothing moved any more after the last operation of chance; then everything was mended. */
  restedAt: number
}

const Deployments: Resource = {
  group: "apps",
  version: "v1",
  plural: "deployments",
  kind: "Deployment",
  namespaced: true,
}

const empty = await (async () => {
  const world = await scenario()
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  return world.cluster.store.dump()
})()

const annotationOf = (name: string) => `autoimagemanager.io/${name}`
const tierNames = ["early", "mid", ""]
const names = ["s1", "s2"]

/** The same image is written in two ways: what is equal after normalising must not be stamped again. */
const spellings = ["app", "docker.io/library/app"]

/** Plays the operations of one seed: some users, two ServiceImages, up to ten objects, a controller that is killed. */
export async function play(seed: number): Promise<Played> {
  const run = new Run(seed, await scenario({ seed, saved: empty }))
  await run.begin()
  for (let left = 6 + run.chance.below(11); left > 0; left--) {
    await run.operate()
    await run.pass()
  }
  await run.rest()
  const restedAt = run.world.cluster.store.revision
  await run.mend()
  await run.world.advance("12m")
  return { world: run.world, told: run.told, outages: run.outages, restedAt }
}

class Run {
  readonly world: World
  readonly chance: Chance
  readonly told: string[] = []
  readonly outages: Played["outages"] = []
  readonly #resource: Resource
  #process: Process | undefined
  #created = 0

  constructor(seed: number, world: World) {
    this.world = world
    this.chance = chanceOf(seed)
    this.#resource = this.chance.often(0.4) ? Deployments : Dicoms
  }

  async begin(): Promise<void> {
    const { world, chance } = this
    world.run([operatorOf(this.#resource)])
    for (let left = 4 + chance.below(3); left > 0; left--) await this.#createObject()
    await world.advance("10s")
    this.#start()
    await this.#createServiceImage("s1")
    if (chance.often(0.7)) await world.advance("60s")
  }

  /** One thing that a user, or misfortune, does. */
  async operate(): Promise<void> {
    const before = this.told.length
    await this.chance.pick(this.#operations)()
    // What cannot be done now is nothing to wait for.
    if (this.told.length === before) await this.#setImages()
  }

  async pass(): Promise<void> {
    const ms = this.chance.pick([0, 1, 300, 1000, 2500, 4000, 9000, 25_000, 70_000, 200_000])
    await this.world.clock.advance(ms)
  }

  /** Until nothing moves any more: every deadline and every back-off of the runs is over by then. */
  async rest(): Promise<void> {
    await this.world.advance("12m")
    await this.world.settle("11m")
  }

  /** Takes away whatever holds a rollout: it must then come to its end. */
  async mend(): Promise<void> {
    for (const object of await this.world.list(this.#resource))
      if (object.metadata.labels?.sick) await this.#patchObject(object, { metadata: { labels: { sick: null } } })
    for (const { metadata, spec } of await this.#serviceImages()) {
      const tiers = spec.tiers.map((tier: Json) => ({ ...tier, image: "", requireApproval: false }))
      const images = { defaultImage: this.#image(["v8", "v9"]), tiers, paused: false }
      await this.world.patch(serviceImages, metadata.name, { spec: images })
    }
    this.#tell("mend everything")
  }

  readonly #operations: (() => Promise<void>)[] = [
    () => this.#setImages(),
    () => this.#setImages(),
    () => this.#setImages(),
    () => this.#editTiers(),
    () => this.#editTiers(),
    () => this.#editRest(),
    () => this.#pauseOrResume(),
    () => this.#pauseOrResume(),
    () => this.#approve(),
    () => this.#approve(),
    () => this.#approve(),
    () => this.#takeBack(),
    () => this.#retry(),
    () => this.#deleteServiceImage(),
    () => this.#createServiceImage(this.chance.pick(names)),
    () => this.#createServiceImage(this.chance.pick(names)),
    () => this.#moveTier(),
    () => this.#moveTier(),
    () => this.#scale(),
    () => this.#scale(),
    () => this.#setImageByHand(),
    () => this.#setImageByHand(),
    () => this.#pin(),
    () => this.#haltOnFailure(),
    () => this.#sicken(),
    () => this.#sicken(),
    () => this.#createObject(),
    () => this.#deleteObject(),
    () => this.#kill(),
    () => this.#kill(),
  ]

  async #setImages(): Promise<void> {
    const found = await this.#pickServiceImage()
    if (!found) return this.#createServiceImage(this.chance.pick(names))
    const { metadata, spec } = found
    const [tier] = this.chance.some(spec.tiers as Json[], 0.3)
    if (tier) {
      const image = this.#image()
      const tiers = spec.tiers.map((each: Json) => (each === tier ? { ...each, image } : each))
      return this.#edit(metadata.name, `image ${image} for tier "${tier.upgradeTier}"`, { tiers })
    }
    const defaultImage = this.#image()
    await this.#edit(metadata.name, `defaultImage ${defaultImage}`, { defaultImage })
  }

  async #editTiers(): Promise<void> {
    const found = await this.#pickServiceImage()
    if (!found) return
    const tiers = this.#tiers().map(tier => ({
      ...tier,
      image: found.spec.tiers.find((each: Json) => each.upgradeTier === tier.upgradeTier)?.image ?? "",
    }))
    await this.#edit(found.metadata.name, `tiers ${JSON.stringify(tiers)}`, { tiers })
  }

  async #editRest(): Promise<void> {
    const found = await this.#pickServiceImage()
    if (!found) return
    const spec = { pace: this.#pace(), onFailure: this.#onFailure() }
    await this.#edit(found.metadata.name, JSON.stringify(spec), spec)
  }

  async #pauseOrResume(): Promise<void> {
    const found = await this.#pickServiceImage()
    if (!found) return
    const paused = !found.spec.paused
    await this.#edit(found.metadata.name, `paused ${paused}`, { paused })
  }

  /** Mostly what is asked for; sometimes too much, too early or too late. */
  async #approve(): Promise<void> {
    const asks = (await this.#serviceImages()).filter(({ spec }) =>
      spec.tiers.some((tier: Json) => tier.requireApproval),
    )
    if (asks.length === 0) return
    const { metadata, spec, status } = this.chance.pick(asks)
    const operation = this.chance.often(0.8) ? status?.operation?.id : "g1"
    if (!operation) return
    const tiers = this.chance.some(
      (spec.tiers as Json[]).map(tier => tier.upgradeTier),
      0.7,
    )
    await this.#annotate(metadata.name, "approved", JSON.stringify({ operation, tiers }))
  }

  async #takeBack(): Promise<void> {
    const found = await this.#pickServiceImage()
    if (!found?.status?.operation) return
    await this.#annotate(found.metadata.name, "rollback", found.status.operation.id)
  }

  async #retry(): Promise<void> {
    const found = (await this.#serviceImages()).find(({ status }) => status?.operation?.phase === "RolledBack")
    if (found) await this.#annotate(found.metadata.name, "retry", found.status.operation.id)
  }

  async #deleteServiceImage(): Promise<void> {
    const found = await this.#pickServiceImage()
    if (!found) return
    const { name } = found.metadata
    await requestInTime(this.world, this.world.client.delete(serviceImages, { name }))
    this.#tell(`delete ${name}`)
  }

  async #createServiceImage(name: string): Promise<void> {
    if ((await this.#serviceImages()).some(({ metadata }) => metadata.name === name)) return
    const { chance } = this
    const { group, version, kind } = this.#resource
    const isForAll = chance.often(0.5)
    const tiers = this.#tiers()
    // Objects of no tier are left alone where there is no default image.
    const hasDefault = tiers.length === 0 || chance.often(0.85)
    const spec = {
      target: {
        apiVersion: `${group}/${version}`,
        kind,
        ...(!isForAll && { selector: { matchLabels: { team: chance.pick(["red", "blue"]) } } }),
        ...(kind === "Deployment" && { image: { container: "app" } }),
      },
      defaultImage: hasDefault ? this.#image() : "",
      tiers: tiers.map(tier => ({ ...tier, image: hasDefault && chance.often(0.7) ? "" : this.#image() })),
      pace: this.#pace(),
      onFailure: this.#onFailure(),
    }
    await this.world.apply({
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "ServiceImage",
      metadata: { name },
      spec,
    })
    this.#tell(`create ${name} ${JSON.stringify(spec)}`)
  }

  async #moveTier(): Promise<void> {
    const object = await this.#pickObject()
    if (!object) return
    const tier = this.chance.pick([...tierNames, "no-such-tier", null])
    await this.#patchObject(object, { metadata: { labels: { "upgrade-tier": tier } } })
  }

  async #scale(): Promise<void> {
    const object = await this.#pickObject()
    if (object) await this.#patchObject(object, { spec: { replicas: this.chance.below(4) } })
  }

  async #setImageByHand(): Promise<void> {
    const object = await this.#pickObject()
    if (object) await this.#patchObject(object, { spec: this.#withImage(this.#image()) })
  }

  async #pin(): Promise<void> {
    const object = await this.#pickObject()
    if (!object) return
    const name = annotationOf("manually-specified-image")
    const isPinned = object.metadata.annotations?.[name] === "true"
    await this.#patchObject(object, { metadata: { annotations: { [name]: isPinned ? null : "true" } } })
  }

  async #haltOnFailure(): Promise<void> {
    const object = await this.#pickObject()
    if (!object) return
    const value = this.chance.often(0.6) ? "true" : null
    await this.#patchObject(object, { metadata: { annotations: { [annotationOf("failure-halts-update")]: value } } })
  }

  async #sicken(): Promise<void> {
    const object = await this.#pickObject()
    if (!object) return
    const sick = object.metadata.labels?.sick ? null : "yes"
    await this.#patchObject(object, { metadata: { labels: { sick } } })
  }

  async #createObject(): Promise<void> {
    const { chance } = this
    const { group, version, kind } = this.#resource
    const name = `t${this.#created++}`
    const tier = chance.pick([...tierNames, undefined])
    const labels = { team: chance.pick(["red", "blue"]), ...(tier !== undefined && { "upgrade-tier": tier }) }
    // A Deployment cannot be without an image.
    const image = kind === "Deployment" || chance.often(0.6) ? this.#image(["v0", "v1"]) : undefined
    const halts = chance.often(0.2) && { [annotationOf("failure-halts-update")]: "true" }
    const selector = { matchLabels: { name } }
    const workload = kind === "Deployment" && { replicas: chance.below(4), selector }
    await this.world.apply({
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name, namespace: "default", labels, annotations: { ...halts } },
      spec: { ...workload, ...(image && this.#withImage(image, name)) },
    })
    this.#tell(`create ${name} ${JSON.stringify({ labels, image, ...halts })}`)
  }

  async #deleteObject(): Promise<void> {
    const object = await this.#pickObject()
    if (!object) return
    const { name, namespace } = object.metadata
    await requestInTime(this.world, this.world.client.delete(this.#resource, { name, namespace }))
    this.#tell(`delete ${name}`)
  }

  /** Now, or around one of its next writes; another one starts soon after. */
  async #kill(): Promise<void> {
    this.#process?.die()
    this.#tell("kill the controller")
  }

  #start(): void {
    const { world, chance } = this
    const strikes = nth(isDecision, 1 + chance.below(25))
    const fate = chance.often(0.3) ? { [chance.pick(["before", "after"])]: strikes } : {}
    const downMs = chance.pick([0, 2000, 30_000])
    const onDeath = () => {
      const outage = { from: world.clock.now(), to: Number.POSITIVE_INFINITY }
      this.outages.push(outage)
      world.clock.after(downMs, () => {
        outage.to = world.clock.now()
        this.#start()
      })
    }
    this.#process = world.run([createServiceImageController()], { dies: { ...fate, onDeath } })
  }

  #image(tags: readonly string[] = ["v1", "v2", "v2", "v3", "v4", "bad1"]): string {
    return `${this.chance.pick(spellings)}:${this.chance.pick(tags)}`
  }

  #withImage(image: string, name?: string): Json {
    if (this.#resource.kind !== "Deployment") return { image }
    const containers = [{ name: "app", image }]
    return { template: { ...(name && { metadata: { labels: { name } } }), spec: { containers } } }
  }

  #tiers(): Json[] {
    const { chance } = this
    return chance.some(tierNames, 0.75).map(upgradeTier => ({
      upgradeTier,
      priority: chance.below(3),
      progressDeadlineSeconds: chance.pick([30, 60, 100]),
      ...(chance.often(0.8) && { settleSeconds: chance.pick([0, 0, 4, 15]) }),
      ...(chance.often(0.5) && { maxConcurrent: chance.pick([1, 1, 2, "30%", "60%"]) }),
      ...(chance.often(0.4) && { steps: chance.pick(someSteps) }),
      ...(chance.often(0.3) && { failureBudget: chance.pick([0, 1, "30%"]) }),
      ...(chance.often(0.4) && { requireApproval: true }),
    }))
  }

  #pace(): Json {
    return { podsPerSecond: this.chance.pick([0, 0, 1, 2, 3, 15]) }
  }

  #onFailure(): string {
    return this.chance.often(0.3) ? "Rollback" : "Halt"
  }

  async #serviceImages(): Promise<Json[]> {
    return this.world.list(serviceImages)
  }

  async #pickServiceImage(): Promise<Json | undefined> {
    const all = await this.#serviceImages()
    return all.length > 0 ? this.chance.pick(all) : undefined
  }

  async #pickObject(): Promise<Json | undefined> {
    const all = await this.world.list(this.#resource)
    return all.length > 0 ? this.chance.pick(all) : undefined
  }

  async #edit(name: string, what: string, spec: Json): Promise<void> {
    try {
      await this.world.patch(serviceImages, name, { spec })
    } catch (error) {
      // A tier without any image is refused: the user reads that, and lets it be.
      if (!isFailure(error, "Invalid")) throw error
    }
    this.#tell(`${name}: ${what}`)
  }

  async #annotate(name: string, what: string, value: string): Promise<void> {
    await this.world.patch(serviceImages, name, { metadata: { annotations: { [annotationOf(what)]: value } } })
    this.#tell(`${name}: ${what} ${value}`)
  }

  async #patchObject({ metadata: { name, namespace } }: Json, body: Json): Promise<void> {
    await this.world.patch(this.#resource, name, body, namespace)
    this.#tell(`${name}: ${JSON.stringify(body)}`)
  }

  #tell(what: string): void {
    this.told.push(`${new Date(this.world.clock.now()).toISOString().slice(11, 23)} ${what}`)
  }
}

const someSteps: readonly Json[][] = [
  [{ percent: 40, soakSeconds: 20 }],
  [{ percent: 20, soakSeconds: 45 }, { percent: 60 }],
  [
    { percent: 25, soakSeconds: 10 },
    { percent: 50, soakSeconds: 30 },
    { percent: 100, soakSeconds: 15 },
  ],
]
