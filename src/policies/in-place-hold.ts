import { grantName } from "#core/grant.ts"
import { holdOf } from "#core/in-place/marks.ts"
import { heldMark, inPlaceHolder, inPlaceStrategies, strategyAnnotation } from "#core/in-place/names.ts"
import { type MutatingPolicy, named } from "./policy.ts"

const annotation = (object: string, name: string) => `${object}.metadata.?annotations[?'${name}'].orValue('')`
const label = (object: string, name: string) => `${object}.metadata.?labels[?'${name}'].orValue('')`
const hasHold = (object: string) => `${annotation(object, heldMark)} != ''`
/** `kubectl rollout undo` may bring back the annotation of long ago: without the label it holds nothing. */
const isHeld = (object: string) => `(${hasHold(object)} && ${label(object, heldMark)} != '')`
const key = heldMark.replace("/", "~1")
const [before, generation, after] = holdOf("string(oldObject.metadata.generation)")

/**
 * Holds a Deployment in the very write that changes its template, so that its controller never sees the change without
 * the pause. It exempts no user, our own token included. Any change is held: whether it can go in place is decided
 * afterwards, and what cannot is released.
 *
 * A hold must not outlast the right to release it, so the policy has the grant (`aim grant`) as its parameter: where
 * there is none, nothing is held, and the update is a native one.
 */
const hold = (grant: "RoleBinding" | "ClusterRoleBinding", name: string): MutatingPolicy => ({
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
          resources: ["deployments"],
          operations: ["UPDATE"],
          scope: "Namespaced",
        },
      ],
    },
    matchConditions: named({
      "in-place": `${annotation("object", strategyAnnotation)} in [${inPlaceStrategies.map(each => `'${each}'`).join(", ")}]`,
      "new-template": "object.spec.template != oldObject.spec.template",
      // A pause without our annotation is its owner's, and is never touched.
      "not-paused-by-its-owner": `${isHeld("oldObject")} || !object.spec.?paused.orValue(false)`,
      // Without the annotation: a label that is lost is put back.
      "not-released": `!${isHeld("oldObject")} || ${hasHold("object")}`,
      "not-held-by-another": `!${isHeld("oldObject")} || ${annotation("oldObject", heldMark)}.startsWith('${before.split(",")[0]},')`,
    }),
    variables: named({
      // After `kubectl rollout undo` the new object may carry the hold of long ago: only the old object's counts.
      held: `${isHeld("oldObject")} ? ${annotation("oldObject", heldMark)} : '${before}' + ${generation} + '${after}'`,
    }),
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: {
          expression: [
            [
              `(has(object.metadata.labels) ? [JSONPatch{op: 'add', path: '/metadata/labels/${key}', value: '${inPlaceHolder}'}]`,
              `[JSONPatch{op: 'add', path: '/metadata/labels', value: {'${heldMark}': '${inPlaceHolder}'}}])`,
            ].join(" : "),
            [
              `[JSONPatch{op: 'add', path: '/metadata/annotations/${key}', value: variables.held}`,
              "JSONPatch{op: 'add', path: '/spec/paused', value: true}]",
            ].join(", "),
          ].join(" + "),
        },
      },
    ],
  },
})

export const inPlaceHold = hold("RoleBinding", "aim-in-place-hold")
export const inPlaceHoldEverywhere = hold("ClusterRoleBinding", "aim-in-place-hold-everywhere")
