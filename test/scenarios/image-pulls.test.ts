import { describe, expect, test } from "vitest"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { arriveLate, type Fault } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { imagePullJobs, nodeImages, nodes, pods, secrets } from "#controllers/imagepulljob/resources.ts"
import { host, type PullStory, type PullStoryOptions, pullStory } from "#test/support/pull-story.ts"

const image = "registry.example.com/team/app:v2"
const GiB = 2 ** 30
const other = "registry.example.com/team/web:v1"

const tagsOf = async ({ world }: PullStory, node: string): Promise<Json[]> => {
  const { spec } = await world.get(nodeImages, node)
  return Object.values(spec.images as Json).flatMap((each: Json) => each.tags)
}
const toldOf = async ({ world }: PullStory, node: string): Promise<Json[]> => {
  const { status } = await world.get(nodeImages, node)
  return Object.values((status?.imageStatuses ?? {}) as Json).flatMap((each: Json) => each.tags)
}
const writesTo = ({ world }: PullStory, plural: string, since = 0) =>
  world.history.filter(({ place, revision }) => place.includes(plural) && revision > since)

describe("what is pulled", () => {
  test("a job brings its image to every node and ends", async () => {
    const story = await pullStory({ nodes: 3 })
    story.push(image)
    await story.job("app", { image, parallelism: 2 })
    await story.until("app", "Completed")
    expect(await story.statusOf("app")).toMatchObject({
      desired: 3,
      succeeded: 3,
      failed: 0,
      active: 0,
      summary: "3/3",
    })
    for (const node of story.agents.keys()) expect(story.tagsOn(node)).toEqual([image])
  })

  test("an image by digest is asked for by its digest", async () => {
    const story = await pullStory({ nodes: 1 })
    const digest = story.push(image)
    story.push(image, { version: "moved" })
    const pinned = `${host}/team/app@${digest}`
    await story.job("app", { image: pinned })
    await story.until("app", "Completed")
    const imageID = story.imageOn("node-0", pinned)
    expect(imageID).toMatch(/^sha256:/)
    expect((await toldOf(story, "node-0"))[0]).toMatchObject({ tag: digest, phase: "Succeeded", imageID })
  })

  test("an image that no registry has fails on every node after its attempts, with the runtime's words", async () => {
    const story = await pullStory({ nodes: 2 })
    await story.job("app", { image, parallelism: "100%", pullPolicy: { backoffLimit: 1 } })
    await story.until("app", "BackoffLimitExceeded")
    expect(await story.statusOf("app")).toMatchObject({
      failed: 2,
      failedNodes: [
        { name: "node-0", reason: "NotFound", message: expect.stringContaining(`${image}: not found`) },
        { name: "node-1", reason: "NotFound" },
      ],
    })
    expect(story.pullsOn("node-0")).toHaveLength(2)
  })

  test("an image that is not there for the node's architecture says so, and not that it is missing", async () => {
    const story = await pullStory({ nodes: 1 })
    story.registries.push(image, { platforms: ["linux/s390x"] })
    await story.job("app", { image, pullPolicy: { backoffLimit: 0 } })
    await story.until("app", "BackoffLimitExceeded")
    expect((await story.statusOf("app")).failedNodes).toMatchObject([{ reason: "NoPlatform" }])
  })

  test("an image that is there already is not pulled, unless the policy is Always", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    await story.job("app", { image })
    await story.until("app", "Completed")
    const first = story.imageOn("node-0", image)
    story.push(image, { version: "moved" })
    await story.job("there", { image })
    await story.until("there", "Completed")
    expect(story.pullsOn("node-0")).toEqual([image])
    expect(story.imageOn("node-0", image)).toBe(first)
    await story.job("again", { image, imagePullPolicy: "Always" })
    await story.until("again", "Completed")
    expect(story.imageOn("node-0", image)).not.toBe(first)
  })

  test("S17: an image that the runtime does not show after the pull is not reported as there", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    story.runtime("node-0").images.collect(image) // at the moment its pull is over
    await story.job("app", { image, pullPolicy: { backoffLimit: 0 } })
    await story.until("app", "BackoffLimitExceeded")
    expect((await story.statusOf("app")).succeeded).toBe(0)
  })

  test("S17: a second job for the same image asks the runtime again", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    await story.job("one", { image })
    await story.until("one", "Completed")
    story.runtime("node-0").images.collect(image) // as the kubelet does when the disk is full
    await story.job("two", { image })
    await story.until("two", "Completed")
    expect(story.tagsOn("node-0")).toEqual([image])
  })

  test("a pull that takes too long is ended and counts as a failure", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image, { takesMs: 3_600_000 })
    await story.job("app", { image, pullPolicy: { timeoutSeconds: 30, backoffLimit: 0 } })
    await story.until("app", "BackoffLimitExceeded")
    expect((await story.statusOf("app")).failedNodes).toMatchObject([{ reason: "Timeout" }])
    expect(story.underWay("node-0")).toBe(0)
  })

  test("S16: a disk over the kubelet's threshold takes nothing, and the numbers say why", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    story.runtime("node-0").images.disk.set({ capacityBytes: 10 * GiB, otherBytes: 9 * GiB })
    await story.job("app", { image, pullPolicy: { backoffLimit: 0 } })
    await story.until("app", "BackoffLimitExceeded")
    const [failed] = (await story.statusOf("app")).failedNodes
    expect(failed).toMatchObject({
      reason: "DiskFull",
      message: expect.stringContaining("1.0 GiB of 10.0 GiB are free"),
    })
    expect(story.pullsOn("node-0")).toEqual([])
  })

  test("S16: a pull that turns out to be too large for the disk is ended", async () => {
    const story = await pullStory({ nodes: 1 })
    story.registries.push(image, { sizeBytes: 4 * GiB })
    story.runtime("node-0").images.disk.set({ capacityBytes: 10 * GiB, otherBytes: 5 * GiB })
    await story.job("app", { image, pullPolicy: { backoffLimit: 0 } })
    await story.until("app", "BackoffLimitExceeded")
    expect((await story.statusOf("app")).failedNodes).toMatchObject([{ reason: "DiskFull" }])
    expect(story.underWay("node-0")).toBe(0)
  })

  test("an image that the kubelet may soon remove is reported as such, unless a container uses it", async () => {
    for (const isUsed of [false, true]) {
      const story = await pullStory({ nodes: 1 })
      story.push(image)
      if (isUsed) {
        const spec = { nodeName: "node-0", containers: [{ name: "app", image }] }
        await story.world.apply({
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "app", namespace: "default" },
          spec,
        })
        await story.world.until("it runs", () => [...story.runtime("node-0").containers.all()].length === 1)
      }
      story.runtime("node-0").images.disk.set({ capacityBytes: 10 * GiB, otherBytes: 8.2 * GiB })
      await story.job("app", { image })
      await story.until("app", "Completed")
      const [told] = await toldOf(story, "node-0")
      expect(told.phase).toBe("Succeeded")
      expect(told.reason).toBe(isUsed ? undefined : "MayBeCollected")
      if (!isUsed) expect(told.message).toContain("83 % of the disk are used: above 85 %")
    }
  })

  test("a runtime is given the labels and annotations of sandboxConfig", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    const given: unknown[] = []
    story.runtime("node-0").onCall(({ method, sandboxConfig }) => {
      if (method === "pullImage") given.push(sandboxConfig)
    })
    const sandboxConfig = { labels: { a: "b" }, annotations: { "example.com/c": "d" } }
    await story.job("app", { image, sandboxConfig })
    await story.until("app", "Completed")
    expect(given).toEqual([sandboxConfig])
  })

  test("how the first images of a node ended is written once", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image, { takesMs: 20_000 })
    const firstSync = async () => (await story.world.get(nodeImages, "node-0")).status?.firstSyncStatus
    await story.job("app", { image })
    await story.world.advance("10s")
    expect(await firstSync()).toBeUndefined()
    await story.until("app", "Completed")
    const first = await firstSync()
    expect(first).toMatchObject({ status: "Succeeded", message: "1 of 1 image are there" })
    await story.job("missing", { image: `${image}-missing`, pullPolicy: { backoffLimit: 0 } })
    await story.until("missing", "BackoffLimitExceeded")
    expect(await firstSync()).toEqual(first)
  })

  test("a long pull shows its progress in percent and in bytes, in the job too", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image, { takesMs: 60_000 })
    await story.job("app", { image })
    const progress = async () => (await toldOf(story, "node-0"))[0]?.progress ?? 0
    await story.world.until("it is half done", async () => (await progress()) >= 50, "40s")
    expect(await progress()).toBeLessThan(100)
    const [told] = await toldOf(story, "node-0")
    expect(told!.transfer).toEqual({ doneBytes: expect.any(Number), totalBytes: 60_000_000, pulls: 1 })
    expect(Math.floor(told!.transfer.doneBytes / 600_000)).toBe(told!.progress)
    await story.world.until(
      "the job reports the same",
      async () => (await story.statusOf("app")).transfer?.doneBytes >= told!.transfer.doneBytes,
      "10s",
    )
    expect(await story.statusOf("app")).toMatchObject({
      transfer: { totalBytes: 60_000_000, nodes: 1, sharedNodes: 0 },
      message: expect.stringMatching(/^0 of 1 node has the image; \d+ MiB of 57 MiB fetched on 1 node$/),
    })
    await story.until("app", "Completed")
    expect((await toldOf(story, "node-0"))[0]).not.toHaveProperty("transfer")
    expect(await story.statusOf("app")).not.toHaveProperty("transfer")
  })

  test("pulls side by side show their bytes together, unless a layer can only be for one of them", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image, { takesMs: 40_000 })
    story.push(other, { takesMs: 80_000 })
    await story.job("app", { image })
    await story.job("web", { image: other })
    const both = async () => (await toldOf(story, "node-0")).map(({ phase, transfer }) => ({ phase, transfer }))
    const together = { phase: "Pulling", transfer: { totalBytes: 120_000_000, pulls: 2 } }
    await story.world.until(
      "both report bytes",
      async () => (await both()).filter(({ transfer }) => transfer).length === 2,
      "20s",
    )
    expect(await both()).toMatchObject([together, together])
    expect((await toldOf(story, "node-0")).map(({ progress }) => progress)).toEqual([undefined, undefined])
    await story.world.until("the job has them", async () => (await story.statusOf("app")).transfer, "10s")
    expect((await story.statusOf("app")).transfer).toMatchObject({ nodes: 1, sharedNodes: 1 })
    await story.until("app", "Completed")
    // What is still fetched is for the pull that is left.
    const left = async () => (await toldOf(story, "node-0")).find(({ phase }) => phase === "Pulling")
    await story.world.until("the other reports alone", async () => (await left())?.transfer.pulls === 1, "20s")
    expect(await left()).toMatchObject({ progress: expect.any(Number), transfer: { totalBytes: 80_000_000 } })
    // A third one begins. The new layer may be of either, and the one that was fetched before is not of the third.
    story.push(image, { takesMs: 30_000, version: "moved" })
    await story.job("again", { image, imagePullPolicy: "Always" })
    const third = async () => (await toldOf(story, "node-0")).find(({ version }) => version === 1)
    await story.world.until("the third reports bytes", async () => (await third())?.transfer, "20s")
    expect((await third())!.transfer).toMatchObject({ totalBytes: 30_000_005, pulls: 2 })
    await story.until("web", "Completed")
    await story.until("again", "Completed")
  })
})

