import { classify } from "#core/image/pull-failure.ts"
import type { ImagePull } from "#runtime/cri/index.ts"
import { outcome, type Scene, type Script, until } from "../harness/script.ts"

const missingDigest = `sha256:${"0".repeat(64)}`

/** Notes how a pull ended, and what our reading of the message is. */
async function tryPull({ runtime, note }: Scene, what: string, pull: ImagePull) {
  const how = await outcome(runtime.pullImage(pull))
  note(what, "said" in how ? { ...how, means: classify("ErrImagePull", how.said) } : how)
}

export const images: Script[] = [
  {
    name: "one image under three references",
    async run(scene) {
      const { runtime, note, id } = scene
      const { reference, digest } = await scene.push("public", `three-${id}:v1`)
      const repository = reference.slice(0, -":v1".length)
      const references = [reference, `${repository}@${digest}`, `${reference}@${digest}`]
      note("before", await runtime.imageStatus(reference))
      for (const each of references) note(each, await runtime.pullImage({ reference: each }))
      const { sizeBytes, ...image } = (await runtime.imageStatus(reference)) ?? { sizeBytes: 0 }
      note("image", { ...image, isAbove1MB: sizeBytes > 1_000_000 })
      for (const each of [...references, "id" in image ? image.id : ""])
        note(`status of ${each}`, (await runtime.imageStatus(each))?.id)
      const listed = (await runtime.listImages()).filter(each => "id" in image && each.id === image.id)
      note("in the list", listed.length)
      note("pulled again", await runtime.pullImage({ reference }))
    },
  },
  {
    name: "a tag that moves",
    async run(scene) {
      const { runtime, note, id } = scene
      const { reference } = await scene.push("public", `moves-${id}:v1`)
      const first = await runtime.pullImage({ reference })
      await scene.push("public", `moves-${id}:v1`, { version: "other" })
      note("before a pull", (await runtime.imageStatus(reference))?.id === first.imageId)
      const second = await runtime.pullImage({ reference })
      note("another image", second.imageId !== first.imageId)
      const tags = async (imageId: string) => (await runtime.imageStatus(imageId))?.repoTags
      note("tags of the first", await tags(first.imageId))
      note("tags of the second", await tags(second.imageId))
    },
  },
  {
    name: "pulls that fail",
    async run(scene) {
      const repository = `${scene.host("public")}/fails-${scene.id}`
      await scene.push("public", `fails-${scene.id}:v1`)
      await tryPull(scene, "missing tag", { reference: `${repository}:v9` })
      await tryPull(scene, "missing digest", { reference: `${repository}@${missingDigest}` })
      await tryPull(scene, "missing repository", { reference: `${scene.host("public")}/none-${scene.id}:v1` })
      await tryPull(scene, "broken reference", { reference: `${repository}:V_ä` })
      await tryPull(scene, "host that refuses connections", { reference: "127.0.0.1:1/web:v1" })
      const { reference } = await scene.push("public", `foreign-${scene.id}:v1`, { onlyFor: "s390x" })
      await tryPull(scene, "for another architecture", { reference })
      scene.note("images of them", [...(await listed(scene, "fails-")), ...(await listed(scene, "foreign-"))])
    },
  },
  {
    name: "a private image, and to which host credentials are sent",
    async run(scene) {
      const { credentials } = scene
      const host = scene.host("private")
      const { reference } = await scene.push("private", `secret-${scene.id}:v1`)
      await tryPull(scene, "without credentials", { reference })
      const wrong = { host, ...credentials, password: "wrong" }
      await tryPull(scene, "with a wrong password", { reference, credentials: wrong })
      const elsewhere = { host: scene.host("public"), ...credentials }
      await tryPull(scene, "with the right ones for another host", { reference, credentials: elsewhere })
      scene.note("there before", (await scene.runtime.imageStatus(reference)) !== undefined)
      await tryPull(scene, "with the right ones", { reference, credentials: { host, ...credentials } })
      scene.note("there", (await scene.runtime.imageStatus(reference)) !== undefined)
    },
  },
  {
    name: "progress of a pull in bytes, and a pull whose caller is gone",
    async run(scene) {
      const { runtime, note } = scene
      const paddingBytes = 4_000_000
      const { reference } = await scene.push("private", `large-${scene.id}:v1`, { paddingBytes })
      const pull = { reference, credentials: { host: scene.host("private"), ...scene.credentials } }
      const large = async () =>
        (await runtime.pullProgress())?.find(
          ({ totalBytes }) => totalBytes > paddingBytes && totalBytes < 2 * paddingBytes,
        )
      const release = scene.holdLayers()
      const gone = new AbortController()
      const abandoned = runtime.pullImage(pull, { signal: gone.signal }).catch(() => {})
      const held = await until(scene, "half of the layer", async () => {
        const seen = await large()
        return seen && seen.doneBytes > paddingBytes / 4 && seen
      })
      note("transfer", { name: held.name.replace(/-sha256:.*/, "-DIGEST"), isWhole: held.doneBytes >= held.totalBytes })
      note("there during the pull", (await runtime.imageStatus(reference)) !== undefined)
      gone.abort(new Error("gone"))
      await abandoned
      release()
      note("there after the caller is gone", (await runtime.imageStatus(reference)) !== undefined)
      note("the next pull", await outcome(runtime.pullImage(pull)))
      note("transfers afterwards", await until(scene, "the end of transfers", async () => !(await large()) && "none"))
    },
  },
  {
    name: "a pull onto a full disk, and again when there is room",
    alone: true,
    async run(scene) {
      const { runtime, note } = scene
      const { reference } = await scene.push("public", `full-${scene.id}:v1`, { paddingBytes: 20_000_000 })
      const makeRoom = await scene.fillDisk()
      try {
        await tryPull(scene, "pull", { reference })
        note("there", (await runtime.imageStatus(reference)) !== undefined)
      } finally {
        await makeRoom()
      }
      note("pulled again", await outcome(runtime.pullImage({ reference })))
      note("there then", (await runtime.imageStatus(reference)) !== undefined)
    },
  },
  {
    name: "bytes of all images, some time after a pull",
    async run(scene) {
      const { runtime, note } = scene
      const paddingBytes = 20_000_000
      const { reference } = await scene.push("public", `padded-${scene.id}:v1`, { paddingBytes })
      const used = async () => (await runtime.imageFsInfo())?.usedBytes ?? 0
      const before = await used()
      await runtime.pullImage({ reference })
      await until(scene, "the bytes to show", async () => (await used()) >= before + paddingBytes)
      note("its bytes show", true)
    },
  },
]

async function listed({ runtime, id }: Scene, prefix: string): Promise<string[]> {
  const tags = (await runtime.listImages()).flatMap(({ repoTags }) => repoTags)
  return tags.filter(tag => tag.includes(`${prefix}${id}`))
}
