import { policies as all } from "#policies/all.ts"
import type { Policy } from "#policies/policy.ts"
import { type Manifest, partOf } from "./names.ts"

const apiVersion = "admissionregistration.k8s.io/v1"

/** The admission policies of src/policies, each with its binding. */
export const policies = (): Manifest[] => all.flatMap(policyManifests)

export function policyManifests(policy: Policy): Manifest[] {
  const { name, spec } = policy
  const metadata = { name, labels: partOf }
  const bound = (kind: string, how: object): Manifest[] => [
    { apiVersion, kind, metadata, spec },
    { apiVersion, kind: `${kind}Binding`, metadata, spec: { policyName: name, ...how } },
  ]
  if ("validationActions" in policy)
    return bound("ValidatingAdmissionPolicy", { validationActions: policy.validationActions })
  // Without a namespace: the objects in the namespace of the request, and in no other.
  const params = policy.paramName === undefined ? { selector: {} } : { name: policy.paramName }
  return bound("MutatingAdmissionPolicy", { paramRef: { ...params, parameterNotFoundAction: "Allow" } })
}