describe("private images", () => {
  const privateStory = async (options: PullStoryOptions) => {
    const story = await pullStory(options)
    story.registries.setAccounts(host, { robot: "sesame" })
    return story
  }
  const secret = (name: string, password = "sesame"): Json => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: "default" },
    type: "kubernetes.io/dockerconfigjson",
    data: {
      ".dockerconfigjson": Buffer.from(
        JSON.stringify({ auths: { "registry.example.com": { username: "robot", password } } }),
      ).toString("base64"),
    },
  })

  test("credentials travel sealed, are used, and are gone when the pull has ended", async () => {
    const story = await privateStory({ nodes: 2 })
    story.push(image)
    await story.world.apply(secret("registry"))
    await story.job("app", { image, pullSecrets: ["registry"], parallelism: 2 })
    await story.until("app", "Completed")
    await story.world.until(
      "no credentials are left",
      async () => !JSON.stringify(await story.world.list(nodeImages)).includes("sealedCredentials"),
    )
    const written = JSON.stringify(writesTo(story, "nodeimages"))
    expect(written).toContain("sealedCredentials")
    expect(written).not.toContain("sesame")
    expect(written).not.toContain(Buffer.from("sesame").toString("base64").slice(0, 6))
    for (const node of story.agents.keys()) expect(story.tagsOn(node)).toEqual([image])
  })

  test("jobs of two namespaces for one image on a node: the node tries the accounts of both", async () => {
    const story = await privateStory({ nodes: 1 })
    story.push(image)
    await story.world.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } })
    const right = secret("right")
    await story.world.apply(secret("wrong", "guess"), { ...right, metadata: { ...right.metadata, namespace: "other" } })
    const spec = { image, pullPolicy: { backoffLimit: 1 } }
    const { apiVersion, kind } = ImagePullJob
    await story.job("wrong", { ...spec, pullSecrets: ["wrong"] })
    const metadata = { name: "right", namespace: "other" }
    await story.world.apply({ apiVersion, kind, metadata, spec: { ...spec, pullSecrets: ["right"] } })
    await story.until("wrong", "Completed", "1m")
    await story.world.until(
      "the other job is complete",
      async () => (await story.world.get(imagePullJobs, "right", "other")).status.completionTime,
      "1m",
    )
    expect(story.tagsOn("node-0")).toEqual([image])
    expect(JSON.stringify(await tagsOf(story, "node-0"))).not.toContain("sealedCredentials")
  })

  test("without a Secret the registry's refusal is the reason", async () => {
    const story = await privateStory({ nodes: 1 })
    story.push(image)
    await story.job("app", { image, pullPolicy: { backoffLimit: 0 } })
    await story.until("app", "BackoffLimitExceeded")
    expect((await story.statusOf("app")).failedNodes).toMatchObject([{ reason: "Denied" }])
  })

  test("a Secret that is missing, or of another type, is named within a second, and the job goes on when it is right", async () => {
    const story = await privateStory({ nodes: 1 })
    story.push(image)
    await story.job("app", { image, pullSecrets: ["registry"] })
    await story.until("app", "SecretMissing", "1s")
    await story.world.apply({ ...secret("registry"), type: "Opaque" })
    await story.until("app", "SecretInvalid")
    await story.world.client.delete(secrets, { name: "registry", namespace: "default" })
    await story.world.apply(secret("registry"))
    await story.until("app", "Completed")
  })

  test("a grant has the Secrets of its namespace's jobs read again, and no others", async () => {
    const story = await privateStory({ nodes: 1 })
    const read: string[] = []
    const listen: Fault = next => ({
      ...next,
      send(request, ...rest) {
        if (request.path.includes("/secrets/")) read.push(request.path.split("/")[4]!)
        return next.send(request, ...rest)
      },
    })
    await story.manager.stop()
    story.runManager({ faults: [listen] })
    const { apiVersion, kind } = ImagePullJob
    for (const namespace of ["shop", "lab"]) {
      await story.world.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } })
      const spec = { image, pullSecrets: ["registry"] }
      await story.world.apply({ apiVersion, kind, metadata: { name: "app", namespace }, spec })
    }
    await story.world.until("both are read", () => new Set(read).size === 2)
    const afterGrant = async (grant: Json) => {
      read.length = 0
      const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "aim-target" }
      await story.world.apply({ apiVersion: "rbac.authorization.k8s.io/v1", roleRef, ...grant })
      await story.world.advance("1s")
      return [...read].sort()
    }
    const name = "aim-target"
    expect(await afterGrant({ kind: "RoleBinding", metadata: { name, namespace: "shop" } })).toEqual(["shop"])
    expect(await afterGrant({ kind: "ClusterRoleBinding", metadata: { name } })).toEqual(["lab", "shop"])
  })

  test("an agent that starts anew gets the credentials sealed to its new key", async () => {
    const story = await privateStory({ nodes: 1 })
    story.push(image, { takesMs: 30_000 })
    await story.world.apply(secret("registry"))
    await story.job("app", { image, pullSecrets: ["registry"] })
    await story.world.until("the pull began", () => story.underWay("node-0") === 1)
    story.agents.get("node-0")!.die()
    await story.world.advance("1s")
    story.runAgent("node-0")
    await story.until("app", "Completed")
  })
})

