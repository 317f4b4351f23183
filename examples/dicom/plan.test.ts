import { expect, test } from "vitest"
import { conditionOf } from "#runtime/conditions.ts"
import { type Deployment, type DeploymentStatus, manifestFor, toDeployment } from "./deployment.ts"
import { type Dicom, type DicomSpec, toDicom } from "./dicom.ts"
import { type Action, plan, type Snapshot } from "./plan.ts"

const now = Date.parse("2030-01-01T00:00:00Z")
const earlier = "2029-12-31T00:00:00Z"

/** A tenant at generation 5 that has said, for this generation, that all is well. */
function tenant(spec: Partial<DicomSpec> = {}, { generation = 5, ...rest }: Partial<Dicom> = {}): Dicom {
  const dicom = toDicom({
    metadata: { name: "hospital", namespace: "tenants", uid: "uid-d", resourceVersion: "10", generation },
    ...{ spec: { image: "dicom:v1", replicas: 3, ...spec } },
  })
  const said = (type: string, reason: string, message: string) => ({
    ...{ type, status: "True" as const, reason, message, observedGeneration: 5, lastTransitionTime: earlier },
  })
  dicom.status = {
    observedGeneration: 5,
    conditions: [
      said("UpToDate", "RolledOut", "every pod runs dicom:v1"),
      said("Deployed", "HasBeenAvailable", "has been available at least once"),
    ],
  }
  return { ...dicom, ...rest }
}

const settled: DeploymentStatus = {
  observedGeneration: 7,
  replicas: 3,
  updatedReplicas: 3,
  availableReplicas: 3,
  conditions: [
    { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
    { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
  ],
}

/** The Deployment of `dicom` as the server gives it back: defaults filled in, what was empty left out. */
function deploymentOf(dicom: Dicom, status: Partial<DeploymentStatus> = {}): Deployment {
  const { metadata, spec, ...kind } = manifestFor(dicom)
  const { nodeSelector, tolerations, containers, ...pod } = spec.template.spec
  const served = containers.map(({ env, ...container }) => ({
    ...container,
    ...(env.length > 0 && { env }),
    imagePullPolicy: "IfNotPresent",
  }))
  const template = {
    metadata: { ...spec.template.metadata, annotations: { "kubectl.kubernetes.io/restartedAt": earlier } },
    spec: {
      ...pod,
      restartPolicy: "Always",
      containers: served,
      ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
      ...(tolerations.length > 0 && { tolerations }),
    },
  }
  return toDeployment({
    ...kind,
    metadata: { ...metadata, uid: "uid-w", resourceVersion: "11", generation: 7 },
    ...{ spec: { ...spec, revisionHistoryLimit: 10, template }, status: { ...settled, ...status } },
  })
}

const calm: Snapshot = { dicom: tenant(), deployment: deploymentOf(tenant()), now }

/** Never deployed before: no status yet. */
const fresh = (spec: Partial<DicomSpec> = {}) => tenant(spec, { status: {} })
const onNodes = (type: string, more: Record<string, string> = {}) => ({ nodeSelector: { type, ...more } })

function words(actions: Action[]) {
  const status = actions.find(action => action.do === "report")?.status
  const reported = ["UpToDate", "Deployed"].flatMap(type => conditionOf(status?.conditions, type) ?? [])
  const applied = actions.find(action => action.do === "apply")?.deployment.spec.template.spec.containers[0]?.image
  return {
    ...(reported.length > 0 && { says: reported.map(({ type, status, reason }) => `${type}=${status} ${reason}`) }),
    ...(applied !== undefined && { applies: applied }),
  }
}

const rolling = ["UpToDate=False RollingOut", "Deployed=True HasBeenAvailable"]
const cases: Record<string, { given: Partial<Snapshot>; says?: string[]; applies?: string }> = {
  "a world in order needs nothing": { given: {} },

  // Nothing before there is an image; then a Deployment.
  "without an image nothing is created": {
    given: { dicom: fresh({ image: "" }), deployment: undefined },
    says: ["UpToDate=False NoImage", "Deployed=False NotYetAvailable"],
  },
  "the first image creates the Deployment": {
    given: { dicom: fresh(), deployment: undefined },
    says: ["UpToDate=False RollingOut", "Deployed=False NotYetAvailable"],
    applies: "dicom:v1",
  },
  "an image taken away leaves the pods alone": {
    given: { dicom: tenant({ image: "" }, { generation: 6 }) },
    says: ["UpToDate=False NoImage", "Deployed=True HasBeenAvailable"],
  },

  // A change, and the way to UpToDate.
  "a new image is not up to date, and is applied": {
    given: { dicom: tenant({ image: "dicom:v2" }, { generation: 6 }) },
    says: rolling,
    applies: "dicom:v2",
  },
  "counts of the previous template do not count": {
    given: { deployment: deploymentOf(tenant(), { observedGeneration: 6 }) },
    says: rolling,
  },
  "a status ahead of the generation counts": {
    given: { deployment: deploymentOf(tenant(), { observedGeneration: 8 }) },
  },
  // Each of the next three breaks exactly one of the three equalities and keeps the other two.
  "more pods than wanted, all updated and available": {
    given: { deployment: deploymentOf(tenant(), { replicas: 4, updatedReplicas: 4, availableReplicas: 4 }) },
    says: rolling,
  },
  "an old pod among as many available ones as wanted": {
    given: { deployment: deploymentOf(tenant(), { updatedReplicas: 2 }) },
    says: rolling,
  },
  "an updated pod that is not available": {
    given: { deployment: deploymentOf(tenant(), { availableReplicas: 2 }) },
    says: rolling,
  },
  "no replicas wanted, none there": {
    given: {
      dicom: tenant({ replicas: 0 }),
      deployment: deploymentOf(tenant({ replicas: 0 }), { replicas: 0, updatedReplicas: 0, availableReplicas: 0 }),
    },
  },
  "a new generation that changes nothing in the pods is said to be up to date": {
    given: { dicom: tenant({ failureHaltsUpdate: true }, { generation: 6 }) },
    says: ["UpToDate=True RolledOut", "Deployed=True HasBeenAvailable"],
  },
  "a rollout that got stuck says so": {
    given: {
      deployment: deploymentOf(tenant(), {
        availableReplicas: 2,
        conditions: [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }],
      }),
    },
    says: ["UpToDate=False DeadlineExceeded", "Deployed=True HasBeenAvailable"],
  },
  "a deadline of the previous template is no longer of interest": {
    given: {
      deployment: deploymentOf(tenant(), {
        observedGeneration: 6,
        conditions: [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }],
      }),
    },
    says: rolling,
  },

  // Deployed: once is for ever.
  "the first time available is Deployed, though not all pods are": {
    given: { dicom: fresh(), deployment: deploymentOf(tenant(), { availableReplicas: 2 }) },
    says: ["UpToDate=False RollingOut", "Deployed=True HasBeenAvailable"],
  },
  "a Deployment that lost its pods stays Deployed": {
    given: { deployment: deploymentOf(tenant(), { availableReplicas: 0, conditions: [] }) },
    says: rolling,
  },
  "a deleted Deployment is made again, and the tenant stays Deployed": {
    given: { deployment: undefined },
    says: rolling,
    applies: "dicom:v1",
  },

  // What others did.
  "an image changed by hand is put back": {
    given: { deployment: deploymentOf(tenant({ image: "dicom:mine" })) },
    says: rolling,
    applies: "dicom:v1",
  },
  "scaled by hand is scaled back": {
    given: { deployment: deploymentOf(tenant({ replicas: 5 }), { replicas: 5, updatedReplicas: 5 }) },
    says: rolling,
    applies: "dicom:v1",
  },
  "a Deployment of another owner is left alone": {
    given: { deployment: { ...deploymentOf(tenant()), owner: { name: "hospital", uid: "uid-of-another" } } },
    says: ["UpToDate=False NameTaken", "Deployed=True HasBeenAvailable"],
  },
  "a tenant being deleted is left alone": {
    given: { dicom: tenant({ image: "dicom:v2" }, { isBeingDeleted: true }), deployment: undefined },
  },

  // Other fields of the spec reach the pods, and leave them again.
  "a placement is applied": {
    given: { dicom: tenant({ placement: onNodes("kwok") }) },
    says: rolling,
    applies: "dicom:v1",
  },
  "a label taken out of the placement is taken out of the pods": {
    given: {
      dicom: tenant({ placement: onNodes("kwok") }),
      deployment: deploymentOf(tenant({ placement: onNodes("kwok", { zone: "a" }) })),
    },
    says: rolling,
    applies: "dicom:v1",
  },
  "a toleration taken out is taken out of the pods": {
    given: { deployment: deploymentOf(tenant({ placement: { tolerations: [{ operator: "Exists" }] } })) },
    says: rolling,
    applies: "dicom:v1",
  },
  "a variable taken out is taken out of the pods": {
    given: { deployment: deploymentOf(tenant({ keyVaultUri: "https://vault" })) },
    says: rolling,
    applies: "dicom:v1",
  },
}

