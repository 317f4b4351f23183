import { namesOf } from "#api/names.ts"
import { named, type ValidatingPolicy } from "./policy.ts"

const { group, version, plural } = namesOf("ImagePullJob")
const lists = namesOf("ImageListPullJob").plural
const nodeImages = namesOf("NodeImage").plural

const may = (verb: string, of: { group: string; resource: string }, isInNamespace: boolean) =>
  [
    `authorizer.group('${of.group}').resource('${of.resource}')`,
    ...(isInNamespace ? [".namespace(request.namespace)"] : []),
    `.check('${verb}').allowed()`,
  ].join("")

/** Of the two kinds that this is about, the one of the request; in all namespaces, as `mayDeliver`. */
const delivers = `authorizer.group('${group}').resource(request.resource.resource).check('deliver').allowed()`

const nodesDirectly =
  "a job without podSelector selects nodes directly, and you may not create nodeimages: write podSelector, for the nodes on which your pods run"

/**
 * The author must hold the rights that are used: to read the Secrets whose contents travel to nodes, and to create
 * NodeImages where nodes are selected directly. A `podSelector` reaches only nodes on which pods of the namespace run.
 * aim itself makes the jobs of a list in the name of the list's author, and holds no Secrets: it is recognised by the
 * right to write the status of all jobs.
 */
export const imagePullJobAuthor: ValidatingPolicy = {
  name: "aim-imagepulljob-author",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [group],
          apiVersions: [version],
          // Not its status: that is what the controllers write.
          resources: [plural, lists],
          operations: ["CREATE", "UPDATE"],
          scope: "Namespaced",
        },
      ],
    },
    matchConditions: named({ spec: "request.operation == 'CREATE' || object.spec != oldObject.spec" }),
    variables: named({
      // In all namespaces: the owner of one namespace may write every status in it, and is not aim for that.
      isAim: `authorizer.group('${group}').resource('${plural}').subresource('status').check('update').allowed()`,
      hasSecrets: "object.spec.?pullSecrets.orValue([]).size() > 0",
    }),
    validations: [
      {
        expression: `!variables.hasSecrets || variables.isAim || ${may("get", { group: "", resource: "secrets" }, true)}`,
        reason: "Forbidden",
        message: "this job uses pull secrets, and you may not get secrets in its namespace",
        messageExpression:
          "'this job uses pull secrets, and you may not get secrets in namespace ' + request.namespace",
      },
      {
        messageExpression: `'${nodesDirectly}'`,
        expression: `has(object.spec.podSelector) || ${may("create", { group, resource: nodeImages }, false)} || ${delivers}`,
        reason: "Forbidden",
        message: nodesDirectly,
      },
    ],
  },
}