describe("S16: how much at once", () => {
  test("no more pulls at one registry than allowed, over all jobs and nodes", async () => {
    const story = await pullStory({ nodes: 8, pullsPerRegistry: 3 })
    for (const each of [image, other]) story.push(each, { takesMs: 4000 })
    await story.job("app", { image, parallelism: 8 })
    await story.job("web", { image: other, parallelism: 8 })
    await story.until("app", "Completed", "30m")
    await story.until("web", "Completed", "30m")
    expect(story.most()).toBe(3)
  })

  test("no more nodes of one job than its parallelism, as a share", async () => {
    const story = await pullStory({ nodes: 8 })
    story.push(image, { takesMs: 4000 })
    await story.job("app", { image, parallelism: "25%" })
    await story.until("app", "Completed", "30m")
    expect(story.most()).toBe(2)
  })

  test("no more pulls on one node than two", async () => {
    const story = await pullStory({ nodes: 1 })
    for (let index = 0; index < 6; index++) {
      story.push(`registry.example.com/a${index}:1`, { takesMs: 3000 })
      await story.job(`a${index}`, { image: `registry.example.com/a${index}:1` })
    }
    for (let index = 0; index < 6; index++) await story.until(`a${index}`, "Completed")
    expect(story.most("node-0")).toBe(2)
  })

  test("a registry that refuses pulls gets fewer, and the job ends well when it serves again", async () => {
    const story = await pullStory({ nodes: 4, pullsPerRegistry: 4 })
    story.push(image, { takesMs: 1000 })
    story.registries.setFault(host, { kind: "status", status: 429 })
    await story.job("app", { image, parallelism: 4, pullPolicy: { backoffLimit: 20 } })
    await story.world.advance("20s")
    expect((await toldOf(story, "node-0"))[0]).toMatchObject({ phase: "Waiting", reason: "RateLimited" })
    story.registries.setFault(host, undefined)
    await story.until("app", "Completed", "30m")
  })
})

