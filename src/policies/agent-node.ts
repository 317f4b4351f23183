import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { named, type ValidatingPolicy } from "./policy.ts"

/** The agents' account: one for all nodes. Which node a token is for is written in the token itself. */
export const agentNamespace = "aim-agents"
export const agentName = "aim-agent"
const agentUser = `system:serviceaccount:${agentNamespace}:${agentName}`

/** What both policies about agents ask and refuse alike. */
export const aboutAgents = {
  matchConditions: named({ agent: `request.userInfo.username == '${agentUser}'` }),
  variables: named({
    node: "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'].orValue([''])[0]",
  }),
}
export const statusOnly = {
  expression: "request.operation == 'UPDATE' && request.?subResource.orValue('') == 'status'",
  reason: "Forbidden",
  message: "an agent writes status only",
  messageExpression: "'an agent writes status only'",
} as const

const nodeOf = (object: string) => `${object}.?status.?nodeName.orValue('')`

/**
 * An agent writes only the status of requests of its own node. RBAC cannot express that for an account that all nodes
 * share, so the node in the bound token is compared with the object: root on one node gains nothing on another.
 */
export const agentNode: ValidatingPolicy = {
  name: "aim-agent-node",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [ContainerRecreateRequest.group],
          apiVersions: [ContainerRecreateRequest.version],
          resources: [ContainerRecreateRequest.plural, `${ContainerRecreateRequest.plural}/status`],
          operations: ["CREATE", "UPDATE", "DELETE"],
          scope: "Namespaced",
        },
      ],
    },
    ...aboutAgents,
    validations: [
      {
        expression: "variables.node != ''",
        reason: "Forbidden",
        message: "the token of an agent must be bound to a pod on a node",
        messageExpression: "'the token of an agent must be bound to a pod on a node'",
      },
      statusOnly,
      {
        expression: [
          "request.operation == 'UPDATE'",
          `${nodeOf("oldObject")} == variables.node`,
          `${nodeOf("object")} == variables.node`,
        ].join(" && "),
        reason: "Forbidden",
        message: "an agent writes requests of its own node only",
        messageExpression: "'the agent of node ' + variables.node + ' writes requests of its own node only'",
      },
      {
        expression: [
          "request.operation == 'UPDATE'",
          "object.?status.?phase.orValue('') == oldObject.?status.?phase.orValue('')",
          "object.?status.?podUID.orValue('') == oldObject.?status.?podUID.orValue('')",
        ].join(" && "),
        reason: "Forbidden",
        message: "an agent reports containers; phase and pod of a request are the controller's",
        messageExpression: "'an agent reports containers; phase and pod of a request are the controller\\'s'",
      },
    ],
  },
}
