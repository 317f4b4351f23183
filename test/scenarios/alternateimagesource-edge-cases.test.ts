import { expect, test } from "vitest"
import { answer } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { readPod } from "#controllers/alternateimagesource/facts.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import type { Resolution } from "#registry/index.ts"
import type { KubeObject } from "#runtime/resource.ts"
import {
  containers,
  Deployments,
  deployment,
  digest,
  type FailoverStory,
  failover,
  ghcr,
  hub,
  pushEverywhere,
  quay,
  source,
  workload,
} from "#test/support/failover-story.ts"

// The thirty-three ways in which failing over between registries goes wrong, each as a story or, where nothing but a
// reading is in question, as a table.

const refused = { kind: "refused" } as const
const quayIsDown = "registries: {quay.io: {fault: refused}}"
const set = (...equivalentRepositories: string[]) => ({ imageSourceReplacements: [{ equivalentRepositories }] })
const three = set(quay, hub, ghcr)
const each = (count: number, image: string) => Array(count).fill(image)

/** Every image that pods ever had in a container, in order of appearance. */
const imagesOver = ({ world }: FailoverStory, container = "basic-demo") => [
  ...new Set(
    world.history
      .filter(({ object }) => object.kind === "Pod")
      .flatMap(({ object }) => [...(object.spec.initContainers ?? []), ...object.spec.containers])
      .filter(({ name }: Json) => name === container)
      .map(({ image }: Json) => image),
  ),
]

const templateOf = async ({ world }: FailoverStory, name: string) =>
  (await world.get(Deployments, name, "default")).spec.template.spec.containers[0].image

const scale = ({ world }: FailoverStory, name: string, replicas: number) =>
  world.patch(Deployments, name, { spec: { replicas } }, "default")

const bare = (name: string, image: string, { metadata, ...spec }: Json = {}): Json => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", ...metadata },
  spec: { ...containers(image), ...spec },
})

test("1. a host with a port or an IPv6 address is distinguished from a tag", async () => {
  const [port, six] = ["registry.shop.example:5000/web", "[2001:db8::1]:5000/web"]
  const story = await failover({ description: "registries: {registry.shop.example:5000: {fault: refused}}" })
  await story.world.apply(source(set(port, six)), deployment("web", port), deployment("tagged", `${port}:1`))
  // Nodes of the simulation do not pull from IPv6 addresses: where they are sent is what counts.
  await story.world.until("both to be sent", async () => imagesOver(story).length === 4)
  expect(imagesOver(story).sort()).toEqual([six, `${six}:1`, port, `${port}:1`].sort())
})

test("2. docker.io goes by all its names, and only whole paths count", async () => {
  const story = await failover({ description: "registries: {docker.io: {fault: refused}}" })
  const { world } = story
  await world.apply(
    source(set("index.docker.io/library/web", quay)),
    deployment("web", "web:1"),
    deployment("web2", "docker.io/library/web2:1", { spec: { replicas: 1 } }),
  )
  await world.until("three to run", async () => (await story.running()).length === 3)
  await world.advance("10m")
  expect(await story.running()).toEqual(each(3, `${quay}:1`))
  expect((await story.status()).targetsAvailable.map(({ name }: Json) => name)).toEqual(["web"])
})

test("3. no tag, a digest, and both are kept as they are, and a digest is asked by digest", async () => {
  const story = await failover({ description: quayIsDown })
  pushEverywhere(story.registries, "1")
  const images = [quay, `${quay}@${digest("1")}`, `${quay}:1@${digest("1")}`]
  await story.world.apply(
    source(),
    ...images.map((image, index) => deployment(`demo-${index}`, image, { spec: { replicas: 1 } })),
  )
  expect(await story.untilRunning(3)).toEqual(images.map(image => image.replace(quay, hub)).sort())
  expect(story.asked).toContain(`${hub}@${digest("1")}`)
})