describe("which nodes", () => {
  test("a job that never ends covers nodes that join later, and a replaced node of the same name", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    await story.job("app", { image, completionPolicy: { type: "Never" } })
    await story.until("app", "Present")
    await story.addNode("node-9")
    await story.world.until("two nodes have it", async () => (await story.statusOf("app")).succeeded === 2)

    await story.removeNode("node-9")
    await story.addNode("node-9")
    await story.world.until("the new node has it", () => story.tagsOn("node-9").includes(image))
    await story.until("app", "Present")
  })

  test("a pod selector means the nodes where such pods of the namespace run", async () => {
    const story = await pullStory({ nodes: 3 })
    story.push(image)
    const pod = (name: string, namespace: string, app: string, nodeName: string): Json => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace, labels: { app } },
      spec: { nodeName, containers: [{ name: "app", image: "a:1" }] },
    })
    await story.world.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } })
    await story.world.apply(pod("a", "default", "web", "node-1"), pod("b", "default", "db", "node-0"))
    await story.world.apply(pod("c", "other", "web", "node-2"))
    await story.job("app", { image, podSelector: { matchLabels: { app: "web" } } })
    await story.until("app", "Completed")
    expect([...story.agents.keys()].filter(node => story.tagsOn(node).includes(image))).toEqual(["node-1"])
    expect(await story.world.list(pods)).toHaveLength(3) // S18: no pod was touched
  })

  test("a job for a pod selector begins when the first such pod runs", async () => {
    const story = await pullStory({ nodes: 2 })
    story.push(image)
    await story.job("app", { image, podSelector: { matchLabels: { app: "web" } } })
    await story.until("app", "NoNodes")
    await story.world.apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a", namespace: "default", labels: { app: "web" } },
      spec: { nodeName: "node-1", containers: [{ name: "app", image: "a:1" }] },
    })
    await story.until("app", "Completed")
  })

  test("nodes by labels, and by name: an unknown name is told and the others get the image", async () => {
    const story = await pullStory({ nodes: 2 })
    story.push(image)
    await story.addNode("gpu-1", { labels: { gpu: "yes" } })
    await story.job("labels", { image, selector: { matchLabels: { gpu: "yes" } } })
    await story.until("labels", "Completed")
    expect(story.tagsOn("node-0")).toEqual([])
    await story.job("names", { image, selector: { names: ["node-0", "nod-1"] } })
    await story.until("names", "NodeUnknown", "1s")
    expect(await story.statusOf("names")).toMatchObject({ message: expect.stringContaining("nod-1") })
    await story.world.until("node-0 has it", async () => (await story.statusOf("names")).succeeded === 1)
    await story.addNode("nod-1")
    await story.until("names", "Completed")
  })

  test("a node that is not ready is given the image when it is", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    await story.addNode("node-9")
    const { runtime } = story.world.cluster.node("node-9")!
    runtime.hang()
    const readiness = async () =>
      (await story.world.get(nodes, "node-9")).status.conditions.find(({ type }: Json) => type === "Ready").status
    await story.world.until("its kubelet reports it", async () => (await readiness()) === "False", "1m")
    await story.job("app", { image })
    await story.until("app", "NodeNotReady")
    runtime.revive()
    await story.until("app", "Completed")
    expect(story.tagsOn("node-9")).toEqual([image])
  })

  test("a node without an agent counts as failed with that word after a minute, and its request is taken back", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    await story.addNode("node-9", { agent: false })
    await story.job("app", { image, parallelism: 2 })
    await story.until("app", "BackoffLimitExceeded", "2m")
    expect((await story.statusOf("app")).failedNodes).toMatchObject([{ name: "node-9", reason: "AgentMissing" }])
    await story.world.until("its request is gone", async () => (await tagsOf(story, "node-9")).length === 0)
  })

  test("a job that never ends gives the image to a node whose agent comes late", async () => {
    const story = await pullStory({ nodes: 0 })
    story.push(image)
    await story.addNode("node-9", { agent: false })
    await story.job("app", { image, completionPolicy: { type: "Never" } })
    await story.until("app", "BackoffLimitExceeded", "2m")
    story.runAgent("node-9")
    await story.until("app", "Present")
  })
})

