import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { Json } from "../../object.ts"
import { cases, podOf, type RecordedCase } from "../node/recorded/cases.ts"
import { testWorld } from "../node/test-world.ts"
import { containerHash } from "./labels.ts"

const { cases: recorded, hashed }: Json = JSON.parse(
  readFileSync(join(import.meta.dirname, "../node/recorded/recorded.json"), "utf8"),
)
const hash = "io.kubernetes.container.hash"

test("containers carry what the real kubelet writes on them", async () => {
  const world = testWorld()
  const name = "cri-stop-once"
  const { spec } = podOf(cases.find(each => each.name === name) as RecordedCase)
  const { uid } = world.create(name, spec).metadata
  await world.advance("10s")
  const listed = await world.cluster.node("node-0")?.runtime.connect().listContainers()
  const written = listed?.map(({ name, labels, annotations }) => {
    // The hash of the recording is that of the image's name there.
    const real = recorded["cri-stop-once"].containers.find((each: Json) => each.name === name).annotations[hash]
    const labelled = { ...labels, "io.kubernetes.pod.uid": labels["io.kubernetes.pod.uid"]?.replace(uid, "UID") }
    return { name, labels: labelled, annotations: { ...annotations, [hash]: real } }
  })
  expect(written).toEqual(recorded[name].containers)
})

test("the hash of a container is the kubelet's", () => expect(containerHash(hashed)).toBe(hashed.hash))