test("4. a mirror without the tag is passed by, and no pod is sent there to find out", async () => {
  const story = await failover({ description: quayIsDown })
  story.registries.remove(`${hub}:1`)
  await story.world.apply(source(three), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${ghcr}:1`))
  expect(imagesOver(story)).toEqual([`${quay}:1`, `${ghcr}:1`])
})

test("5. a mirror's tag with other bits is refused once the bits are known, unless the policy does not mind", async () => {
  const story = await failover()
  const { world, registries } = story
  registries.push(`${quay}:1`, { digest: digest("1") })
  registries.push(`${hub}:1`, { digest: digest("2") })
  const always = { containers: [{ name: "basic-demo", image: `${quay}:1`, imagePullPolicy: "Always" }] }
  await world.apply(source(), deployment("demo", `${quay}:1`, { pod: always, spec: { replicas: 1 } }))
  await story.untilRunning(1)
  registries.setFault("quay.io", refused)
  await scale(story, "demo", 3)
  await story.untilReason("DigestDiffers")
  expect(imagesOver(story)).toEqual([`${quay}:1`])
  await world.patch(alternateImageSources, "demo", { spec: { policy: { requireSameDigest: "Never" } } }, "default")
  expect(await story.untilRunning(3, "1h")).toEqual([...each(2, `${hub}:1`), `${quay}:1`])
})

test("6. a tag whose manifest is gone is found out by asking for the digest", async () => {
  const gone: Resolution = { ok: false, class: "NotFound", message: "" }
  const story = await failover({
    description: quayIsDown,
    says: image => (image.startsWith(hub) && image.includes("@") ? gone : undefined),
  })
  await story.world.apply(source(three), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${ghcr}:1`))
  expect(imagesOver(story)).not.toContain(`${hub}:1`)
})

test("7. proxies of one upstream that die together are not tried by pods", async () => {
  const story = await failover({
    description: "registries: {quay.io: {fault: refused}, docker.io: {fault: 502}, ghcr.io: {fault: 502}}",
  })
  await story.world.apply(source(three), deployment("demo", `${quay}:1`))
  await story.untilReason("AllSourcesDown")
  await story.world.advance("30m")
  expect(imagesOver(story)).toEqual([`${quay}:1`])
})

