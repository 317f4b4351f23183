import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { apiVersionOf } from "#runtime/resource.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import { validateNew } from "../../apiserver/metadata.ts"
import type { Json, Obj } from "../../object.ts"
import { builtInKinds } from "../built-in.ts"
import { podAdmission } from "../pod-admission.ts"
import { change, creates, updates } from "./cases.ts"
import { normalised } from "./normalised.ts"

/** Holds the built-in kinds to what a real server answered: see tools/record-kinds.ts. */
const answers: Json[] = readFileSync(`${import.meta.dirname}/answers.jsonl`, "utf8")
  .trim()
  .split("\n")
  .map(line => JSON.parse(line))

const kinds = new Map(builtInKinds(() => undefined).map(kind => [`${apiVersionOf(kind)} ${kind.kind}`, kind]))
const kindOf = ({ apiVersion, kind }: Json) => kinds.get(`${apiVersion} ${kind}`) as ServedKind
const context = { now: "2026-01-02T03:04:05Z", random: () => 0.5 }

/** Only the priority classes of the system are there; the rest of what needs other objects is tested in a storage. */
const admit = podAdmission(
  (_, kind, { name }) =>
    kind === "PriorityClass" && name === "system-node-critical"
      ? ({ value: 2_000_001_000 } as unknown as Obj)
      : undefined,
  context.random,
)

function make(sent: Json, metadata: Json): Json {
  const kind = kindOf(sent)
  const object = kind.strategy.default?.({ ...sent, metadata }) ?? { ...sent, metadata }
  return kind.strategy.prepareCreate!(admit({ operation: "create", kind, object, subresource: undefined }), context)
}

for (const { create: name, code, body } of answers.filter(answer => answer.create))
  test(`create: ${name}`, () => {
    const sent = creates[name]
    const { strategy } = kindOf(sent)
    const metadata = { ...sent.metadata, uid: "UID", creationTimestamp: "2026-01-02T03:04:05Z" }
    const before = structuredClone(sent)
    if (code === 403) return expect(() => make(sent, metadata)).toThrow(body.message)
    const made = make(sent, metadata)
    expect(sent, "what was sent is left alone").toEqual(before)
    const causes = [...validateNew(kindOf(sent), made.metadata), ...(strategy.validateCreate?.(made) ?? [])]
    if (code >= 400) return expect(known(causes)).toEqual(known(body.details.causes))
    expect(causes).toEqual([])
    expect(plain(normalised(made))).toEqual(plain(withoutAccepted(body)))
    expect(strategy.default?.(made) ?? made, "defaulting what was stored changes nothing").toBe(made)
  })

for (const { update: name, before, code, body } of answers.filter(answer => answer.update))
  test(`update: ${name}`, () => {
    const { set, subresource } = updates[name]!
    const { strategy } = kindOf(before)
    const old = before as Obj
    const sent = change(before, { ...set, "metadata.uid": old.metadata.uid })
    if (body.details?.causes?.[0]?.field === "metadata.resourceVersion")
      return expect(strategy.allowsUnconditionalUpdate).toBe(false)
    const defaulted = strategy.default?.(sent) ?? sent
    const prepare = subresource ? strategy.prepareStatusUpdate! : strategy.prepareUpdate!
    const next = prepare(defaulted, old, context)
    const validate = subresource ? strategy.validateStatusUpdate : strategy.validateUpdate
    const causes = validate?.(next, old) ?? []
    if (code >= 400) return expect(known(causes)).toEqual(known(body.details.causes))
    expect(causes).toEqual([])
    const moves = !subresource && strategy.movesGeneration?.(next, old)
    const generation = (old.metadata.generation ?? 0) + (moves ? 1 : 0)
    const metadata = { ...next.metadata, ...(old.metadata.generation && { generation }) }
    expect(plain(normalised({ ...next, metadata }))).toEqual(plain(body))
  })

for (const { row: name, now, object, cells } of answers.filter(answer => answer.row))
  test(`row: ${name}`, () => {
    const { printer } = kindOf(object)
    expect(printer.row(object, now)).toEqual(cells)
    expect(cells).toHaveLength(printer.columns.length)
  })

/** What a real server adds and ours does not, because nothing in the simulated cluster would ever take it away. */
function withoutAccepted(body: Json): Json {
  if (body.kind === "PersistentVolumeClaim") return change(body, { "metadata.finalizers": undefined })
  if (body.kind === "Node") return change(body, { "spec.taints": undefined })
  return body
}

/** Empty things come and go with Go's zero values, which is the decoder's business and not the kind's. */
function plain(value: Json): Json {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  const kept = Object.entries(value)
    .map(([key, child]) => [key, plain(child)] as const)
    .filter(([, child]) => !isNothing(child))
  return Object.fromEntries(kept)
}

const isNothing = (value: Json) =>
  value === undefined || value === null || value === "" || value === 0 || value === false ||
  (typeof value === "object" && Object.keys(value).length === 0) // biome-ignore format: one sentence

/**
 * Causes to compare. Some are said about a map, whose order in Go is chance; some show the server's own structs, which
 * are not ours to know: docs/cluster-sim.md names both.
 */
function known(causes: Json[]): Json[] {
  return causes
    .map(({ reason, field, message }) => ({
      field,
      reason,
      message: message
        .split("\n")[0]
        .replace(/^Invalid value: \{.*"(Containers|containers)".*\}: /, "Invalid value: {…}: ")
        .replace(/(<secret contents redacted>").*/, "$1"),
    }))
    .sort((a, b) => (a.field + a.message < b.field + b.message ? -1 : 1))
}
