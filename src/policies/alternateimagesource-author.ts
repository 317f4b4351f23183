import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { workloadKinds } from "#core/workloads/kinds.ts"
import { mayDeliver, mayPatch, named, type ValidatingPolicy } from "./policy.ts"

/** The workloads whose templates we could change. Of a custom kind we change only pods, so `pods` covers it. */
const workloads = workloadKinds.map(({ group, name, plural }) => ({
  group,
  kind: name,
  plural,
  resource: `${plural}.${group}`,
}))

/** As targets may write it: with its group or without, one or many. */
const spellings = ({ group, kind, plural }: (typeof workloads)[number]) =>
  [group, ""].flatMap(each => [kind, plural].map(word => `'${each} ${word}'`)).join(", ")

const variables = named({
  // `GROUP KIND` of each target, a list for each replacement; `apps/v1` is how older tools write the group.
  targets: [
    "object.spec.imageSourceReplacements.map(replacement, replacement.?targets.orValue([]).map(target,",
    "target.type.?group.orValue('').lowerAscii().split('/')[0] + ' ' + target.type.kind.lowerAscii()))",
  ].join(" "),
  changesAnyTemplate: [
    "object.spec.?policy.?apply.orValue('Pod') == 'Template'",
    "object.spec.imageSourceReplacements.exists(replacement, !has(replacement.targets))",
  ].join(" && "),
})

/**
 * The author must hold the rights that are used. There is one check per kind, each a separate validation: an
 * expression can afford two checks, so a loop over targets would refuse valid objects.
 */
export const alternateImageSourceAuthor: ValidatingPolicy = {
  name: "aim-alternateimagesource-author",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [AlternateImageSource.group],
          apiVersions: [AlternateImageSource.version],
          // Not its status: that is what the controllers write.
          resources: [AlternateImageSource.plural],
          operations: ["CREATE", "UPDATE"],
          scope: "Namespaced",
        },
      ],
    },
    matchConditions: named({ spec: "request.operation == 'CREATE' || object.spec != oldObject.spec" }),
    variables,
    validations: [
      {
        expression: `${mayPatch("", "pods")} || ${mayDeliver(AlternateImageSource)}`,
        reason: "Forbidden",
        message: "an AlternateImageSource patches pods, and you may not patch pods in its namespace",
        messageExpression:
          "'an AlternateImageSource patches pods, and you may not patch pods in namespace ' + request.namespace",
      },
      ...workloads.map(workload => {
        const { group, plural, resource } = workload
        const isMeant = `variables.targets.exists(targets, sets.intersects(targets, [${spellings(workload)}]))`
        const says = `this AlternateImageSource is for ${resource}, and you may not patch ${resource} in`
        return {
          expression: `!(variables.changesAnyTemplate || ${isMeant}) || ${mayPatch(group, plural)} || ${mayDeliver(AlternateImageSource)}`,
          reason: "Forbidden" as const,
          message: `${says} its namespace`,
          messageExpression: `'${says} namespace ' + request.namespace`,
        }
      }),
    ],
  },
}