test("8. a platform that the mirror lacks is found out by the first pod, and counts as not found there", async () => {
  // A request for the tag is not enough: the platforms are in the manifest, and reading that counts as a pull. The node's
  // own architecture is nothing the controller reads either. So the pod's outcome decides, and the mirror is remembered.
  const story = await failover({ description: quayIsDown, nodes: [{ name: "arm", arch: "arm64" }] })
  story.registries.push(`${hub}:1`, { platforms: ["linux/amd64"] })
  await story.world.apply(source(three), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${ghcr}:1`))
  await story.world.settle()
  expect(await story.target("demo")).toMatchObject({
    switches: [{ newImage: `${hub}:1` }, { oldImage: `${hub}:1`, newImage: `${ghcr}:1`, reason: "NoPlatform" }],
  })
})

test("9. init containers are repaired like others; ephemeral ones and image volumes cannot be", async () => {
  const story = await failover({ description: quayIsDown })
  const initContainers = [{ name: "prepare", image: `${quay}:init` }]
  story.registries.push(`${hub}:init`, { exits: { afterMs: 100, exitCode: 0 } })
  await story.world.apply(
    source(),
    deployment("demo", "ghcr.io/other/app:1", { pod: { initContainers }, spec: { replicas: 1 } }),
  )
  await story.untilRunning(1)
  expect(imagesOver(story, "prepare")).toEqual([`${quay}:init`, `${hub}:init`])

  const waiting = { state: { waiting: { reason: "ErrImagePull", message: "connection refused" } } }
  const pod = bare("debugged", `${quay}:1`, { ephemeralContainers: [{ name: "debug", image: `${quay}:1` }] })
  const ephemeralContainerStatuses = [{ name: "debug", ...waiting }]
  expect(readPod({ ...pod, status: { ephemeralContainerStatuses } } as unknown as KubeObject).failing).toEqual([])
})

test("10. only the container that fails is changed", async () => {
  const story = await failover()
  story.registries.setFault(`${quay}:1`, refused)
  const both = [
    { name: "first", image: `${quay}:2` },
    { name: "second", image: `${quay}:1` },
  ]
  await story.world.apply(source(), deployment("demo", "", { pod: { containers: both } }))
  expect(await story.untilRunning(3)).toEqual(each(3, `${quay}:2 ${hub}:1`))
  expect(imagesOver(story, "first")).toEqual([`${quay}:2`])
})

test("11. only reasons that another registry could mend are failures", () => {
  const failing = (reason: string, message = "dial tcp: connection refused") => {
    const status = { containerStatuses: [{ name: "basic-demo", state: { waiting: { reason, message } } }] }
    return readPod({ ...bare("pod", `${quay}:1`), status } as unknown as KubeObject).failing.map(
      ({ failure }) => failure,
    )
  }
  const reasons: Record<string, string[]> = {
    ErrImagePull: ["Unreachable"],
    ImagePullBackOff: ["Unreachable"],
    RegistryUnavailable: ["Unreachable"],
    SignatureValidationFailed: ["SignatureRejected"], // reported, and never switched: see decide.test.ts
    InvalidImageName: [],
    ErrImageNeverPull: [],
    ImageInspectError: [],
    CrashLoopBackOff: [],
    ContainerCreating: [],
  }
  expect(Object.fromEntries(Object.keys(reasons).map(reason => [reason, failing(reason)]))).toEqual(reasons)
})

test("12. a rate limit is switched at once, a misspelt tag starts no tour, refused credentials are not hidden", async () => {
  const limited = await failover({ description: "registries: {quay.io: {fault: 429}}" })
  await limited.world.apply(source(), deployment("demo", `${quay}:1`))
  expect(await limited.untilRunning(3, "10s")).toEqual(each(3, `${hub}:1`))

  const misspelt = await failover()
  for (const repository of [quay, hub, ghcr]) misspelt.registries.remove(`${repository}:typo`)
  await misspelt.world.apply(source(three), deployment("demo", `${quay}:typo`))
  await misspelt.untilReason("NotFoundAnywhere")
  await misspelt.world.advance("30m")
  expect(imagesOver(misspelt)).toEqual([`${quay}:typo`])

  const denied = await failover({ description: "registries: {quay.io: {fault: 401}}" })
  await denied.world.apply(source(), deployment("demo", `${quay}:1`))
  await denied.untilReason("Denied")
  await denied.world.advance("30m")
  expect(imagesOver(denied)).toEqual([`${quay}:1`])
  await denied.world.patch(alternateImageSources, "demo", { spec: { policy: { onAuthError: "Switch" } } }, "default")
  expect(await denied.untilRunning(3)).toEqual(each(3, `${hub}:1`))
})

test("13. a registry is not asked more often than needed, however many pods fail and however long", async () => {
  const story = await failover({ description: "registries: {quay.io: {fault: refused}, docker.io: {fault: 503}}" })
  await story.world.apply(source(), deployment("demo", `${quay}:1`, { spec: { replicas: 20 } }))
  await story.world.advance("1h")
  // Both after 2 s, the other after 20 s, then after 1, 2, 4, 8, 15, 15 and 15 minutes.
  expect(story.asked.length).toBeLessThanOrEqual(10)
})

test("14. a probe is advice: where none can be made a pod tries, and where it was wrong the pod is believed", async () => {
  const blind = await failover({ description: quayIsDown, isBlind: true })
  await blind.world.apply(source(), deployment("demo", `${quay}:1`))
  expect(await blind.untilRunning(3)).toEqual(each(3, `${hub}:1`))

  const fine: Resolution = { ok: true, digest: digest("1"), mediaType: "" }
  const story = await failover({
    description: "registries: {quay.io: {fault: refused}, docker.io: {fault: refused}}",
    says: () => fine,
  })
  await story.world.apply(source(three), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${ghcr}:1`))
})

