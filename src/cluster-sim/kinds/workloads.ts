import type { Json, Obj } from "../object.ts"
import { age, containerCells, formatLabels, formatSelector, selectorText } from "./cells.ts"
import type { Definition } from "./define.ts"
import { edit, editEach, fill, fillZero, same, set } from "./edit.ts"
import { claimSpecDefaults, templateDefaults } from "./pod-defaults.ts"
import { validateRevision, validateRevisionUpdate } from "./policy-validation.ts"
import {
  keepsSelector,
  validateCounts,
  validateDaemonSet,
  validateDeployment,
  validateReplicaSet,
  validateStatefulSet,
  validateStatefulSetUpdate,
} from "./workload-validation.ts"

const scale = { spec: ".spec.replicas", status: ".status.replicas", selector: ".status.selector" }

const specDefaults = (object: Json, change: (spec: Json) => Json): Json => {
  const spec = object.spec ?? {}
  return set(object, "spec", change(set(spec, "template", templateDefaults(spec.template))))
}

export const deployment: Definition = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  scale,
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default: object =>
      specDefaults(object, spec => {
        const strategy = fillZero(spec.strategy ?? {}, { type: "RollingUpdate" })
        const rolling = fill(strategy.rollingUpdate ?? {}, { maxUnavailable: "25%", maxSurge: "25%" })
        return fill(
          set(spec, "strategy", strategy.type === "RollingUpdate" ? set(strategy, "rollingUpdate", rolling) : strategy),
          { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
        )
      }),
    prepareCreate: withEmptyStatus,
    validateCreate: validateDeployment,
    validateUpdate: keepsSelector(validateDeployment),
    validateStatusUpdate: validateCounts(
      [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
      ],
      ["updatedReplicas", "readyReplicas", "availableReplicas"],
      "readyReplicas",
    ),
    prepareStatusUpdate: statusWithoutLabels,
    // A changed annotation counts, so that the controller sees a new change-cause.
    movesGeneration: (object, old) =>
      !same(object.spec, old.spec) || !same(object.metadata.annotations, old.metadata.annotations),
  },
  row(object, nowMs) {
    const { spec, status = {} } = object
    return [
      object.metadata.name,
      `${status.readyReplicas ?? 0}/${spec.replicas}`,
      status.updatedReplicas ?? 0,
      status.availableReplicas ?? 0,
      age(object, nowMs),
      ...containerCells(spec.template.spec),
      selectorText(spec.selector),
    ]
  },
}

export const replicaSet: Definition = {
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  scale,
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default: object => specDefaults(object, spec => fill(spec, { replicas: 1 })),
    prepareCreate: object => set(object, "status", { replicas: 0 }),
    validateCreate: validateReplicaSet,
    validateUpdate: keepsSelector(validateReplicaSet),
    validateStatusUpdate: validateCounts(
      ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
      ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
      "readyReplicas",
    ),
    selectableFields: ({ status }) => ({ "status.replicas": String(status?.replicas ?? 0) }),
  },
  row: (object, nowMs) => [
    object.metadata.name,
    object.spec.replicas,
    object.status?.replicas ?? 0,
    object.status?.readyReplicas ?? 0,
    age(object, nowMs),
    ...containerCells(object.spec.template?.spec),
    formatSelector(object.spec.selector),
  ],
}

