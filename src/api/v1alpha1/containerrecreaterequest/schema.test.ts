import { expect, test } from "vitest"
import { cases } from "#test/support/manifests/containerrecreaterequest.ts"
import { silent, unbounded } from "#test/support/manifests/schema.ts"
import { crdOf } from "../../crd.ts"
import { validate } from "../../validate.ts"
import { ContainerRecreateRequest, conditions, reasons } from "./index.ts"

for (const [name, { manifest, old, refused, warned }] of Object.entries(cases))
  test(name, () => {
    const { errors, warnings, object } = validate(ContainerRecreateRequest, manifest, { old })
    if (refused) {
      const { path, words } = refused
      expect(errors).toEqual([{ path, message: expect.stringContaining(words) }])
    } else {
      expect(errors).toEqual([])
      expect(ContainerRecreateRequest.spec.parse(object?.spec)).toEqual(object?.spec)
    }
    expect(warnings.map(warning => warning.path)).toEqual(warned ? [warned.path] : [])
    if (warned) expect(warnings[0]?.message).toContain(warned.words)
  })

test("without a strategy it is OpenKruise's", () => {
  const { object } = validate(ContainerRecreateRequest, cases["the smallest manifest"]!.manifest)
  expect(object?.spec.strategy).toEqual({
    failurePolicy: "Fail",
    orderedRecreate: false,
    forceRecreate: false,
    minStartedSeconds: 0,
  })
})

test("everything is bounded and described", () => {
  const { spec, status } = ContainerRecreateRequest.schema.properties!
  expect([...unbounded(spec!, "spec"), ...unbounded(status!, "status")]).toEqual([])
  expect([...silent(spec!, "spec"), ...silent(status!, "status")]).toEqual([])
})

test("an agent can watch the requests of its own node that are not complete", () =>
  expect(crdOf(ContainerRecreateRequest).spec.versions[0]?.selectableFields).toEqual([
    { jsonPath: ".status.nodeName" },
    { jsonPath: ".status.phase" },
  ]))

test("every condition gives only known reasons, and every reason is given", () => {
  const given = new Set<string>(Object.values(conditions).flatMap(condition => condition.reasons))
  expect([...given].filter(reason => !Object.hasOwn(reasons, reason))).toEqual([])
  expect(Object.keys(reasons).filter(reason => !given.has(reason))).toEqual([])
})