test("15. one blip is waited out", async () => {
  const story = await failover()
  story.registries.setFault("quay.io", { ...refused, times: 3 })
  await story.world.apply(source(), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${quay}:1`))
  await story.world.settle()
  expect(await story.target("demo")).toEqual(expect.not.objectContaining({ switches: expect.anything() }))
  expect(await story.target("demo")).not.toHaveProperty("incident")
})

test("16. where only some pods fail, only they are changed, and the template only past its share", async () => {
  const story = await failover()
  const { world } = story
  pushEverywhere(story.registries, "1")
  await world.apply(
    source({ policy: { apply: "Template", templateShare: "100%" } }),
    deployment("demo", `${quay}:1`, { spec: { replicas: 1 } }),
  )
  await story.untilRunning(1)
  const [first] = await story.pods()
  story.registries.setFault("quay.io", refused) // its own node has the image
  await scale(story, "demo", 6)
  const images = await story.untilRunning(6)
  expect(new Set(images)).toEqual(new Set([`${quay}:1`, `${hub}:1`]))
  expect(await templateOf(story, "demo")).toBe(`${quay}:1`)
  const same = (await story.pods()).find(({ metadata }) => metadata.uid === first?.metadata.uid)
  expect(same).toMatchObject({ spec: first?.spec, status: { containerStatuses: [{ restartCount: 0 }] } })
})

test("17. of three the next is tried in order, and none twice", async () => {
  const fine: Resolution = { ok: true, digest: digest("1"), mediaType: "" }
  const story = await failover({
    description: "registries: {quay.io: {fault: refused}, docker.io: {fault: timeout}}",
    says: () => fine,
  })
  await story.world.apply(source(three), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${ghcr}:1`))
  await story.world.settle()
  expect(await story.target("demo")).toMatchObject({
    currentRepository: ghcr,
    switches: [
      { oldImage: `${quay}:1`, newImage: `${hub}:1`, reason: "Unreachable" },
      { oldImage: `${hub}:1`, newImage: `${ghcr}:1`, reason: "Timeout" },
    ],
    incident: { bad: [quay, hub], working: ghcr },
  })
})

test("18. when all are down nothing moves, asked again later and later, and it goes on when one is back", async () => {
  const story = await failover({ description: "registries: {quay.io: {fault: refused}, docker.io: {fault: 503}}" })
  const { world } = story
  await world.apply(source(), deployment("demo", `${quay}:1`))
  await story.untilReason("AllSourcesDown")
  await world.advance("1h")
  expect(imagesOver(story)).toEqual([`${quay}:1`])
  const said = world.history.filter(({ object }) => object.kind === "AlternateImageSource")
  const waits = said.flatMap(({ object, at }) => {
    const { incident } = object.status?.targetsAvailable?.[0] ?? {}
    return incident?.reason === "AllSourcesDown" ? [Math.round((Date.parse(incident.tryAgainAt) - at) / 60_000)] : []
  })
  expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 15, 15, 15])
  story.registries.setFault("docker.io", undefined)
  expect(await story.untilRunning(3)).toEqual(each(3, `${hub}:1`))
})

test("19. the cool-down outlives the process, and time alone ends it", async () => {
  const fine: Resolution = { ok: true, digest: digest("1"), mediaType: "" }
  const story = await failover({
    description: "registries: {quay.io: {fault: refused}, docker.io: {fault: refused}}",
    says: () => fine,
    isIdle: true,
  })
  const { world } = story
  const first = world.run([story.controller()])
  await world.apply(
    source({ ...three, policy: { confirmSeconds: 0, cooldownSeconds: 300 } }),
    deployment("demo", `${quay}:1`),
  )
  await world.until("the first switch", async () => (await story.target("demo"))?.switches?.length === 1)
  first.die()
  world.run([story.controller()])
  await story.untilRunning(3)
  await world.settle()
  const [one, two] = (await story.target("demo"))?.switches ?? []
  const apart = (Date.parse(two.time) - Date.parse(one.time)) / 1000
  expect(apart).toBeGreaterThanOrEqual(300)
  expect(apart).toBeLessThan(310)
})

