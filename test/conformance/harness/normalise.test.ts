import { expect, test } from "vitest"
import { difference } from "./diff.ts"
import { normalise } from "./normalise.ts"
import type { Case, Json } from "./script.ts"

const each: Case = {
  name: "",
  area: "registry",
  run: async () => {},
  withoutManagedFields: false,
  withoutStatus: false,
  withHashes: false,
  runsPods: false,
}
const lines = (...answers: Json[]) =>
  normalise(
    { entries: answers.map(answer => ({ step: "asked", answer })) },
    { words: [["127.0.0.1:5000", "REGISTRY"]] },
    each,
    "conf-007a",
  )
    .filter(line => !line.startsWith("»"))
    .map(line => line.trim())

const uid = (digit: number) => `${digit}1111111-2222-3333-4444-555555555555`

test("of two versions of one object the later has the higher number, whatever others wrote between", () => {
  const object = (resourceVersion: string, which = 1) => ({ metadata: { uid: uid(which), resourceVersion } })
  expect(lines(object("100"), object("250"), object("170", 2), object("100"))).toEqual([
    'metadata.resourceVersion = "RV1"',
    'metadata.uid = "UID1"',
    'metadata.resourceVersion = "RV2"',
    'metadata.uid = "UID1"',
    'metadata.resourceVersion = "RV1"',
    'metadata.uid = "UID2"',
    'metadata.resourceVersion = "RV1"',
    'metadata.uid = "UID1"',
  ])
})

test("the version of a list says nothing", () => {
  expect(lines({ metadata: { resourceVersion: "17" } })).toEqual(['metadata.resourceVersion = "RV"'])
})

test("what is invented is replaced, and words are not", () => {
  expect(
    lines({ name: "web-7d9f8c6b5-x2x4z", text: "first-class sidecar-crypto web-first", image: "127.0.0.1:5000/web:1" }),
  ).toEqual(['image = "REGISTRY/web:1"', 'name = "web-HASH1-XXXXX"', 'text = "first-class sidecar-crypto web-first"'])
  expect(lines({ at: "2026-11-15T04:01:00Z", micro: "2026-11-15T04:01:00.123456Z", namespace: "conf-007a" })).toEqual([
    'at = "TIME"',
    'micro = "TIME.FRACTION"',
    'namespace = "CASE"',
  ])
})

test("paths that the server lists in any order are sorted", () => {
  const refusal = (paths: string) => lines({ message: `may not mutate atomic arrays, maps or structs: ${paths}` })
  expect(refusal(".spec.template.args, .spec.selector")).toEqual(refusal(".spec.selector, .spec.template.args"))
})

test("ages are replaced where they are ages", () => {
  const output = { code: 0, stdout: "NAME   READY   AGE\nweb    2/2     3m12s\n", stderr: "" }
  expect(lines(output)).toEqual(["code = 0", 'stderr = ""', "stdout:", "| NAME  READY  AGE", "| web  2/2  AGE"])
  expect(lines({ cells: ["web", "5s"], cpu: "5m" })).toEqual(['cells[0] = "web"', 'cells[1] = "AGE"', 'cpu = "5m"'])
})

test("a difference is reported with its step", () => {
  const first = ["» one", "  a = 1", "» two", "  b = 1", "  c = 1", "  d = 1"]
  const second = ["» one", "  a = 1", "» two", "  b = 1", "  c = 2", "  d = 1"]
  expect(difference(first, second)).toEqual(["  » two", "    b = 1", "-   c = 1", "+   c = 2", "    d = 1"])
  expect(difference(first, first)).toEqual([])
})
