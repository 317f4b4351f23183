import { group, version } from "#api/v1alpha1/group.ts"
import { deliverableKinds, spokeNames, upgradeKinds } from "#core/cluster-fleet/deliverable.ts"
import { named, type ValidatingPolicy } from "./policy.ts"

/**
 * The author of a run has images changed on clusters, by the hub's credential. A right on ClusterGroupUpgrades in one
 * namespace is not enough for that: it needs the verb `upgrade` on spokeclusters, which only this policy gives a meaning.
 */
const clusterGroupUpgradeAuthor: ValidatingPolicy = {
  name: "aim-clustergroupupgrade-author",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          ...{ apiGroups: [group], apiVersions: [version], scope: "Namespaced" },
          // Not its status: that is what the controllers write.
          resources: ["clustergroupupgrades", "precachingconfigs"],
          operations: ["CREATE", "UPDATE"],
        },
      ],
    },
    matchConditions: named({ spec: "request.operation == 'CREATE' || object.spec != oldObject.spec" }),
    variables: [],
    validations: [
      {
        expression: `authorizer.group('${group}').resource('spokeclusters').check('upgrade').allowed()`,
        reason: "Forbidden",
        message: "a run changes clusters of this hub, and you do not have the verb upgrade on spokeclusters",
        messageExpression:
          "'a run changes clusters of this hub, and you do not have the verb upgrade on spokeclusters'",
      },
    ],
  },
}

const list = (texts: readonly string[]) => `[${texts.map(each => `'${each}'`).join(", ")}]`
const { hubNamespace, executor, lease, preCacheNamespace } = spokeNames
const account = "object.spec.?executor.?subject.?serviceAccount"
/** Places of the kinds that are no upgrade's: a stolen token must not write every ConfigMap of every cluster. */
const places = [
  `(m.kind == 'Namespace' && m.metadata.name == '${preCacheNamespace}')`,
  `(m.kind == 'ConfigMap' && m.metadata.namespace == '${preCacheNamespace}')`,
  `(m.kind == 'Lease' && m.metadata.namespace == '${hubNamespace}' && m.metadata.name == '${lease}')`,
]

const work = (name: string, expression: string, says: string) => ({
  ...{ expression, reason: "Forbidden" as const, message: says, messageExpression: `'${says}: ' + ${name}` },
})

/**
 * What the hub's own account may put into a ManifestWork. OCM's agents run with many rights on their clusters; a thief of
 * the account's token gets the kinds that a run delivers, under the executor's rights, and nothing else.
 */
const ownWorks = (user: string): ValidatingPolicy => ({
  name: "aim-hub-manifestworks",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          ...{ apiGroups: ["work.open-cluster-management.io"], apiVersions: ["*"], scope: "Namespaced" },
          ...{ resources: ["manifestworks"], operations: ["CREATE", "UPDATE"] },
        },
      ],
    },
    matchConditions: named({ own: `request.userInfo.username == '${user}'` }),
    variables: named({ manifests: "object.spec.?workload.?manifests.orValue([])" }),
    validations: [
      work(
        "object.metadata.name",
        "object.metadata.name.startsWith('aim-')",
        "a hub writes only works whose name begins with aim-",
      ),
      work(
        "object.metadata.name",
        `${account}.?name.orValue('') == '${executor}' && ${account}.?namespace.orValue('') == '${hubNamespace}'`,
        `a work of a hub names the executor ${hubNamespace}/${executor}`,
      ),
      work(
        "object.metadata.name",
        `variables.manifests.all(m, m.apiVersion + ' ' + m.kind in ${list(deliverableKinds.map(each => `${each.apiVersion} ${each.kind}`))})`,
        "a work of a hub holds only kinds that a run delivers",
      ),
      work(
        "object.metadata.name",
        `variables.manifests.all(m, m.kind in ${list(upgradeKinds.map(({ kind }) => kind))} || ${places.join(" || ")})`,
        "a work of a hub holds helpers only where a run has them",
      ),
      work(
        "object.metadata.name",
        [
          "object.spec.?manifestConfigs.orValue([]).all(c, c.?updateStrategy.?type.orValue('') == 'ServerSideApply'",
          "!c.?updateStrategy.?serverSideApply.?force.orValue(false))",
        ].join(" && "),
        "a work of a hub takes no field from another writer",
      ),
    ],
  },
})

/** The policies that only a hub has, for the account of its controllers. */
export const hubPolicies = (user: string): readonly ValidatingPolicy[] => [clusterGroupUpgradeAuthor, ownWorks(user)]
