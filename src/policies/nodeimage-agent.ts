import { namesOf } from "#api/names.ts"
import { aboutAgents, statusOnly } from "./agent-node.ts"
import type { ValidatingPolicy } from "./policy.ts"

const { group, version, plural } = namesOf("NodeImage")

/**
 * An agent writes only the status of its own node's NodeImage: the node in its bound token is compared with the
 * object's name. Without this, root on one node could replace the key that another node's credentials are sealed to.
 */
export const nodeImageAgent: ValidatingPolicy = {
  name: "aim-nodeimage-agent",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [group],
          apiVersions: [version],
          resources: [plural, `${plural}/status`],
          operations: ["CREATE", "UPDATE", "DELETE"],
          scope: "Cluster",
        },
      ],
    },
    ...aboutAgents,
    validations: [
      statusOnly,
      {
        expression: "variables.node != '' && request.name == variables.node",
        reason: "Forbidden",
        message: "an agent writes the NodeImage of its own node only, with a token that is bound to a pod on it",
        messageExpression: "'the agent of node \"' + variables.node + '\" writes the NodeImage of its own node only'",
      },
    ],
  },
}
