import { policies as all } from "#policies/all.ts"
import { type Manifest, partOf } from "./names.ts"

const apiVersion = "admissionregistration.k8s.io/v1"

/** The admission policies of src/policies, each with its binding. */
export const policies = (): Manifest[] =>
  all.flatMap(({ name, spec, validationActions }) => {
    const metadata = { name, labels: partOf }
    return [
      { apiVersion, kind: "ValidatingAdmissionPolicy", metadata, spec },
      { apiVersion, kind: "ValidatingAdmissionPolicyBinding", metadata, spec: { policyName: name, validationActions } },
    ]
  })
