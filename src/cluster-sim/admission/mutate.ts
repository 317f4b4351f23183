import { celJson, JsonPatchLiteral, misnamed, ObjectLiteral } from "#lib/cel.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { scaleKind } from "../apiserver/writing.ts"
import type { Json } from "../object.ts"
import {
  applyConfiguration,
  ConfigurationProblem,
  decode,
  type JsonPatchOperation,
  JsonPatchProblem,
  patchedJson,
} from "../schema/index.ts"
import { StatusError } from "../status-error.ts"
import { type Attributes, converted } from "./attributes.ts"
import { EvaluationFailed, OutOfBudget, type Scope } from "./expressions.ts"
import type { MutatingHook, Mutation } from "./hooks.ts"
import {
  conditionsHold,
  type Invocation,
  invocations,
  type Obstacle,
  Refused,
  scopes,
  type World,
} from "./invocations.ts"
import { refusal } from "./refusal.ts"

/** The outcome of one round of policies. */
export type Round = {
  object: Json
  /** A patch was applied, so policies that ask for reinvocation run again. */
  isPatched: boolean
  /** Policies, with binding and parameter, that may run again. */
  again: ReadonlySet<string>
}

type Failure = Omit<Obstacle<MutatingHook>, "hook"> & { hook: MutatingHook; reason: "Invalid" | "Forbidden" }

/** Runs every policy in order and applies its patches. The second round has only those that run again. */
export function mutationRound(
  hooks: readonly MutatingHook[],
  request: Attributes,
  world: World,
  only?: ReadonlySet<string>,
): Round {
  const failures: Failure[] = []
  const again = new Set<string>()
  let object = request.object
  let isPatched = false
  // The matching policies are determined before the first of them changes anything.
  for (const invocation of [...invocations(hooks, request, world)]) {
    if ("message" in invocation) {
      failures.push({ ...invocation, reason: "Forbidden" })
      continue
    }
    const { hook, binding } = invocation
    const fail = (error: unknown) => {
      failures.push({ hook, binding, message: problemOf(error), reason: "Invalid" })
    }
    const scope = () => scopes({ ...request, object }, world)
    try {
      if (!conditionsHold(invocation, () => scope()(invocation, "conditions"))) continue
    } catch (error) {
      fail(error)
      continue
    }
    const key = keyOf(invocation)
    if (only && !only.has(key)) continue
    for (const mutation of hook.steps) {
      try {
        object = patched(mutation, scope()(invocation, "steps"), { request, object, as: invocation.as })
        isPatched = true
      } catch (error) {
        fail(error)
      }
    }
    if (hook.isReinvoked) again.add(key)
  }
  refuse(request, failures)
  return { object, isPatched, again }
}

const keyOf = ({ hook, binding, param }: Invocation<MutatingHook>) =>
  [hook.name, binding.name, param?.metadata.namespace, param?.metadata.name].join("/")

/** The message for a problem of the policy. Any other error is rethrown. */
function problemOf(error: unknown): string {
  if (
    error instanceof EvaluationFailed ||
    error instanceof OutOfBudget ||
    error instanceof Refused ||
    error instanceof PatchProblem
  )
    return error.message
  throw error
}

function refuse(request: Attributes, failures: readonly Failure[]): void {
  const told = failures.filter(({ hook }) => hook.isFailClosed)
  const [first] = told
  if (!first) return
  const words = ({ hook, binding, message }: Failure) =>
    binding
      ? `policy '${hook.name}' with binding '${binding.name}' denied request: ${message}`
      : `policy ${JSON.stringify(hook.name)} denied request: ${message}`
  throw refusal(request, {
    code: 403,
    reason: first.reason,
    why: words(first),
    causes: told.map(words),
    isPlain: true,
  })
}

class PatchProblem extends Error {}

type Patched = { request: Attributes; object: Json; as: ServedKind }

/** The object with a policy's patch applied and its kind's defaults filled in. */
function patched({ type, patch }: Mutation, scope: Scope, { request, object, as }: Patched): Json {
  const { served, subresource } = request
  const kind = subresource === "scale" ? scaleKind(served) : as
  const before = converted(object, served, kind === as ? as : served)
  const value = patch.evaluate(scope)
  const after = type === "JSONPatch" ? jsonPatched(kind, before, value, scope) : applied(kind, before, value, scope)
  const whole = kind.strategy.default && kind === as ? kind.strategy.default(after) : after
  return converted(whole, kind === as ? as : served, served)
}

function applied(kind: ServedKind, live: Json, value: unknown, { budget }: Scope): Json {
  if (!(value instanceof ObjectLiteral))
    throw new PatchProblem("unsupported return type from ApplyConfiguration expression")
  checkNames(value, "Object")
  // The server has no schema for a kind that exists only as a subresource.
  if (kind.kind === "Scale" && kind.group === "autoscaling")
    throw new PatchProblem(
      "error applying patch: failed to convert patch object to typed object: no corresponding type for autoscaling/v1, Kind=Scale",
    )
  const { schema, isCustom } = kind
  const configuration = { ...(celJson(value, budget) as object), apiVersion: apiVersionOf(kind), kind: kind.kind }
  try {
    return applyConfiguration({ schema, isCustom, kind: kind.kind, live, applied: configuration })
  } catch (error) {
    if (!(error instanceof ConfigurationProblem)) throw error
    throw new PatchProblem(`error applying patch: ${error.message}`)
  }
}

function checkNames(value: ObjectLiteral, root: string) {
  const problems = misnamed(value, [root])
  if (problems.length > 0) throw new PatchProblem(`type mismatch: ${problems.join("\n")}`)
}

function jsonPatched(kind: ServedKind, object: Json, value: unknown, scope: Scope): Json {
  if (!Array.isArray(value) || !value.every(each => each instanceof JsonPatchLiteral))
    throw new PatchProblem("type mismatch: JSONPatchType.expression should evaluate to array")
  const operations = value.map(each => operationOf(each, scope))
  try {
    return decoded(kind, patchedJson(object, operations))
  } catch (error) {
    if (!(error instanceof JsonPatchProblem)) throw error
    // A patch with a test applies only to objects that pass the test.
    if (error.isTest) return object
    throw new PatchProblem(`JSON Patch: ${error.message}`)
  }
}

function operationOf({ op, path, from, value }: JsonPatchLiteral, { budget }: Scope): JsonPatchOperation {
  if (value instanceof ObjectLiteral) checkNames(value, value.type)
  return { op, path, ...(from && { from }), ...(value !== undefined && { value: celJson(value, budget) as Json }) }
}

/** The outcome of a patch, decoded as strictly as the server does it. */
function decoded(kind: ServedKind, object: Json): Json {
  try {
    return decode(kind.schema, object, {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      isCustom: kind.isCustom,
      validation: kind.isCustom ? "Ignore" : "Strict",
    }).value
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const why = /strict decoding error: .*/s.exec(error.message)?.[0] ?? /json: .*/s.exec(error.message)?.[0]
    throw new StatusError(500, "InternalError", `Internal error occurred: ${why ?? error.message}`, {
      causes: [{ reason: "", message: why ?? error.message, field: "" }],
    })
  }
}
