import type { StatusError } from "../status-error.ts"
import type { Attributes } from "./attributes.ts"
import { EvaluationFailed, OutOfBudget, type Scope } from "./expressions.ts"
import type { Binding, ValidatingHook, Validation } from "./hooks.ts"
import { conditionsHold, type Invocation, invocations, Refused, scopes, type World } from "./invocations.ts"
import { refusal } from "./refusal.ts"

/** Why a policy denies a request. Without a reason, the policy could not be evaluated. */
type Objection = { message: string; reason?: string; binding: Binding | undefined; hook: ValidatingHook }

/** Throws the refusal of a request that a policy denies, and warns where bindings have that action. */
export function validateRequest(hooks: readonly ValidatingHook[], request: Attributes, world: World): void {
  const denied: Objection[] = []
  const warned = new Set<string>()
  const scopeFor = scopes(request, world)
  for (const invocation of invocations(hooks, request, world)) {
    const { hook, binding } = invocation
    if ("message" in invocation) {
      if (hook.isFailClosed) denied.push({ hook, binding, message: invocation.message })
      continue
    }
    for (const { message, reason } of objections(invocation, scopeFor)) {
      const { name, actions } = invocation.binding
      if (actions.includes("Deny")) denied.push({ hook, binding, message, ...(reason && { reason }) })
      if (actions.includes("Warn"))
        warned.add(`Validation failed for ValidatingAdmissionPolicy '${hook.name}' with binding '${name}': ${message}`)
    }
    for (const message of failedAnnotations(invocation, scopeFor)) denied.push({ hook, binding, message })
  }
  for (const warning of warned) request.warn(warning)
  const [first] = denied
  if (first) throw denial(request, first)
}

function denial(request: Attributes, { hook, binding, message, reason = "Invalid" }: Objection): StatusError {
  const by = binding ? ` with binding '${binding.name}'` : ""
  const text = `ValidatingAdmissionPolicy '${hook.name}'${by} denied request: ${message}`
  const { code = 422 } = codes[reason] ?? {}
  return refusal(request, { code, reason, why: text, causes: [text] })
}

const codes: Record<string, { code: number } | undefined> = {
  Forbidden: { code: 403 },
  Unauthorized: { code: 401 },
  RequestEntityTooLarge: { code: 413 },
}

type Found = { message: string; reason?: string }
type ScopeFor = ReturnType<typeof scopes>

function objections(invocation: Invocation<ValidatingHook>, scopeFor: ScopeFor): Found[] {
  const { hook } = invocation
  const failure = (message: string): Found[] => (hook.isFailClosed ? [{ message }] : [])
  try {
    if (!conditionsHold(invocation, () => scopeFor(invocation, "conditions"))) return []
    const scope = scopeFor(invocation, "steps")
    return hook.steps.flatMap(step => {
      try {
        return step.holds.evaluate(scope) === true ? [] : [{ message: messageOf(step, scope), reason: step.reason }]
      } catch (error) {
        if (!(error instanceof EvaluationFailed)) throw error
        return failure(error.message)
      }
    })
  } catch (error) {
    if (!(error instanceof OutOfBudget) && !(error instanceof Refused)) throw error
    return failure(error.message)
  }
}

/** Longer messages of an expression are not shown. */
const messageBytes = 5 * 1024

function messageOf({ holds, message, says }: Validation, scope: Scope): string {
  try {
    const text = says?.evaluate(scope)
    const trimmed = typeof text === "string" ? text.trim() : ""
    if (trimmed && Buffer.byteLength(trimmed) <= messageBytes && !trimmed.includes("\n")) return trimmed
  } catch (error) {
    // The message expression is optional. If it fails, the validation's own text is used.
    if (!(error instanceof EvaluationFailed)) throw error
  }
  return message.trim() || `failed expression: ${holds.expression.trim()}`
}

/** Nothing is audited here, but an annotation that cannot be evaluated still refuses the request. */
function failedAnnotations(invocation: Invocation<ValidatingHook>, scopeFor: ScopeFor): string[] {
  const { hook } = invocation
  if (hook.annotations.length === 0) return []
  try {
    if (!conditionsHold(invocation, () => scopeFor(invocation, "conditions"))) return []
  } catch (error) {
    if (error instanceof Refused) return []
    throw error
  }
  const scope = scopeFor(invocation, "steps")
  return hook.annotations.flatMap(({ expression, evaluate }) => {
    try {
      const value = evaluate(scope)
      return typeof value === "string" || value === null
        ? []
        : [
            `valueExpression '${expression}' resulted in unsupported return type: ${typeof value}. Return type must be either string or null.`,
          ]
    } catch (error) {
      if (!(error instanceof EvaluationFailed) && !(error instanceof OutOfBudget)) throw error
      return hook.isFailClosed ? [error.message] : []
    }
  })
}
