import { expect, test } from "vitest"
import { checksumOf } from "./checksum.ts"

const template = (spec: object, labels = {}) => ({ metadata: { labels: { app: "web", ...labels } }, spec }) as never

test("fields have no order, and the label that finds the pods of a ReplicaSet is no part of a template", () => {
  const one = template({ containers: [{ name: "web", image: "web:1" }], dnsPolicy: "Default" })
  const same = template(
    { dnsPolicy: "Default", containers: [{ image: "web:1", name: "web" }] },
    { "pod-template-hash": "5c9" },
  )
  expect(checksumOf(same)).toBe(checksumOf(one))
})

test("a template has the same checksum in every version of the controller", () => {
  expect(checksumOf(template({ containers: [{ name: "web", image: "web:1" }] }))).toBe("3c05f347835a8751")
})

test("another image, label or order of containers is another template", () => {
  const containers = [{ name: "a" }, { name: "b" }]
  const all = [
    template({ containers }),
    template({ containers: containers.toReversed() }),
    template({ containers }, { tier: "x" }),
    template({ containers: [{ name: "a", image: "web:2" }, { name: "b" }] }),
  ]
  expect(new Set(all.map(checksumOf)).size).toBe(all.length)
})
