import { expect, test } from "vitest"
import { parse as parseYaml } from "yaml"
import { operation, serviceImage, testCluster, testWorld, type Words } from "../test-world.ts"
import { run } from "./history.ts"

const v1 = "registry.example.com/team/dicom:v1"
const past: Words = {
  status: {
    operation: operation("g4", "InProgress", { failed: 1 }),
    history: [
      operation("g3", "RolledBack", {
        startedAt: "2026-01-01T00:01:00Z",
        endedAt: "2026-01-01T00:03:30Z",
        cause: "requested by aim rollback",
        images: { "": `app@sha256:${"0123456789abcdef".repeat(4)}` },
      }),
      operation("g2", "Superseded", { images: {}, startedAt: "2025-12-30T00:10:00Z" }),
      operation("g1", "Complete", {
        images: { "": v1, earlyAccess: v1 },
        startedAt: "2025-12-29T00:10:00Z",
        endedAt: "2025-12-29T01:10:00Z",
        upToDate: 12,
      }),
    ],
  },
}
const ask = async (options: object, given = past) => {
  const { world, said } = testWorld(testCluster(serviceImage("web", given)))
  return { ...(await run({ arguments: ["si/web"], options: { ...options } }, world)), said }
}

test("is a table, the present one first", async () => {
  expect(
    (await ask({})).text,
  ).toBe(`OPERATION   IMAGES                           STARTED     TOOK    UP TO DATE   FAILED   OUTCOME
g4          dicom:v2, earlyAccess=dicom:v3   4m12s ago   4m12s   3/12         1        InProgress
g3          app@sha256:01234567              9m ago      2m30s   3/12         0        RolledBack
g2          -                                2d ago      -       3/12         0        Superseded
g1          dicom:v1                         3d ago      1h      12/12        0        Complete
`)
})
test("shows how long the current one took, also when it ended with a rollback", async () => {
  const conditions = [
    { type: "InProgress", status: "False", reason: "RolledBack", lastTransitionTime: "2026-01-01T00:07:00Z" },
  ]
  const g3 = operation("g3", "RolledBack", { startedAt: "2026-01-01T00:01:00Z" })
  expect((await ask({}, { status: { operation: g3, conditions } })).text).toMatch(/^g3 .* 6m +3\/12 .* RolledBack$/m)
})
test("-o wide has whole images and times", async () => {
  const { text } = await ask({ output: "wide" })
  expect(text).toContain("registry.example.com/dicom:v2, earlyAccess=registry.example.com/dicom:v3")
  expect(text).toContain("2025-12-29T00:10:00Z")
  expect(text).toContain("RolledBack   requested by aim rollback\n")
})
test("-o json and yaml are the operations as they are recorded", async () => {
  const ids = (list: { id: string }[]) => list.map(({ id }) => id)
  expect(ids(JSON.parse((await ask({ output: "json" })).text))).toEqual(["g4", "g3", "g2", "g1"])
  expect(ids(parseYaml((await ask({ output: "yaml" })).text))).toEqual(["g4", "g3", "g2", "g1"])
})
test("says that there was none, and that something was not looked at", async () => {
  expect(await ask({}, {})).toMatchObject({ text: "", exitCode: 0, said: ["si/web has had no operation yet."] })
  expect((await ask({}, { ...past, generation: 2, observed: 1 })).said[0]).toContain("generation 2 of si/web")
})
