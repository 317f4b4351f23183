import { Canary } from "#api/v1alpha1/canary/index.ts"
import { canaryHolder, canaryHoldOf } from "#core/canary/hold.ts"
import { holdBegins } from "#core/in-place/marks.ts"
import { heldMark } from "#core/in-place/names.ts"
import { deploymentStop, entry, hasNewTemplate, held, isHeld, isReleased, isRewritten, pauses } from "./hold-marks.ts"
import { type MutatingPolicy, named } from "./policy.ts"

const [begins, , middle, , ends] = canaryHoldOf("", "")

/** How every hold of this Canary begins. */
const beginning = `'${begins}' + params.metadata.name + '${middle}'`
const isOurs = (object: string) => `${held(object)}.startsWith(${beginning})`

const isTarget = [
  "params.spec.targetRef.kind == 'Deployment'",
  // A revision of an OAM component is a workload of its own: nothing is held there.
  "params.spec.?provider.orValue('') != 'oam'",
  "params.spec.targetRef.apiVersion.startsWith('apps/')",
  "params.spec.targetRef.name == object.metadata.name",
].join(" && ")

/**
 * A hold must not outlast the part that ends it. So a Canary holds once its controller has adopted the target, and no
 * longer when it is being deleted, or when the controller has reported that it may not write in this namespace. A Canary
 * that is suspended does hold: the change waits, and no revision gets requests without a proof.
 */
const mayHold = [
  "!has(params.metadata.deletionTimestamp)",
  "!(params.?status.?phase.orValue('') in ['', 'Terminating', 'Terminated'])",
  // While it adopts, the controller asks by a dry run whether a policy would hold.
  "(params.?status.?phase.orValue('') != 'Initializing' || (has(request.dryRun) && request.dryRun))",
  "!params.?status.?conditions.orValue([]).exists(each, each.type == 'Stalled' && each.status == 'True' && each.?reason.orValue('') == 'Forbidden')",
].join(" && ")

const isHolding = `${mayHold} && (${hasNewTemplate} || (${deploymentStop.isAgain}))`

/** The marks go with the release and with nothing else, also while the Canary is being deleted: its controller reads them. */
const hasLostMark = `${isHeld("oldObject")} && !${isReleased(deploymentStop)} && (!${isHeld("object")} || ${isRewritten})`

/**
 * One hold per workload. An update in place holds in the same write, by its own policy or with a stamp of aim's: the
 * Canary has adopted the Deployment, so it is the one that holds, whichever policy comes first.
 */
const isTakenOver = `(${held("object")}.startsWith('${holdBegins}') && !${deploymentStop.isStopped("oldObject")})`

/**
 * Holds a Deployment in the very write that changes its template, where a Canary of the namespace names it: the
 * Deployment's own controller never sees the change without the pause. It exempts no user, our own token included.
 */
export const canaryHold: MutatingPolicy = {
  name: "aim-canary-hold",
  spec: {
    // An update that cannot be held is a native one.
    failurePolicy: "Ignore",
    reinvocationPolicy: "IfNeeded",
    paramKind: { apiVersion: Canary.apiVersion, kind: Canary.kind },
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
      target: isTarget,
      "holds-or-marks": `(${isHolding}) || (${hasLostMark})`,
      "not-of-its-owner": `${isHeld("oldObject")} || !(${deploymentStop.isOwners}) || ${isOurs("object")} || ${isTakenOver}`,
      "not-held-by-another": `!${isHeld("oldObject")} || ${isOurs("oldObject")}`,
      // Of two Canaries for one Deployment the first holds.
      "not-held-by-another-now": `${isHeld("oldObject")} || !${isHeld("object")} || ${isOurs("object")} || ${isTakenOver}`,
    }),
    variables: named({
      // After `kubectl rollout undo` the new object may carry the hold of long ago: only the old object's counts.
      held: `${isHeld("oldObject")} ? ${held("oldObject")} : ${beginning} + string(oldObject.metadata.generation) + '${ends}'`,
      isHolding,
    }),
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: {
          expression: [
            entry("labels", heldMark, `'${canaryHolder}'`),
            entry("annotations", heldMark, "variables.held"),
            `(variables.isHolding ? ${pauses} : [])`,
          ].join(" + "),
        },
      },
    ],
  },
}
