import { runAnnotation } from "#core/cluster-fleet/deliverable.ts"
import { boundMessage, boundWords, pathText } from "#core/cluster-fleet/delivered.ts"
import type { DeliveredObject, FieldPath, Verdict } from "#core/cluster-fleet/transport.ts"

/** The condition that OCM's agent writes for us. Not `Complete`: a manifest with that one is never updated again. */
export const settledCondition = "AimSettled"

export type ConditionRule = {
  condition: string
  type: "CEL"
  celExpressions: string[]
  messageExpression: string
}

/**
 * The rule of `judgeDelivered`, for the agent on the cluster: it reads the object once, and stamps the answer with the
 * generation of the work. Neither Applied nor an echoed annotation proves anything alone (decision 157). The message is a
 * word, a reason and a message on lines of their own.
 */
export function conditionRule({ judge }: DeliveredObject, run: string): ConditionRule {
  const isHere = "!has(object.metadata.deletionTimestamp)"
  const isOfRun = [
    "has(object.metadata.annotations)",
    `${text(runAnnotation)} in object.metadata.annotations`,
    `object.metadata.annotations[${text(runAnnotation)}] == ${text(run)}`,
  ].join(" && ")
  const base = [isHere, isOfRun]
  const opening = `!(${isHere}) ? 'Leaving' : !(${isOfRun}) ? 'Differs\\n\\nit does not name this run' :`
  if (judge.by === "Presence") return rule(base, `${opening} 'Settled'`)

  const expects = judge.expects.map(({ path, value }) => ({ path, is: `object${indexed(path)} == ${text(value)}` }))
  const differing = expects.map(
    ({ path, is }) => `!(${is}) ? ${text(`Differs\n\n${pathText(path)} is not what was sent`)} :`,
  )
  return rule(
    [...base, ...expects.map(({ is }) => is), isObserved, `!(${isTrue("Stalled")})`, isTrue("Ready")],
    [
      ...[opening, ...differing],
      `!(${isObserved}) ? 'Waiting\\nNotObserved\\nit was not looked at since it changed' :`,
      `${isTrue("Stalled")} ? 'Stalled\\n' + ${words("Stalled")} :`,
      `${isTrue("Ready")} ? 'Settled' :`,
      `${current("Ready")}.size() > 0 ? 'Waiting\\n' + ${words("Ready")} : 'Waiting\\nNotObserved\\nno Ready yet'`,
    ].join(" "),
  )
}

const rule = (celExpressions: string[], messageExpression: string): ConditionRule => ({
  ...{ condition: settledCondition, type: "CEL", celExpressions, messageExpression },
})

const isObserved =
  "has(object.status) && has(object.status.observedGeneration) && object.status.observedGeneration == object.metadata.generation"

/** The conditions of a type that are about the present generation. */
const current = (type: string) =>
  [
    "(has(object.status) && has(object.status.conditions) ? object.status.conditions : []).filter(c,",
    `c.type == ${text(type)} && has(c.observedGeneration) && c.observedGeneration == object.metadata.generation)`,
  ].join(" ")
const isTrue = (type: string) => `${current(type)}.exists(c, c.status == 'True')`
const words = (type: string) =>
  `${current(type)}.map(c, (has(c.reason) ? c.reason : '') + '\\n' + (has(c.message) ? c.message : ''))[0]`

const indexed = (path: FieldPath) => path.map(key => `[${typeof key === "number" ? key : text(key)}]`).join("")

/** A literal of CEL. JSON escapes what must be escaped there too. */
const text = (value: string) => JSON.stringify(value)

/** What the agent's answer says. An expression that failed, as where a field is missing, is an object that differs. */
export function verdictOf({ status, message }: { status: unknown; message: unknown }): Verdict {
  if (status === "True") return { is: "Settled" }
  const [word = "", reason = "", ...rest] = typeof message === "string" ? message.split("\n") : []
  const said = boundWords({ reason, message: rest.join("\n") })
  if (word === "Leaving") return { is: "Leaving" }
  if (word === "Stalled" || word === "Waiting") return { is: word, ...said }
  return { is: "Differs", message: word === "Differs" ? said.message : boundMessage(message) }
}

/** `.status.operation`, `.metadata.annotations.example\.com/a`, for feedback. */
export const jsonPath = (path: FieldPath) =>
  path.map(key => (typeof key === "number" ? `[${key}]` : `.${key.replaceAll(".", "\\.")}`)).join("")
