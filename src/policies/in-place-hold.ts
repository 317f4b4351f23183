import { grantName } from "#core/grant.ts"
import { holdOf, standingBegins } from "#core/in-place/marks.ts"
import { deploymentStop, held, isHeld, pauses } from "./hold-marks.ts"
import { daemonSetHold, statefulSetHold } from "./in-place-hold-sets.ts"
import { conditionsOf, isHolding, type KindHold, markWith } from "./in-place-marks.ts"
import { type MutatingPolicy, named } from "./policy.ts"

const [before, generation, after] = holdOf("string(oldObject.metadata.generation)")

const deploymentHold: KindHold = {
  resource: "deployments",
  stop: deploymentStop,
  variables: {
    // After `kubectl rollout undo` the new object may carry the hold of long ago: only the old object's counts. A
    // standing hold becomes that of this change, since from now on the policy holds the next one.
    known: `${isHeld("oldObject")} && ${held("oldObject")}.startsWith('${standingBegins}') ? ${held("oldObject")}.find('[0-9]+}$').find('[0-9]+') : ''`,
    held: `${isHeld("oldObject")} && variables.known == '' ? ${held("oldObject")} : '${before}' + (variables.known != '' ? variables.known : ${generation}) + '${after}'`,
  },
  stops: pauses,
}

/**
 * Holds a workload in the very write that changes its template, so that its controller never sees the change without
 * the hold. It exempts no user, our own token included. Any change is held: whether it can go in place is decided
 * afterwards, and what cannot is released.
 *
 * A hold must not outlast the right to release it, so the policy has the grant (`aim grant`) as its parameter: where
 * there is none, nothing is held, and the update is a native one.
 */
const holdPolicy = (
  grant: "RoleBinding" | "ClusterRoleBinding",
  name: string,
  { resource, stop, variables, stops }: KindHold,
): MutatingPolicy => ({
  name,
  paramName: grantName,
  spec: {
    // An update that cannot be held is a native one.
    failurePolicy: "Ignore",
    reinvocationPolicy: "IfNeeded",
    paramKind: { apiVersion: "rbac.authorization.k8s.io/v1", kind: grant },
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: ["apps"],
          apiVersions: ["v1"],
          resources: [resource],
          operations: ["UPDATE"],
          scope: "Namespaced",
        },
      ],
    },
    matchConditions: named(conditionsOf(stop)),
    variables: named({ ...variables, isHolding: isHolding(stop) }),
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: { expression: `${markWith("variables.held")} + (variables.isHolding ? ${stops} : [])` },
      },
    ],
  },
})

const kinds = { "": deploymentHold, "-statefulsets": statefulSetHold, "-daemonsets": daemonSetHold }

/** For each kind, one policy for the grant of a namespace and one for the grant of the whole cluster. */
export const inPlaceHolds: readonly MutatingPolicy[] = Object.entries(kinds).flatMap(([suffix, kind]) => [
  holdPolicy("RoleBinding", `aim-in-place-hold${suffix}`, kind),
  holdPolicy("ClusterRoleBinding", `aim-in-place-hold${suffix}-everywhere`, kind),
])
