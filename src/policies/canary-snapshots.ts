import { Canary } from "#api/v1alpha1/canary/index.ts"
import { snapshotPolicy } from "#core/canary/config-refs.ts"
import { revisionLabel } from "#core/in-place/names.ts"
import { hashLabel } from "#core/in-place/template.ts"
import { type MutatingPolicy, named } from "./policy.ts"

const reference = (path: string, name: string) => `{'path': ${path}, 'name': string(${name}.?name.orValue(''))}`

/** The paths of ConfigMaps that containers of a list read into their environment. */
const inContainers = (list: "initContainers" | "containers") => {
  const of = (field: string, ref: string, has: string) =>
    [
      `object.spec.?${list}.orValue([]).transformList(i, container, container.?${field}.orValue([]).transformList(j, each,`,
      `${has}, ${reference(`'/spec/${list}/' + string(i) + '/${field}/' + string(j) + '/${ref.replaceAll(".", "/")}/name'`, `each.${ref}`)})).flatten()`,
    ].join(" ")
  return [
    of("env", "valueFrom.configMapKeyRef", "has(each.valueFrom) && has(each.valueFrom.configMapKeyRef)"),
    of("envFrom", "configMapRef", "has(each.configMapRef)"),
  ].join(" + ")
}

const volumes = "object.spec.?volumes.orValue([])"
const inVolumes = `${volumes}.transformList(i, volume, has(volume.configMap), ${reference("'/spec/volumes/' + string(i) + '/configMap/name'", "volume.configMap")})`
const inProjected = [
  `${volumes}.transformList(i, volume, volume.?projected.?sources.orValue([]).transformList(j, each,`,
  `has(each.configMap), ${reference("'/spec/volumes/' + string(i) + '/projected/sources/' + string(j) + '/configMap/name'", "each.configMap")})).flatten()`,
].join(" ")

/**
 * Is the pod of this revision? By its owner as well as by its label: other workloads may have the same template, and then
 * their pods have the same hash.
 */
const isOf = (revision: string) =>
  [
    "(params.spec.targetRef.kind == 'Deployment'",
    [
      "? variables.owner.kind == 'ReplicaSet'",
      "variables.hash != ''",
      `variables.owner.name == ${revision}.workload + '-' + variables.hash`,
      `${revision}.?hash.orValue(variables.hash) == variables.hash`,
    ].join(" && "),
    [
      ": variables.owner.kind == params.spec.targetRef.kind",
      `variables.owner.name == ${revision}.workload`,
      "variables.revision != ''",
      `${revision}.?hash.orValue('') == variables.revision)`,
    ].join(" && "),
  ].join(" ")

/** What the status says must fit the spec: the status alone must not change any other workload's pods. */
const isOfTarget = (revision: string) =>
  `(${revision}.workload == params.spec.targetRef.name || ${revision}.workload.startsWith(params.spec.targetRef.name + '-'))`

const label = (name: string) => `object.metadata.?labels[?'${name}'].orValue('')`

/**
 * New pods of a revision read the ConfigMaps that it was promoted with, or is proven with: each as its snapshot, whose name
 * begins with the name of the ConfigMap. The template stays as its owner wrote it. An error does no harm: such a pod reads
 * the ConfigMap itself.
 */
export const canarySnapshots: MutatingPolicy = {
  name: snapshotPolicy,
  spec: {
    failurePolicy: "Ignore",
    // Containers that are added later in the same request are handled too.
    reinvocationPolicy: "IfNeeded",
    paramKind: { apiVersion: Canary.apiVersion, kind: Canary.kind },
    matchConstraints: {
      resourceRules: [
        { apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" },
      ],
    },
    matchConditions: named({
      "has-snapshots": "params.?status.?configs.orValue([]).exists(each, each.?snapshots.orValue({}).size() > 0)",
      controlled: "object.metadata.?ownerReferences.orValue([]).exists(each, each.?controller.orValue(false))",
    }),
    variables: named({
      owner: "object.metadata.ownerReferences.filter(each, each.?controller.orValue(false))[0]",
      hash: label(hashLabel),
      revision: label(revisionLabel),
      read: [
        "!variables.owner.apiVersion.startsWith('apps/') ? []",
        `params.status.configs.filter(each, ${isOfTarget("each")} && ${isOf("each")})`,
      ].join(" : "),
      suffixes: "variables.read.size() > 0 ? variables.read[0].?snapshots.orValue({}) : {}",
      references: [inVolumes, inProjected, inContainers("initContainers"), inContainers("containers")].join(" + "),
    }),
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: {
          expression: [
            "variables.references.filter(each, each.name in variables.suffixes)",
            ".map(each, JSONPatch{op: 'replace', path: each.path, value: each.name + '-' + variables.suffixes[each.name]})",
          ].join(""),
        },
      },
    ],
  },
}
