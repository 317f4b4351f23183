import { expect, test } from "vitest"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createImageListPullJobController } from "#controllers/imagelistpulljob/controller.ts"
import { imageListPullJobs, imagePullJobs } from "#controllers/imagelistpulljob/resources.ts"
import { type PullStory, pullStory } from "#test/support/pull-story.ts"

const images = ["registry.example.com/a:1", "registry.example.com/b:1", "registry.example.com/c:1"]
const { apiVersion, kind } = ImageListPullJob

async function listStory(
  spec: Json,
): Promise<PullStory & { list(spec: Json): Promise<void>; says(reason: string): Promise<void> }> {
  const story = await pullStory({ nodes: 2 })
  for (const image of images) story.push(image, { takesMs: 1000 })
  story.world.run([createImageListPullJobController()])
  const list = (next: Json) =>
    story.world.apply({ apiVersion, kind, metadata: { name: "apps", namespace: "default" }, spec: next })
  const statusOf = async () => (await story.world.get(imageListPullJobs, "apps", "default")).status
  const says = (reason: string) =>
    story.world.until(`the list says ${reason}`, async () => {
      const ready = (await statusOf())?.conditions?.find((each: Json) => each.type === "Ready")
      return ready?.reason === reason
    })
  await list(spec)
  return Object.assign(story, { list, says })
}

const statusOf = async ({ world }: PullStory) => (await world.get(imageListPullJobs, "apps", "default")).status
const imagesIn = async ({ world }: PullStory) =>
  (await world.list(imagePullJobs)).map(({ spec }) => (spec as Json).image).sort()

test("one job for each image, and the list ends when all have ended", async () => {
  const story = await listStory({ images, parallelism: 2 })
  await story.says("Completed")
  expect(await imagesIn(story)).toEqual(images)
  expect(await statusOf(story)).toMatchObject({ desired: 3, succeeded: 3, completed: 3, active: 0 })
  for (const node of story.agents.keys()) expect(story.tagsOn(node)).toEqual(images)
})

test("an image that fails is named with its job and why; the others are there", async () => {
  const story = await listStory({ images: [...images, "registry.example.com/none:1"], pullPolicy: { backoffLimit: 0 } })
  await story.says("ImagesFailed")
  expect(await statusOf(story)).toMatchObject({
    succeeded: 3,
    failedImageStatuses: [
      {
        name: "registry.example.com/none:1",
        imagePullJob: expect.stringMatching(/^apps-[0-9a-f]{10}$/),
        message: expect.stringContaining("BackoffLimitExceeded"),
      },
    ],
  })
})

test("an edit of the list changes, adds and removes jobs", async () => {
  const story = await listStory({ images: images.slice(0, 2), parallelism: 0 })
  await story.world.until("two jobs", async () => (await imagesIn(story)).length === 2)
  await story.list({ images: images.slice(1), parallelism: 2, priority: 5 })
  await story.says("Completed")
  expect(await imagesIn(story)).toEqual(images.slice(1))
  for (const { spec } of await story.world.list(imagePullJobs))
    expect(spec).toMatchObject({ parallelism: 2, priority: 5 })
})

test("a job of the same name that belongs to something else is left alone, and said", async () => {
  const story = await listStory({ images: images.slice(0, 1), parallelism: 0 })
  await story.world.until("one job", async () => (await imagesIn(story)).length === 1)
  const [child] = await story.world.list(imagePullJobs)
  await story.world.client.delete(imageListPullJobs, { name: "apps", namespace: "default" })
  await story.world.patch(imagePullJobs, child!.metadata.name, { metadata: { ownerReferences: null } }, "default")
  await story.list({ images: images.slice(0, 1) })
  await story.says("NameTaken")
})

test("the time to live of a list takes its jobs with it", async () => {
  const story = await listStory({ images, parallelism: 2, completionPolicy: { ttlSecondsAfterFinished: 10 } })
  await story.says("Completed")
  await story.world.until("the list is gone", async () => (await story.world.list(imageListPullJobs)).length === 0)
})
