import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { mayDeliver, mayPatch, type ValidatingPolicy } from "./policy.ts"

/** The author of a request must hold the right that a restart comes down to: to change pods of that namespace. */
export const containerRecreateRequestAuthor: ValidatingPolicy = {
  name: "aim-containerrecreaterequest-author",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [ContainerRecreateRequest.group],
          apiVersions: [ContainerRecreateRequest.version],
          // Its spec cannot be changed, and its status is what controller and agent write.
          resources: [ContainerRecreateRequest.plural],
          operations: ["CREATE"],
          scope: "Namespaced",
        },
      ],
    },
    variables: [],
    validations: [
      {
        expression: `${mayPatch("", "pods")} || ${mayDeliver(ContainerRecreateRequest)}`,
        reason: "Forbidden",
        message: "a ContainerRecreateRequest restarts containers, and you may not patch pods in its namespace",
        messageExpression:
          "'a ContainerRecreateRequest restarts containers, and you may not patch pods in namespace ' + request.namespace",
      },
    ],
  },
}