test("20. the way back is off; where it is on, no healthy pod is restarted for it", async () => {
  const never = await failover({ description: "registries: {quay.io: {fault: {kind: refused, for: 5m}}}" })
  await never.world.apply(source(), deployment("demo", `${quay}:1`))
  await never.untilRunning(3)
  await never.world.advance("2h")
  expect(await never.target("demo")).toMatchObject({ incident: { working: hub } })

  const story = await failover({ description: "registries: {quay.io: {fault: {kind: refused, for: 5m}}}" })
  const { world } = story
  await world.apply(source({ policy: { switchBack: "WhenHealthy" } }), deployment("demo", `${quay}:1`))
  await story.untilRunning(3)
  const before = (await story.pods()).map(({ metadata }) => metadata.uid)
  await world.until("the way back", async () => (await story.target("demo"))?.switches?.length === 2, "1h")
  const since = world.history.length
  await world.advance("3h")
  expect(await story.target("demo")).not.toHaveProperty("incident")
  expect(await story.target("demo")).toMatchObject({
    switches: [{}, { reason: "SwitchedBack", newImage: `${quay}:1` }],
  })
  const again = world.history.slice(since).filter(({ object }) => object.kind === "AlternateImageSource")
  expect(again, "and it is not told again and again").toEqual([])
  expect(await story.running()).toEqual(each(3, `${hub}:1`))
  await scale(story, "demo", 4)
  expect(await story.untilRunning(4)).toEqual([...each(3, `${hub}:1`), `${quay}:1`])
  expect((await story.pods()).map(({ metadata }) => metadata.uid)).toEqual(expect.arrayContaining(before))
})

test("21. a new image in the workload ends the incident", async () => {
  const story = await failover()
  story.registries.setFault(`${quay}:1`, refused)
  await story.world.apply(source(), deployment("demo", `${quay}:1`))
  await story.untilRunning(3)
  await story.world.apply(deployment("demo", `${quay}:2`))
  await story.world.until("the new image", async () => (await story.running()).every(image => image === `${quay}:2`))
  await story.world.settle()
  expect(await story.target("demo")).toMatchObject({ currentRepository: quay })
  expect(await story.target("demo")).not.toHaveProperty("incident")
})

test("22. a changed template that replaces no pod has its pods repaired; pods of an older one do not change it", async () => {
  const story = await failover({ description: quayIsDown })
  const { world } = story
  await world.apply(source({ policy: { apply: "Template" } }), deployment("demo", `${quay}:1`))
  await world.until("pods", async () => (await story.pods()).length === 3)
  await world.patch(Deployments, "demo", { spec: { paused: true } }, "default")
  expect(await story.untilRunning(3)).toEqual(each(3, `${hub}:1`))
  expect(await templateOf(story, "demo")).toBe(`${hub}:1`)
  await world.settle()
  expect((await story.target("demo"))?.switches).toHaveLength(1)
  // An older template: see "is left alone for pods of an older one" in decide.test.ts.
})

test("23. a StatefulSet's pods are repaired in place, one after the other, with one switch; so are those of a DaemonSet with OnDelete", async () => {
  const story = await failover({ description: quayIsDown })
  await story.world.apply(
    source(),
    workload("StatefulSet", "set", `${quay}:1`),
    workload("DaemonSet", "everywhere", `${quay}:1`, { spec: { updateStrategy: { type: "OnDelete" } } }),
  )
  expect(await story.untilRunning(6)).toEqual(each(6, `${hub}:1`))
  await story.world.settle()
  expect((await story.target("set"))?.switches).toMatchObject([{ pods: 1 }])
  expect((await story.target("everywhere"))?.switches).toMatchObject([{ pods: 3 }])
})

test("24. a Job, a CronJob's next run and a bare pod are repaired; what the kubelet runs by itself is not", async () => {
  const story = await failover({ description: quayIsDown })
  const { world } = story
  const template = { spec: { restartPolicy: "Never", ...containers(`${quay}:job`) } }
  story.registries.push(`${hub}:job`, { exits: { afterMs: 5000, exitCode: 0 } })
  const job = (kind: string, name: string, spec: Json): Json => ({
    apiVersion: "batch/v1",
    kind,
    metadata: { name, namespace: "default" },
    spec,
  })
  const mirror = { annotations: { "kubernetes.io/config.mirror": "1" } }
  await world.apply(
    source({ policy: { apply: "Template" } }),
    job("Job", "once", { template }),
    job("CronJob", "hourly", { schedule: "0 * * * *", jobTemplate: { spec: { template } } }),
    bare("alone", `${quay}:1`),
    bare("static", `${quay}:1`, { metadata: mirror }),
  )
  const jobs = { group: "batch", version: "v1", plural: "jobs", kind: "Job", namespaced: true }
  const isDone = async () => {
    const all = await world.list(jobs)
    return all.length >= 2 && all.every(({ status }) => status.succeeded === 1)
  }
  await world.until("both to be done", isDone, "2h")
  expect(await story.running()).toEqual([`${hub}:1`])
  const statically = (await story.pods()).find(({ metadata }) => metadata.name === "static")
  expect(statically?.spec.containers[0].image).toBe(`${quay}:1`)
})

