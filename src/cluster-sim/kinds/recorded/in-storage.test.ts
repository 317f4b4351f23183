import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createCluster } from "../../cluster.ts"
import { definitions, objects, widget } from "../../crd/recorded/cases.ts"
import type { Json } from "../../object.ts"
import type { StatusError } from "../../status-error.ts"
import { creates } from "./cases.ts"
import { normalised } from "./normalised.ts"

/** Sends what was recorded through the whole storage: what is stored is what a real server stores, to the letter. */
const read = (path: string): Json[] =>
  readFileSync(`${import.meta.dirname}/${path}`, "utf8")
    .trim()
    .split("\n")
    .map(line => JSON.parse(line))

const { storage } = createCluster({ clock: virtualClock(Date.parse("2026-01-02T03:04:05Z")) })
storage.create(storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")!, structuredClone(widget))
const make = (object: Json) =>
  normalised(
    storage.create(storage.kind(object.apiVersion, object.kind)!, JSON.parse(JSON.stringify(object)), {
      dryRun: true,
    }),
  )

/** What a real server adds and ours does not: see withoutAccepted in recorded.test.ts. */
const accepted = ["claim", "node"]

for (const { create: name, body } of read("answers.jsonl").filter(({ create, code }) => create && code === 201))
  if (!accepted.includes(name)) test(`create: ${name}`, () => expect(make(creates[name])).toEqual(body))

for (const { define: name, body } of read("../../crd/recorded/answers.jsonl").filter(
  each => each.define && each.code === 201,
))
  test(`define: ${name}`, () => {
    const other = { ...definitions[name], metadata: { name: "gadgets.shop.test" } }
    other.spec = { ...other.spec, names: { ...other.spec.names, plural: "gadgets" } }
    const renamed = JSON.parse(JSON.stringify(body).replaceAll("widgets", "gadgets"))
    expect(make(other)).toEqual(renamed)
  })

for (const { create: name, body } of read("../../crd/recorded/answers.jsonl").filter(
  each => each.create && each.code === 201,
))
  test(`object: ${name}`, () => expect(make(objects[name])).toEqual(body))

const refused = (answers: Json[], sent: Record<string, Json>, by: string) => {
  for (const { [by]: name, code, body } of answers.filter(each => each[by] && each.code >= 400))
    if (!tooLenient.includes(name))
      test(`refused: ${name}`, () => {
        const fields = (causes: Json[] = []) => causes.map(({ field, reason }) => `${field} ${reason}`).sort()
        try {
          make(sent[name])
        } catch (error) {
          const { code: is, reason, details } = error as StatusError
          const said = { code: is, reason, fields: fields(details?.causes) }
          return expect(said).toEqual({ code, reason: body.reason, fields: fields(body.details?.causes) })
        }
        throw new Error("it was taken")
      })
}

/** Rules are not priced, nor are their types checked before they meet a value. */
const tooLenient = ["with a rule that costs too much", "with a rule of the wrong type"]

refused(read("answers.jsonl"), creates, "create")
refused(read("../../crd/recorded/answers.jsonl"), definitions, "define")
refused(read("../../crd/recorded/answers.jsonl"), objects, "create")
