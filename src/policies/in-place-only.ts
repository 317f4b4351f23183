import { inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { restartedAt } from "#core/in-place/template.ts"
import { annotation, hasNewTemplate, isHeld } from "./hold-marks.ts"
import { inPlaceWorkloads } from "./in-place-marks.ts"
import { named, type ValidatingPolicy } from "./policy.ts"

const containerFields = [
  "env",
  "envFrom",
  "command",
  "args",
  "resources",
  "ports",
  "volumeMounts",
  "volumeDevices",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "lifecycle",
  "securityContext",
  "workingDir",
  "imagePullPolicy",
  "restartPolicy",
]

const podFields = [
  "volumes",
  "serviceAccountName",
  "nodeSelector",
  "affinity",
  "tolerations",
  "topologySpreadConstraints",
  "securityContext",
  "imagePullSecrets",
  "readinessGates",
  "terminationGracePeriodSeconds",
  "hostNetwork",
  "restartPolicy",
]

const [now, before] = ["object.spec.template.spec", "oldObject.spec.template.spec"]
type List = "containers" | "initContainers"
const listOf = (spec: string, list: List) => `${spec}.?${list}.orValue([])`

/** The first that differs of an optional field of two things, or ''. */
const firstOf = (fields: readonly string[], [a, b]: readonly [string, string], last = "''") =>
  `${fields.map(field => `${a}.?${field} != ${b}.?${field} ? '${field}' : `).join("")}${last}`

/** An ordinary init container has run already. */
const lastOf = {
  containers: "''",
  initContainers: "new.?image != old.?image && new.?restartPolicy.orValue('') != 'Always' ? 'image' : ''",
}

/** Paths of changed fields, one for each container; those that end in a dot are no change. */
const changedIn = (list: List) => {
  const field = firstOf(containerFields, ["new", "old"], lastOf[list])
  const path = `'spec.${list}[' + new.name + '].' + (${field})`
  const olds = `${listOf(before, list)}.filter(old, old.name == new.name)`
  return `${listOf(now, list)}.map(new, ${olds}.map(old, ${path})).filter(paths, paths.size() > 0 && !paths[0].endsWith('.'))`
}

const namesDiffer = (list: List) =>
  `${listOf(now, list)}.map(each, each.name) != ${listOf(before, list)}.map(each, each.name)`

const restart = (object: string) => `${object}.spec.template.?metadata.?annotations[?'${restartedAt}']`

const say = `write annotation ${strategyAnnotation}: Recreate with this change, or InPlaceIfPossible, and pods are replaced`

/**
 * Under `InPlaceOnly` a change that a running pod cannot get would be held until a person decides. The common fields are
 * refused instead, in the user's own write, with the path that `changeOf` gives.
 */
export const inPlaceOnly: ValidatingPolicy = {
  name: "aim-in-place-only",
  validationActions: ["Deny"],
  spec: {
    // It is asked about every workload: what it cannot judge is held.
    failurePolicy: "Ignore",
    matchConstraints: { resourceRules: [inPlaceWorkloads("UPDATE")] },
    matchConditions: named({
      "in-place-only": `${annotation("object", strategyAnnotation)} == 'InPlaceOnly'`,
      "new-template": hasNewTemplate,
      // One that is held for such a field already can be taken back.
      "not-stuck": `!${isHeld("oldObject")} || !${annotation("oldObject", inPlaceAnnotation)}.contains('"reason":"NotInPlace"')`,
    }),
    variables: named({
      pod: firstOf(podFields, [now, before]),
      inits: changedIn("initContainers"),
      containers: changedIn("containers"),
      path: [
        `${restart("object")} != ${restart("oldObject")} ? 'metadata.annotations[${restartedAt}]'`,
        "variables.pod != '' ? 'spec.' + variables.pod",
        `${namesDiffer("initContainers")} ? 'spec.initContainers'`,
        `${namesDiffer("containers")} ? 'spec.containers'`,
        "variables.inits.size() > 0 ? variables.inits[0][0]",
        "variables.containers.size() > 0 ? variables.containers[0][0]",
        "''",
      ].join(" : "),
    }),
    validations: [
      {
        expression: "variables.path == ''",
        reason: "Invalid",
        message: `a running pod cannot get this change of the template: ${say}`,
        messageExpression: `variables.path + ' of the template cannot change in a running pod, and update-strategy is InPlaceOnly: ${say}'`,
      },
    ],
  },
}