for (const [name, { given, ...want }] of Object.entries(cases))
  test(name, () => expect(words(plan({ ...calm, ...given }))).toEqual(want))

test("says before it does, for the generation it looked at, from the Deployment it looked at", () => {
  const [report, apply, ...more] = plan({ ...calm, dicom: tenant({ image: "dicom:v2" }, { generation: 6 }) })
  expect(report).toMatchObject({ do: "report", status: { observedGeneration: 6 } })
  expect(apply).toMatchObject({ do: "apply", uid: "uid-w" })
  expect(more).toEqual([])
})

test("lastTransitionTime moves with the status of a condition and not with its reason or generation", () => {
  const [report] = plan({ ...calm, dicom: tenant({ image: "dicom:v2" }, { generation: 6 }) })
  expect(report?.do === "report" && report.status.conditions).toMatchObject([
    { type: "Deployed", lastTransitionTime: earlier, observedGeneration: 6 },
    { type: "UpToDate", lastTransitionTime: "2030-01-01T00:00:00Z", observedGeneration: 6 },
  ])
})

test("conditions of others are neither sent nor a reason to write", () => {
  const foreign = {
    type: "BackedUp",
    status: "True",
    reason: "Nightly",
    message: "",
    lastTransitionTime: earlier,
  } as const
  const status = { ...calm.dicom.status, conditions: [foreign, ...(calm.dicom.status.conditions ?? [])] }
  expect(plan({ ...calm, dicom: { ...calm.dicom, status } })).toEqual([])
  const [report] = plan({ ...calm, dicom: { ...tenant({ image: "dicom:v2" }, { generation: 6 }), status } })
  expect(report?.do === "report" && report.status.conditions?.map(({ type }) => type)).toEqual(["Deployed", "UpToDate"])
})

test("what was reported is not reported again", () => {
  const given = { ...calm, dicom: tenant({ image: "dicom:v2" }, { generation: 6 }) }
  const [report] = plan(given)
  const dicom = { ...given.dicom, status: report?.do === "report" ? report.status : {} }
  expect(plan({ ...given, dicom, now: now + 60_000 }).map(action => action.do)).toEqual(["apply"])
})
