import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { decisionAnnotation } from "#core/image/record.ts"
import { mirrorMark, skipMark } from "#core/pods/left-alone.ts"
import { type MutatingPolicy, named } from "./policy.ts"

/** As many as a decision may name, see core/image/record.ts. */
const containersToldMost = 16

const marked = (mark: string) =>
  ["labels", "annotations"].map(marks => `object.metadata.?${marks}[?'${mark}'].orValue('') == 'true'`).join(" || ")

/** The containers of a list whose image may change, each with the path of its image. */
const containersIn = (list: string) =>
  [
    `object.spec.?${list}.orValue([]).transformList(i, container, container.?imagePullPolicy.orValue('') != 'Never',`,
    `{'path': '/spec/${list}/' + string(i) + '/image', 'name': string(container.name), 'image': string(container.?image.orValue(''))})`,
  ].join(" ")

/** JSON of texts whose characters need no escaping: the schema of the status admits no others. */
const json = (fields: Readonly<Record<string, string>>) =>
  `'{' + ${Object.entries(fields)
    .map(([name, expression]) => `'"${name}":' + ${expression}`)
    .join(" + ',' + ")} + '}'`
const quoted = (expression: string) => `'"' + ${expression} + '"'`

const annotations = "/metadata/annotations"

const variables = named({
  labels: "object.metadata.?labels.orValue({})",
  // Only if the spec still lists it: the status alone must not send a pod anywhere.
  allowed: [
    "params.spec.imageSourceReplacements.map(replacement, replacement.equivalentRepositories.filter(repository,",
    "!(repository in params.spec.?policy.?disabledRepositories.orValue([]))))",
  ].join(" "),
  incidents: [
    "params.status.targetsAvailable.filter(target, target.?incident.?working.orValue('') != ''",
    "target.incident.?matchLabels.orValue({}).size() > 0",
    "target.incident.matchLabels.all(key, variables.labels[?key] == target.incident.matchLabels[?key])",
    "variables.allowed.exists(repositories, target.incident.working in repositories)",
    "target.incident.image.startsWith(target.incident.failing)",
    // A tag, a digest, both or neither: otherwise it is not the repository of this image.
    "target.incident.image.substring(target.incident.failing.size()).matches('^(:[^:/@]+)?(@[^/@]+)?$'))",
  ].join(" && "),
  containers: `${containersIn("initContainers")} + ${containersIn("containers")}`,
  // About exactly this image of a container: another tag does not count. The first match decides.
  changes: [
    "variables.containers.map(container, {'container': dyn(container), 'targets': dyn(variables.incidents.filter(target,",
    "target.container == container.name && target.incident.image == container.image))})",
    ".filter(found, found.targets.size() > 0).map(found, {'path': found.container.path, 'name': found.container.name,",
    "'from': found.container.image, 'to': dyn(found.targets[0].incident.working",
    "+ found.container.image.substring(found.targets[0].incident.failing.size())",
    // Where the same bits are required, the digest is added. An image with a digest of its own has no pin.
    "+ (found.targets[0].incident.?pin.orValue('') == '' ? '' : '@' + found.targets[0].incident.pin)),",
    "'target': found.targets[0]})",
  ].join(" "),
  first: "variables.changes[0].target",
  switches: "variables.first.?switches.orValue([])",
  last: "variables.switches.size() > 0 ? variables.switches[variables.switches.size() - 1] : {}",
  decision: json({
    from: quoted("variables.changes[0].from"),
    was: [
      `'{' + variables.changes.transformList(i, change, i < ${containersToldMost},`,
      `'"' + change.name + '":"' + change.from + '"').join(',') + '}'`,
    ].join(" "),
    to: quoted("variables.changes[0].to"),
    reason: quoted("variables.last.?reason.orValue(variables.first.incident.reason)"),
    operation: quoted("'incident-' + variables.first.incident.since"),
    by: quoted(`'${AlternateImageSource.singular}/' + params.metadata.name`),
    // CEL has no clock: this is the time when the first pods were switched.
    at: quoted("variables.last.?time.orValue(variables.first.incident.since)"),
  }),
})

/**
 * Pods that are created during an incident pull from where it works, instead of failing first. An error here
 * does no harm: the pod is created as requested, and repaired when it fails.
 */
export const alternateImageSourceNewPods: MutatingPolicy = {
  name: "aim-alternateimagesource-new-pods",
  spec: {
    failurePolicy: "Ignore",
    // Containers that are added later in the same request, such as sidecars, are handled too.
    reinvocationPolicy: "IfNeeded",
    paramKind: { apiVersion: AlternateImageSource.apiVersion, kind: AlternateImageSource.kind },
    matchConstraints: {
      resourceRules: [
        { apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" },
      ],
    },
    matchConditions: named({
      "during-an-incident":
        "params.?status.?targetsAvailable.orValue([]).exists(target, target.?incident.?working.orValue('') != '')",
      "may-be-changed": `!(${marked(skipMark)} || '${mirrorMark}' in object.metadata.?annotations.orValue({}))`,
    }),
    variables,
    mutations: [
      {
        // It names exactly the fields that change; an ApplyConfiguration would merge the whole pod.
        patchType: "JSONPatch",
        jsonPatch: {
          expression: [
            "variables.changes.map(change, JSONPatch{op: 'replace', path: change.path, value: change.to})",
            [
              "(variables.changes.size() == 0 ? []",
              `has(object.metadata.annotations) ? [JSONPatch{op: 'add', path: '${annotations}/' + jsonpatch.escapeKey('${decisionAnnotation}'), value: variables.decision}]`,
              `[JSONPatch{op: 'add', path: '${annotations}', value: {'${decisionAnnotation}': variables.decision}}])`,
            ].join(" : "),
          ].join(" + "),
        },
      },
    ],
  },
}
