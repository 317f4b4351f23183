import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { validateNew } from "../../apiserver/metadata.ts"
import { customResourceDefinition } from "../../kinds/custom-resource-definition.ts"
import { define } from "../../kinds/define.ts"
import { change } from "../../kinds/recorded/cases.ts"
import { normalised } from "../../kinds/recorded/normalised.ts"
import type { Json, Obj } from "../../object.ts"
import { decode } from "../../schema/index.ts"
import { customKinds } from "../custom-kinds.ts"
import { definitions, definitionUpdates, objects, objectUpdates, widget } from "./cases.ts"

/** Holds custom kinds to what a real server answered: see tools/record-custom-kinds.ts. */
const answers: Json[] = readFileSync(`${import.meta.dirname}/answers.jsonl`, "utf8")
  .trim()
  .split("\n")
  .map(line => JSON.parse(line))

const crd = define(customResourceDefinition, () => undefined)
const context = { now: "2026-01-02T03:04:05Z", random: () => 0.5 }

/** The cost of rules is not estimated. */
const accepted = ["with a rule that costs too much"]

for (const { define: name, code, body } of answers.filter(answer => answer.define && !accepted.includes(answer.define)))
  test(`define: ${name}`, () => {
    const sent = definitions[name]
    const metadata = { ...sent.metadata, uid: "UID", creationTimestamp: context.now }
    const defaulted = crd.strategy.default!({ ...sent, metadata })
    const made = crd.strategy.prepareCreate!(defaulted, context)
    const causes = [...validateNew(crd, made.metadata), ...crd.strategy.validateCreate!(made)]
    if (code >= 400) return expect(known(causes)).toEqual(known(body.details.causes))
    expect(causes).toEqual([])
    expect(normalised(made)).toEqual(body)
  })

for (const { redefine: name, before, code, body } of answers.filter(answer => answer.redefine))
  test(`redefine: ${name}`, () => {
    const next = crd.strategy.prepareUpdate!(change(before, definitionUpdates[name]!), before, context)
    const causes = crd.strategy.validateUpdate!(next, before)
    if (code >= 400) return expect(known(causes)).toEqual(known(body.details.causes))
    expect(causes).toEqual([])
  })

const [v1, v2] = customKinds(widget)
const read = (object: Json, kind = v1!) =>
  decode(kind.schema, JSON.parse(JSON.stringify(object)), {
    apiVersion: "shop.test/v1",
    kind: "Widget",
    isCustom: true,
  }).value

for (const { create: name, code, body } of answers.filter(answer => answer.create && answer.code !== 400))
  test(`create: ${name}`, () => {
    const sent = read(objects[name])
    const metadata = { ...sent.metadata, uid: "UID", creationTimestamp: context.now }
    const made = v1!.strategy.prepareCreate!(v1!.strategy.default!({ ...sent, metadata }), context)
    const causes = [...validateNew(v1!, made.metadata), ...v1!.strategy.validateCreate!(made)]
    if (code >= 400) return expect(known(causes)).toEqual(known(body.details.causes))
    expect(causes).toEqual([])
    expect(normalised(made)).toEqual(body)
    expect(v1!.strategy.default!(made), "defaulting what was stored changes nothing").toBe(made)
  })

for (const { update: name, before, code, body } of answers.filter(answer => answer.update))
  test(`update: ${name}`, () => {
    const { set, subresource, laterSchema } = objectUpdates[name]!
    const path = "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties"
    const later = Object.entries(laterSchema ?? {}).map(([field, value]) => [`${path}.${field}`, value])
    const [kind] = customKinds(change(widget, Object.fromEntries(later)))
    const { strategy } = kind!
    if (body.details?.causes?.[0]?.field === "metadata.resourceVersion")
      return expect(strategy.allowsUnconditionalUpdate).toBe(false)
    const old = before as Obj
    const sent = strategy.default!(read(change(before, set), kind))
    const next = (subresource ? strategy.prepareStatusUpdate! : strategy.prepareUpdate!)(sent, old, context)
    const causes = (subresource ? strategy.validateStatusUpdate! : strategy.validateUpdate!)(next, old)
    if (code >= 400) return expect(known(causes)).toEqual(known(body.details.causes))
    expect(causes).toEqual([])
    const moves = !subresource && strategy.movesGeneration!(next, old)
    const metadata = { ...next.metadata, generation: (old.metadata.generation ?? 0) + (moves ? 1 : 0) }
    expect(normalised({ ...next, metadata })).toEqual(body)
  })

for (const { row: name, now, object, cells, columns } of answers.filter(answer => answer.row))
  test(`row: ${name}`, () => {
    expect(v1!.printer.row(object, now)).toEqual(cells)
    expect(v1!.printer.columns).toEqual(columns)
  })

for (const { rowInVersion2: name, columns } of answers.filter(answer => answer.rowInVersion2))
  test(`columns of a version without any: ${name}`, () => expect(v2!.printer.columns).toEqual(columns))

/** Causes to compare. The order among fields is chance in Go; what its compiler of patterns says is its own. */
function known(causes: Json[]): Json[] {
  return causes
    .map(({ reason, field, message }) => ({
      field,
      reason,
      message: message.replace(/(must be a valid regular expression, but isn't).*/, "$1"),
    }))
    .sort((a, b) => (a.field + a.message < b.field + b.message ? -1 : 1))
}