describe("the life of a job", () => {
  test("paused by parallelism 0, and on again by an edit", async () => {
    const story = await pullStory({ nodes: 2 })
    story.push(image)
    await story.job("app", { image, parallelism: 0 })
    await story.until("app", "Paused")
    await story.job("app", { image, parallelism: 1 })
    await story.until("app", "Completed")
  })

  test("ended by its deadline: what is there stays, what waits is taken back, and a longer deadline lets it go on", async () => {
    const story = await pullStory({ nodes: 3 })
    story.push(image, { takesMs: 40_000 })
    const policy = { pullPolicy: { timeoutSeconds: 60 }, completionPolicy: { activeDeadlineSeconds: 60 } }
    await story.job("app", { image, ...policy })
    await story.until("app", "DeadlineExceeded")
    expect(await story.statusOf("app")).toMatchObject({ succeeded: 1, active: 0, completionTime: expect.any(String) })
    await story.world.until("no pull is under way", () => story.underWay() === 0, "5s")
    await story.job("app", { image, ...policy, completionPolicy: { activeDeadlineSeconds: 600 } })
    await story.until("app", "Completed")
    expect(await story.statusOf("app")).toMatchObject({ succeeded: 3 })
  })

  test("another image during the run: the first one is given up", async () => {
    const story = await pullStory({ nodes: 2 })
    story.push(image, { takesMs: 500_000 })
    story.push(other)
    await story.job("app", { image, parallelism: 2 })
    await story.world.until("the pulls began", () => story.underWay() === 2)
    await story.job("app", { image: other, parallelism: 2 })
    await story.until("app", "Completed")
    expect(story.underWay()).toBe(0)
    for (const node of story.agents.keys()) expect(story.tagsOn(node)).toEqual([other])
  })

  test("a deleted job ends its pulls", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image, { takesMs: 500_000 })
    await story.job("app", { image })
    await story.world.until("the pull began", () => story.underWay("node-0") === 1)
    await story.world.client.delete(imagePullJobs, { name: "app", namespace: "default" })
    await story.world.until("the pull ended", () => story.underWay("node-0") === 0, "5s")
    expect(await tagsOf(story, "node-0")).toEqual([])
  })

  test("an entry that was written by hand is removed by its time to live, whatever the agent's clock says", async () => {
    const story = await pullStory({ nodes: 0 })
    await story.addNode("node-0", { agent: false })
    story.runAgent("node-0", { clockAheadMs: -3_600_000 })
    await story.world.until("its NodeImage", async () => (await story.world.list(nodeImages)).length === 1)
    story.push(image, { takesMs: 20_000 })
    story.push(other)
    const entry = (tag: string, ttlSecondsAfterFinished?: number) => ({
      tags: [{ tag, ...(ttlSecondsAfterFinished !== undefined && { pullPolicy: { ttlSecondsAfterFinished } }) }],
    })
    const images = { [`${host}/team/app`]: entry("v2", 60), [`${host}/team/web`]: entry("v1") }
    await story.world.patch(nodeImages, "node-0", { spec: { images } })
    const phases = async () => (await toldOf(story, "node-0")).map(({ tag, phase }) => `${tag} ${phase}`)
    await story.world.until("both are there", async () => (await phases()).join() === "v2 Succeeded,v1 Succeeded", "1m")
    await story.world.advance("58s")
    expect((await tagsOf(story, "node-0")).map(({ tag }) => tag)).toEqual(["v2", "v1"])
    const { revision } = story.world.cluster.store
    await story.world.advance("4s")
    expect((await tagsOf(story, "node-0")).map(({ tag }) => tag)).toEqual(["v1"])
    expect(story.tagsOn("node-0")).toEqual([image, other])
    await story.world.advance("1h")
    // One write removes the entry, and the agent's answer is the second.
    expect(writesTo(story, "nodeimages", revision).length).toBeLessThanOrEqual(2)
  })

  test("deleted by its time to live", async () => {
    const story = await pullStory({ nodes: 1 })
    story.push(image)
    await story.job("app", { image, completionPolicy: { ttlSecondsAfterFinished: 30 } })
    await story.until("app", "Completed")
    await story.world.until("it is gone", async () => (await story.world.list(imagePullJobs)).length === 0, "1m")
  })

  test("a manager and an agent that are killed on the way are followed by others that go on", async () => {
    const story = await pullStory({ nodes: 4 })
    story.push(image, { takesMs: 8000 })
    await story.job("app", { image, parallelism: 2 })
    await story.world.until("two pulls are under way", () => story.underWay() === 2)
    story.manager.die()
    story.agents.get("node-0")!.die()
    await story.world.advance("20s")
    story.runAgent("node-0")
    story.runManager()
    await story.until("app", "Completed", "30m")
    expect(story.most()).toBe(2)
  })
})

