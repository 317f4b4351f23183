import { expect, test } from "vitest"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createImageListPullJobController } from "#controllers/imagelistpulljob/controller.ts"
import { nodeImages } from "#controllers/imagepulljob/resources.ts"
import { type PullStory, pullStory } from "#test/support/pull-story.ts"
import { printed, typeInto } from "#test/support/typed.ts"

// get, why, wait and dump of ImagePullJobs, ImageListPullJobs and NodeImages, on a simulated cluster with agents.

const image = "registry.example.com/shop/web:v2"

const listOf = ({ world }: PullStory, name: string, spec: Json) => {
  const { apiVersion, kind } = ImageListPullJob
  world.run([createImageListPullJobController()])
  return world.apply({ apiVersion, kind, metadata: { name, namespace: "default" }, spec })
}

test("wait returns when every node has the image, and get shows how many have it", async () => {
  const story = await pullStory({ nodes: 3 })
  story.push(image)
  await story.job("web", { image, parallelism: "100%" })
  const wait = await typeInto(story.world, "aim wait ipj/web -n default --timeout 5m")
  expect(await wait.outcome()).toEqual({
    text: "ipj/web -n default Ready (Completed: 3 nodes have the image)\n",
    exitCode: 0,
  })
  expect(await printed(story.world, "aim get imagepulljobs -n default")).toMatch(
    /^NAME +STATE +REASON +NODES +FAILED +FETCHED +IMAGE +AGE\nweb +Ready +Completed +3\/3 +0 +registry.example.com\/shop\/web:v2 +\d+s\n$/,
  )
  expect(await printed(story.world, "aim get nimg")).toMatch(
    /^NAME +STATE +REASON +IMAGES +PULLING +FAILED +AGE\nnode-0 +Ready +Present +1\/1 +0 +0 +\d+s\n/,
  )
  expect(await printed(story.world, "aim why ipj/web")).toMatch(
    /^Completed {2}since .*\n3 nodes have the image. Every selected node has the image. The job has ended.\n$/,
  )
})

test("why names the nodes that failed by their reason, with the words of a runtime", async () => {
  const story = await pullStory({ nodes: 2 })
  await story.job("typo", { image, parallelism: 2, pullPolicy: { backoffLimit: 0 } })
  const wait = await typeInto(story.world, "aim wait ipj/typo -n default")
  expect(await wait.outcome()).toHaveProperty(
    "error.message",
    expect.stringContaining("ipj/typo -n default Stalled (BackoffLimitExceeded: 0 of 2 nodes have the image; 2 nodes"),
  )
  expect(await printed(story.world, "aim why ipj/typo")).toMatch(
    /\nNotFound on node-0, node-1. The registry does not have the image. From node-0: .*web:v2: not found\n$/,
  )
  expect(await printed(story.world, "aim why nimg/node-1")).toMatch(
    /^PullFailed .*\n1 image could not be pulled. .*\n\S+web:v2 \(for default\/typo\): failed after 1 attempt: NotFound: .*not found.\n$/,
  )
})

test("why of a job at work names the nodes that pull, and those whose agent has not answered", async () => {
  const story = await pullStory({ nodes: 1 })
  await story.addNode("deaf", { agent: false })
  await story.world.until("its NodeImage", async () => (await story.world.list(nodeImages)).length === 2)
  story.push(image, { takesMs: 30_000 })
  await story.job("web", { image, parallelism: 2 })
  await story.until("web", "Pulling")
  await story.world.advance("10s")
  const why = await printed(story.world, "aim why ipj/web")
  const fetched = String.raw`\d+ MiB of 29 MiB fetched`
  expect(why).toMatch(new RegExp(`^Pulling .*\n0 of 2 nodes have the image; ${fetched} on 1 node. Nodes are pulling`))
  expect(why).toMatch(new RegExp(`\nnode-0: being pulled, ${fetched} \\(\\d+ %\\).\n`))
  expect(await printed(story.world, "aim get ipj -n default")).toMatch(/ FETCHED .*\n.* 0\/2 .* \d+ MiB of 29 MiB /)
  expect(why).toMatch(/\ndeaf: the agent has not answered yet.\n/)
  const plan = await printed(story.world, "aim plan ipj/web -n default")
  expect(plan).toMatch(/^ipj\/web -n default {2}Pulling\n {2}0 of 2 nodes have the image;.* fetched on 1 node\n/)
  expect(plan).toMatch(/\n {2}deaf: the agent has not answered yet.\n/)
  expect(plan).not.toContain("nothing to do")
  expect(await printed(story.world, "aim why nimg/deaf")).toMatch(
    /^NotSeenYet\nthe agent of deaf has not answered yet: is aim agent running there\?\n\S+web:v2 \(for default\/web\): the agent/,
  )
})

test("a list is stalled while one of its jobs waits for a person, and goes on by itself", async () => {
  const story = await pullStory({ nodes: 1 })
  story.push(image)
  await listOf(story, "apps", { images: [image], pullSecrets: ["quay"] })
  const wait = await typeInto(story.world, "aim wait ilpj/apps -n default")
  const missing = "SecretMissing: Secret quay does not exist in default: create it, or correct pullSecrets"
  expect(await wait.outcome()).toHaveProperty(
    "error.message",
    `ilpj/apps -n default Stalled (ImagesStalled: 0 of 1 image on every node; ${image}: ${missing})`,
  )
  const why = await printed(story.world, "aim why ilpj/apps")
  expect(why).toMatch(/\nregistry.example.com\/shop\/web:v2 \(ipj\/apps-[0-9a-f]{10}\): SecretMissing: /)
  await story.world.apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "quay", namespace: "default" },
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": Buffer.from(JSON.stringify({ auths: {} })).toString("base64") },
  })
  await story.world.until("the list is there", async () =>
    /^Completed/.test(await printed(story.world, "aim why ilpj/apps")),
  )
  expect(await printed(story.world, "aim get ilpj -A")).toMatch(
    /^NAMESPACE +NAME +STATE +REASON +IMAGES +AGE\ndefault +apps +Ready +Completed +1\/1 +\d+s\n$/,
  )
})

test("a dump has NodeImages without their sealed credentials", async () => {
  const story = await pullStory({ nodes: 1 })
  const sealed = [{ job: "uid-1", key: "AAAA", box: "bm90LWZvci1hLWR1bXA" }]
  await story.world.patch(nodeImages, "node-0", {
    spec: { images: { "quay.io/team/app": { tags: [{ tag: "v1", sealedCredentials: sealed }] } } },
  })
  const dump = await typeInto(story.world, "aim dump")
  await dump.atOnce()
  expect(dump.written.join("")).toContain("quay.io/team/app")
  expect(dump.written.join("")).not.toMatch(/bm90LWZvci1hLWR1bXA|sealedCredentials/)
})