export const statefulSet: Definition = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  scale,
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default: object =>
      specDefaults(object, given => {
        let spec = fillZero(given, { podManagementPolicy: "OrderedReady" })
        let update = spec.updateStrategy ?? {}
        if (!update.type) update = { ...update, type: "RollingUpdate", rollingUpdate: update.rollingUpdate ?? {} }
        if (update.type === "RollingUpdate")
          update = edit(update, "rollingUpdate", rolling => fill(rolling, { partition: 0 }))
        spec = set(spec, "updateStrategy", update)
        const retention = fillZero(spec.persistentVolumeClaimRetentionPolicy ?? {}, {
          whenDeleted: "Retain",
          whenScaled: "Retain",
        })
        spec = set(spec, "persistentVolumeClaimRetentionPolicy", retention)
        spec = editEach(spec, "volumeClaimTemplates", claim =>
          set(
            edit(fill(claim, { apiVersion: "v1", kind: "PersistentVolumeClaim" }), "spec", claimSpecDefaults),
            "status",
            fillZero(claim.status ?? {}, { phase: "Pending" }),
          ),
        )
        return fill(spec, { replicas: 1, revisionHistoryLimit: 10 })
      }),
    prepareCreate: object => set(object, "status", { replicas: 0, availableReplicas: 0 }),
    validateCreate: validateStatefulSet,
    validateUpdate: validateStatefulSetUpdate,
    validateStatusUpdate: validateCounts(
      ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration"],
      ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
      "status.readyReplicas",
    ),
  },
  row: (object, nowMs) => [
    object.metadata.name,
    `${object.status?.readyReplicas ?? 0}/${object.spec.replicas}`,
    age(object, nowMs),
    ...containerCells(object.spec.template.spec),
  ],
}

export const daemonSet: Definition = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default: object => {
      const next = specDefaults(object, spec => {
        const update = fillZero(spec.updateStrategy ?? {}, { type: "RollingUpdate" })
        const isRolling = update.type === "RollingUpdate"
        // Under OnDelete there are no defaults, but the server's internal form has a number in each field of a block.
        const rolling = fill(update.rollingUpdate ?? {}, { maxUnavailable: isRolling ? 1 : 0, maxSurge: 0 })
        const hasBlock = isRolling || update.rollingUpdate
        return fill(set(spec, "updateStrategy", hasBlock ? set(update, "rollingUpdate", rolling) : update), {
          revisionHistoryLimit: 10,
        })
      })
      // The server's internal form always has the annotation, so the manager that creates the object owns it too.
      return object.metadata.annotations?.[templateGenerationKey] ? next : templateGeneration(next, "0")
    },
    prepareCreate: object => set(templateGeneration(object, "1"), "status", noDaemons),
    validateCreate: validateDaemonSet,
    validateUpdate: keepsSelector(validateDaemonSet, { isFirst: true }),
    prepareUpdate(object, old) {
      const before = old.metadata.annotations?.[templateGenerationKey] ?? "0"
      const changes = !same(object.spec.template, old.spec.template)
      return templateGeneration(object, changes ? String(Number(before) + 1) : before)
    },
  },
  row(object, nowMs) {
    const { spec, status = {} } = object
    return [
      object.metadata.name,
      status.desiredNumberScheduled ?? 0,
      status.currentNumberScheduled ?? 0,
      status.numberReady ?? 0,
      status.updatedNumberScheduled ?? 0,
      status.numberAvailable ?? 0,
      formatLabels(spec.template.spec.nodeSelector),
      age(object, nowMs),
      ...containerCells(spec.template.spec),
      formatSelector(spec.selector),
    ]
  },
}

const noDaemons = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 }

const templateGenerationKey = "deprecated.daemonset.template.generation"

/** A field of early DaemonSets that is kept as an annotation. */
function templateGeneration(object: Json, generation: string): Json {
  const annotations = set(object.metadata.annotations ?? {}, templateGenerationKey, generation)
  return set(object, "metadata", set(object.metadata, "annotations", annotations))
}

export const controllerRevision: Definition = {
  apiVersion: "apps/v1",
  kind: "ControllerRevision",
  strategy: { validateCreate: validateRevision, validateUpdate: validateRevisionUpdate },
  row(object, nowMs) {
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller)
    const group = owner?.apiVersion.includes("/") ? `.${owner.apiVersion.split("/")[0]}` : ""
    return [
      object.metadata.name,
      owner ? `${owner.kind.toLowerCase()}${group}/${owner.name}` : "<none>",
      object.revision,
      age(object, nowMs),
    ]
  },
}

function withEmptyStatus(object: Json): Json {
  return set(object, "status", {})
}

/** The controller writes the status with an old copy of the Deployment, whose labels must not be restored. */
function statusWithoutLabels(object: Json, old: Obj): Json {
  const metadata = set(object.metadata, "labels", old.metadata.labels)
  return set({ ...old, apiVersion: object.apiVersion, kind: object.kind, metadata }, "status", object.status)
}