test("25. what a custom resource owns is left alone but for its pods", async () => {
  // That a ServiceImage counts an equivalent image as reached: see its own tests of failover.
  const story = await failover({ description: quayIsDown })
  const owner = { apiVersion: "shop.example/v1", kind: "Store", name: "berlin", uid: "1-2-3", controller: true }
  await story.world.apply(
    source({ policy: { apply: "Template" } }),
    deployment("demo", `${quay}:1`, { metadata: { ownerReferences: [owner] } }),
    bare("own", `${quay}:1`, { metadata: { ownerReferences: [owner] } }),
  )
  expect(await story.untilRunning(4)).toEqual(each(4, `${hub}:1`))
  await story.world.settle()
  expect(await templateOf(story, "demo")).toBe(`${quay}:1`)
  expect(await story.target("berlin")).toMatchObject({ type: { kind: "store" }, switches: [{ newImage: `${hub}:1` }] })
})

test("26. what GitOps manages keeps its template, unless that is overridden", async () => {
  const labels = { "argocd.argoproj.io/instance": "shop" }
  const story = await failover({ description: quayIsDown })
  await story.world.apply(
    source({ policy: { apply: "Template" } }),
    deployment("demo", `${quay}:1`, { metadata: { labels } }),
  )
  expect(await story.untilRunning(3)).toEqual(each(3, `${hub}:1`))
  expect(await templateOf(story, "demo")).toBe(`${quay}:1`)

  const overridden = await failover({ description: quayIsDown })
  const policy = { apply: "Template", overrideGitOps: true }
  await overridden.world.apply(source({ policy }), deployment("demo", `${quay}:1`, { metadata: { labels } }))
  expect(await overridden.untilRunning(3)).toEqual(each(3, `${hub}:1`))
  expect(await templateOf(overridden, "demo")).toBe(`${hub}:1`)
})

test("27. a closed registry is no candidate without the pod's own secret, and is one with it", async () => {
  // Secrets are never copied, and no template gets one: its author must list it.
  const story = await failover({ description: quayIsDown, accounts: { "docker.io": "shop:secret" } })
  const { world } = story
  const auth = Buffer.from("shop:secret").toString("base64")
  const secret = JSON.stringify({ auths: { "https://index.docker.io/v1/": { auth } } })
  await world.apply(
    source(),
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "hub", namespace: "default" },
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": Buffer.from(secret).toString("base64") },
    },
    deployment("without", `${quay}:1`),
    deployment("with", `${quay}:2`, { pod: { imagePullSecrets: [{ name: "hub" }] } }),
  )
  await world.until("three to run", async () => (await story.running()).length === 3)
  await world.advance("10m")
  expect(await story.running()).toEqual(each(3, `${hub}:2`))
  expect(await story.condition("Ready")).toMatchObject({ reason: "SecretMissing" })
})

test("28. Always asks the original first and may fail over; Never is left alone", async () => {
  const story = await failover({ description: quayIsDown })
  const pulling = (imagePullPolicy: string) => ({
    pod: { containers: [{ name: "basic-demo", image: `${quay}:1`, imagePullPolicy }] },
    spec: { replicas: 1 },
  })
  const { world } = story
  await world.apply(source(), deployment("always", "", pulling("Always")), deployment("never", "", pulling("Never")))
  await world.until("one to run", async () => (await story.running()).length === 1)
  await world.advance("10m")
  const images = (await story.pods()).map(({ metadata, spec }) => [metadata.labels.app, spec.containers[0].image])
  expect(Object.fromEntries(images)).toEqual({ always: `${hub}:1`, never: `${quay}:1` })
})