describe("what it costs", () => {
  test("two writes a node, one for each wave, and two", async () => {
    const story = await pullStory({ nodes: 20 })
    story.push(image, { takesMs: 2000 })
    await story.world.advance("1m")
    const { revision } = story.world.cluster.store
    await story.job("app", { image, parallelism: 5 })
    await story.until("app", "Completed")
    await story.world.advance("5m")
    expect(writesTo(story, "nodeimages", revision)).toHaveLength(40)
    expect(writesTo(story, "imagepulljobs", revision).length - 1).toBeLessThanOrEqual(20 / 5 + 2)
  })

  test("a wave that takes long costs no more reports than a short one, as long as its pulls are short", async () => {
    const story = await pullStory({ nodes: 120, pullsPerRegistry: 1000 })
    story.push(image)
    await story.world.advance("1m")
    // The manager gives the image to sixteen nodes at a time: a wave of forty takes nine seconds.
    story.manager.die()
    const { clock } = story.world
    const slow = ({ method, path }: { method: string; path: string }) => method === "PUT" && /nodeimages/.test(path)
    story.runManager({ faults: [arriveLate(slow, clock, 3000)] })
    await story.world.advance("1m")
    const { revision } = story.world.cluster.store
    const startedAt = clock.now()
    await story.job("app", { image, parallelism: 40 })
    await story.until("app", "Completed", "10m")
    expect(clock.now() - startedAt).toBeGreaterThan(20_000)
    expect(writesTo(story, "nodeimages", revision)).toHaveLength(240)
    expect(writesTo(story, "imagepulljobs", revision).length - 1).toBeLessThanOrEqual(120 / 40 + 1)
  })

  test("the status of a node is written at most every five seconds", async () => {
    const story = await pullStory({ nodes: 1 })
    for (let index = 0; index < 20; index++) {
      story.push(`registry.example.com/a${index}:1`, { takesMs: 700 })
      await story.job(`a${index}`, { image: `registry.example.com/a${index}:1` })
    }
    for (let index = 0; index < 20; index++) await story.until(`a${index}`, "Completed")
    const times = story.world.history
      .filter(({ place, object }) => place.includes("nodeimages") && (object as Json).status?.imageStatuses)
      .map(({ at, object }) => ({ at, status: JSON.stringify((object as Json).status) }))
      .filter((each, index, all) => each.status !== all[index - 1]?.status)
      .map(({ at }) => at)
    const gaps = times.slice(1).map((at, index) => at - times[index]!)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5000)
  })

  test("jobs that begin together on a node share its write", async () => {
    const story = await pullStory({ nodes: 3, pullsPerRegistry: 100 })
    await story.world.advance("1m")
    const { revision } = story.world.cluster.store
    for (let index = 0; index < 10; index++) {
      story.push(`registry.example.com/a${index}:1`)
    }
    const manifests = Array.from({ length: 10 }, (_, index) =>
      story.job(`a${index}`, { image: `registry.example.com/a${index}:1`, parallelism: 3 }),
    )
    await Promise.all(manifests)
    for (let index = 0; index < 10; index++) await story.until(`a${index}`, "Completed")
    const specs = writesTo(story, "nodeimages", revision).filter(
      ({ before, object }) => JSON.stringify((before as Json)?.spec) !== JSON.stringify((object as Json).spec),
    )
    expect(specs).toHaveLength(3)
  })

  test("quiet, nothing is written", async () => {
    const story = await pullStory({ nodes: 2 })
    story.push(image)
    await story.job("app", { image, completionPolicy: { type: "Never" } })
    await story.until("app", "Present")
    await story.world.advance("1m")
    const { revision } = story.world.cluster.store
    await story.world.advance("6h")
    expect(writesTo(story, "nodeimages", revision)).toEqual([])
    expect(writesTo(story, "imagepulljobs", revision)).toEqual([])
  })
})
