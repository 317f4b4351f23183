import { approvedAnnotation, approvedByAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { annotation } from "./hold-marks.ts"
import { named, type ValidatingPolicy } from "./policy.ts"

const approved = (object: string) => annotation(object, approvedAnnotation)
const by = (object: string) => annotation(object, approvedByAnnotation)

/**
 * An approval carries the name of the user that wrote it, and no other: the status of the run, its history and the events
 * repeat that name. The annotations of an approval change together, so that no approval gets another name later.
 */
export const canaryApproval: ValidatingPolicy = {
  name: "aim-canary-approval",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [Canary.group],
          apiVersions: [Canary.version],
          resources: [Canary.plural],
          operations: ["CREATE", "UPDATE"],
          scope: "Namespaced",
        },
      ],
    },
    matchConditions: named({
      approval: `${approved("object")} != ''`,
      "is-new": `request.operation == 'CREATE' || ${approved("object")} != ${approved("oldObject")} || ${by("object")} != ${by("oldObject")}`,
    }),
    variables: [],
    validations: [
      {
        expression: `${by("object")} == request.userInfo.username`,
        reason: "Forbidden",
        message: `an approval carries the name of the user that writes it: write your own in ${approvedByAnnotation}`,
        messageExpression: `'an approval carries the name of the user that writes it: write ' + request.userInfo.username + ' in ${approvedByAnnotation}'`,
      },
    ],
  },
}
