import type { Environment } from "@marcbachmann/cel-js"
import { spend } from "./cel-meter.ts"

/** What is asked of an authorizer: a path, or a resource. */
export type AccessCheck = {
  verb: string
  path?: string
  group?: string
  resource?: string
  subresource?: string
  namespace?: string
  name?: string
}

/** Answers for the user of the request, or for a service account that the expression names. */
export type Access = (
  check: AccessCheck,
  serviceAccount?: { namespace: string; name: string },
) => { allowed: boolean; reason: string }

type Asked = Omit<AccessCheck, "verb">
type Ask = (check: AccessCheck) => { allowed: boolean; reason: string }

/** A check looks through every role and binding. */
const checkSteps = 5000

class AuthorizerValue {
  readonly requestResource: ResourceCheck
  readonly #access: Access
  readonly #account: { namespace: string; name: string } | undefined

  constructor(access: Access, requestResource: Asked, account?: { namespace: string; name: string }) {
    this.#access = access
    this.#account = account
    this.requestResource = new ResourceCheck(check => this.ask(check), requestResource)
  }

  ask(check: AccessCheck) {
    spend(checkSteps)
    return this.#access(check, this.#account)
  }

  of(namespace: string, name: string) {
    return new AuthorizerValue(this.#access, {}, { namespace, name })
  }
}

class Check {
  readonly #ask: Ask
  readonly #asked: Asked

  constructor(ask: Ask, asked: Asked) {
    this.#ask = ask
    this.#asked = asked
  }

  with(more: Asked): ResourceCheck {
    return new ResourceCheck(this.#ask, { ...this.#asked, ...more })
  }

  check(verb: string): Decision {
    return new Decision(this.#ask({ ...this.#asked, verb }))
  }
}

class PathCheck extends Check {}
class GroupCheck extends Check {}
class ResourceCheck extends Check {}

class Decision {
  readonly #verdict: { allowed: boolean; reason: string }

  constructor(verdict: { allowed: boolean; reason: string }) {
    this.#verdict = verdict
  }

  get() {
    return this.#verdict
  }
}

const filled = (what: string, text: string) => {
  if (!text.trim()) throw new Error(`${what} must not be empty`)
  return text
}

/** The variable `authorizer` of a request. */
export const authorizerValue = (access: Access, requestResource: Omit<AccessCheck, "verb">): unknown =>
  new AuthorizerValue(access, requestResource)

/** What an expression asks of it: `authorizer.group('').resource('pods').check('create').allowed()`. */
export const registerAuthorizer = (environment: Environment): Environment =>
  environment
    .registerType("Authorizer", AuthorizerValue)
    .registerType("PathCheck", PathCheck)
    .registerType("GroupCheck", GroupCheck)
    .registerType("ResourceCheck", ResourceCheck)
    .registerType("Decision", Decision)
    .registerFunction(
      "Authorizer.path(string): PathCheck",
      (of: AuthorizerValue, path: string) => new PathCheck(check => of.ask(check), { path: filled("path", path) }),
    )
    .registerFunction(
      "Authorizer.group(string): GroupCheck",
      (of: AuthorizerValue, group: string) => new GroupCheck(check => of.ask(check), { group }),
    )
    .registerFunction(
      "Authorizer.serviceAccount(string, string): Authorizer",
      (of: AuthorizerValue, namespace: string, name: string) => of.of(namespace, name),
    )
    .registerFunction("GroupCheck.resource(string): ResourceCheck", (of: GroupCheck, resource: string) =>
      of.with({ resource: filled("resource", resource) }),
    )
    .registerFunction("ResourceCheck.subresource(string): ResourceCheck", (of: ResourceCheck, subresource: string) =>
      of.with({ subresource }),
    )
    .registerFunction("ResourceCheck.namespace(string): ResourceCheck", (of: ResourceCheck, namespace: string) =>
      of.with({ namespace }),
    )
    .registerFunction("ResourceCheck.name(string): ResourceCheck", (of: ResourceCheck, name: string) =>
      of.with({ name }),
    )
    // Roles know no selectors: a check with one is as wide as a check without.
    .registerFunction("ResourceCheck.fieldSelector(string): ResourceCheck", (of: ResourceCheck) => of.with({}))
    .registerFunction("ResourceCheck.labelSelector(string): ResourceCheck", (of: ResourceCheck) => of.with({}))
    .registerFunction("ResourceCheck.check(string): Decision", (of: ResourceCheck, verb: string) => of.check(verb))
    .registerFunction("PathCheck.check(string): Decision", (of: PathCheck, verb: string) => of.check(verb))
    .registerFunction("Decision.allowed(): bool", (of: Decision) => of.get().allowed)
    .registerFunction("Decision.reason(): string", (of: Decision) => of.get().reason)
    .registerFunction("Decision.errored(): bool", () => false)
    .registerFunction("Decision.error(): string", () => "")