test("29. of two that match the oldest looks after a container, and the other says so; of two lists the first counts", async () => {
  const story = await failover({ description: quayIsDown })
  const { world } = story
  const imageSourceReplacements = [{ equivalentRepositories: [quay, hub] }, { equivalentRepositories: [quay, ghcr] }]
  await world.apply(source({ imageSourceReplacements }, { name: "demo" }))
  await world.advance("2s")
  await world.apply(source(set(quay, ghcr), { name: "a-younger" }), deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${hub}:1`))
  await world.settle()
  expect(await story.condition("Stalled", "a-younger")).toMatchObject({ status: "True", reason: "ClaimedByAnother" })
  expect((await story.status("a-younger")).targetsAvailable).toEqual([])
})

test("30. nothing is reported that the server did not accept", async () => {
  // How many are kept, and which: see tell.test.ts.
  const story = await failover({ description: quayIsDown, isIdle: true })
  const { world } = story
  let isForbidden = true
  const faults = [
    answer(({ method, path }) => isForbidden && method === "PATCH" && /\/pods\//.test(path), 403, {
      reason: "Forbidden",
    }),
  ]
  world.run([story.controller()], { faults })
  await world.apply(source(), deployment("demo", `${quay}:1`))
  await story.untilReason("Refused")
  await world.advance("5m")
  expect(await story.target("demo")).toMatchObject({ currentRepository: quay })
  expect(await story.target("demo")).not.toHaveProperty("switches")
  expect((await story.target("demo"))?.incident).not.toHaveProperty("working")
  isForbidden = false
  expect(await story.untilRunning(3)).toEqual(each(3, `${hub}:1`))
  await world.settle()
  expect((await story.target("demo"))?.switches).toHaveLength(1)
})

test("31. a workload that was created again starts without history, and a missing target is reported", async () => {
  const story = await failover({ description: "registries: {quay.io: {fault: {kind: refused, for: 10m}}}" })
  const { world } = story
  const targets = [{ type: { group: "apps", kind: "deployment" }, name: "demo" }]
  await world.apply(
    source({ imageSourceReplacements: [{ equivalentRepositories: [quay, hub], targets }] }),
    deployment("demo", `${quay}:1`),
  )
  await story.untilRunning(3)
  await world.settle()
  const old = await story.target("demo")
  const deletion = world.client.delete(Deployments, { name: "demo", namespace: "default" })
  await world.advance("10m")
  await deletion
  expect(await story.condition("Ready")).toMatchObject({ status: "False", reason: "TargetNotFound" })
  await world.apply(deployment("demo", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(each(3, `${quay}:1`))
  await world.settle()
  const made = await story.target("demo")
  expect(made?.uid).not.toBe(old?.uid)
  expect(made).not.toHaveProperty("switches")
})

test("32. a pod that asks to be left alone is", async () => {
  // There is no list of namespaces to skip: nothing is looked after where no AlternateImageSource is.
  const story = await failover({ description: quayIsDown })
  const mark = { "autoimagemanager.io/skip": "true" }
  await story.world.apply(
    source(),
    bare("labelled", `${quay}:1`, { metadata: { labels: mark } }),
    bare("annotated", `${quay}:1`, { metadata: { annotations: mark } }),
    bare("other", `${quay}:1`),
  )
  await story.world.until("one to run", async () => (await story.running()).length === 1)
  await story.world.advance("10m")
  const images = (await story.pods()).map(({ metadata, spec }) => [metadata.name, spec.containers[0].image])
  expect(Object.fromEntries(images)).toEqual({ labelled: `${quay}:1`, annotated: `${quay}:1`, other: `${hub}:1` })
})

test("33. a repository that is disabled is recognised, and never switched to", async () => {
  const story = await failover({ description: quayIsDown })
  await story.world.apply(
    source({ ...three, policy: { disabledRepositories: [hub, quay] } }),
    deployment("demo", `${quay}:1`),
  )
  expect(await story.untilRunning(3)).toEqual(each(3, `${ghcr}:1`))
})
