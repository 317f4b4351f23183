import type { Json, Script } from "../harness/script.ts"

type Fields = Record<string, Json>

/** A policy with its bindings, in force in the namespace of a case alone unless it says otherwise. */
export type Policy = { kind: "validating" | "mutating"; name?: string; spec: Fields; bindings?: Fields[] }

export const rule = (resources: string, operations: string[] = ["CREATE", "UPDATE"], fields: Fields = {}): Json => {
  const [group = "", plural = resources] = resources.includes(":") ? resources.split(":") : ["", resources]
  return { apiGroups: [group], apiVersions: ["*"], resources: [plural], operations, ...fields }
}

/** What a case's own namespace is selected by. */
export const here = (on: Script): Json => ({ matchLabels: { "kubernetes.io/metadata.name": on.namespace } })

/** A policy about ConfigMaps. */
export const validating = (expressions: (string | Fields)[], spec: Fields = {}, bindings?: Fields[]): Policy => ({
  kind: "validating",
  spec: { validations: expressions.map(each => (typeof each === "string" ? { expression: each } : each)), ...spec },
  ...(bindings && { bindings }),
})

export const applied = (expression: string): Json => ({
  patchType: "ApplyConfiguration",
  applyConfiguration: { expression },
})
export const patched = (expression: string): Json => ({ patchType: "JSONPatch", jsonPatch: { expression } })

export const mutating = (mutations: Json[], spec: Fields = {}, bindings?: Fields[]): Policy => ({
  kind: "mutating",
  spec: { mutations, reinvocationPolicy: "Never", ...spec },
  ...(bindings && { bindings }),
})

const resources = {
  validating: ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
  mutating: ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
} as const

/**
 * Runs a script with policies in force, and takes them away at its end. A server reads policies once a second, all at
 * a time: when the last of them is seen to be in force, so are the others.
 */
export async function under(on: Script, policies: Policy[], script: () => Promise<unknown>): Promise<void> {
  const named = policies.map((policy, index) => ({ ...policy, name: policy.name ?? `${on.id}-${index}` }))
  const kinds = [...new Set(named.map(({ kind }) => kind))]
  const made: [string, string][] = []
  const create = async (resource: string, name: string, spec: Json) => {
    await on.quietly.create(resource, { metadata: { name }, spec })
    made.push([resource, name])
  }
  try {
    for (const { kind, name, spec } of named) await create(resources[kind][0], name, wholeSpec(on, spec))
    for (const { kind, name, bindings = [{}] } of named)
      for (const [index, binding] of bindings.entries())
        await create(resources[kind][1], `${name}-b${index}`, {
          policyName: name,
          ...(kind === "validating" && { validationActions: ["Deny"] }),
          ...binding,
        })
    for (const kind of kinds) await sentinel(on, kind, create)
    await script()
  } finally {
    for (const [resource, name] of made.reverse())
      await on.unrecorded("DELETE", on.path(resource, name)).catch(() => undefined)
  }
}

const wholeSpec = (on: Script, { matchConstraints = {}, ...spec }: Fields): Json => ({
  ...spec,
  matchConstraints: { resourceRules: [rule("configmaps")], namespaceSelector: here(on), ...matchConstraints },
})

async function sentinel(
  on: Script,
  kind: Policy["kind"],
  create: (resource: string, name: string, spec: Json) => Promise<void>,
) {
  const name = `${on.id}-sentinel`
  const isValidating = kind === "validating"
  const only = { resourceRules: [rule("secrets", ["CREATE"], { resourceNames: [name] })], namespaceSelector: here(on) }
  const [policies, bindings] = resources[kind]
  await create(policies, name, {
    matchConstraints: only,
    ...(isValidating
      ? { validations: [{ expression: "false" }] }
      : {
          reinvocationPolicy: "Never",
          mutations: [applied("Object{metadata: Object.metadata{labels: {'seen': 'x'}}}")],
        }),
  })
  await create(bindings, name, { policyName: name, ...(isValidating && { validationActions: ["Deny"] }) })
  await on.until(`${kind} policies are in force`, async () => {
    const query = { dryRun: "All" }
    const { status, body } = await on.unrecorded("POST", on.path("secrets"), { query, body: { metadata: { name } } })
    return isValidating ? status >= 400 : body.metadata?.labels?.seen === "x"
  })
}
