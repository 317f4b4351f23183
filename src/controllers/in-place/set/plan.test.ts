import { describe, expect, test } from "vitest"
import type { Hold, WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, revisionLabel, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import type { EndingPod, PodFacts } from "#core/in-place/pod.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import type { Adapter } from "../kind.ts"
import { type Action, type Plan, plan as planAny, type Snapshot } from "../plan.ts"
import { daemonSet } from "./daemonset.ts"
import type { HeldSet, SetRevision } from "./facts.ts"
import { statefulSet } from "./statefulset.ts"

const template = (image: string): PodTemplate => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image }] },
})

const adapters = { StatefulSet: statefulSet, DaemonSet: daemonSet }
type Kind = keyof typeof adapters
type Given = Omit<Snapshot, "workload" | "native"> & {
  readonly workload: HeldSet
  readonly revisions: readonly SetRevision[]
  readonly ending?: readonly EndingPod[]
}

const revision = (number: number, image = `web:${number}`): SetRevision => ({
  owner: { uid: "s", name: "web" },
  name: `rev-${number}`,
  hash: `rev-${number}`,
  number,
  template: template(image),
})

const pod = (ordinal: number, number: number, fields: Partial<PodFacts> = {}): PodFacts => ({
  namespace: "shop",
  name: `web-${ordinal}`,
  uid: `p${ordinal}`,
  resourceVersion: "6",
  owner: "s",
  ownerName: "web",
  node: "node-1",
  isReady: true,
  readyChangedAt: undefined,
  pullSecrets: [],
  labels: { [revisionLabel]: `rev-${number}` },
  annotations: {},
  containers: new Map([["web", container(`web:${number}`)]]),
  mark: undefined,
  gate: undefined,
  ...fields,
})
const container = (image: string) => ({
  ...{ image, isInit: false, id: "c", digest: "", restarts: 0 },
  ...{ isRunning: true, isReady: true, waiting: "" },
})
/** Runs the second image, with the label of the first. */
const done = (ordinal: number, fields: Partial<PodFacts> = {}) =>
  pod(ordinal, 2, { labels: { [revisionLabel]: "rev-1" }, ...fields })
const ending = (ordinal: number): EndingPod => {
  const { name, owner, ownerName, node, labels } = pod(ordinal, 1)
  return { name, owner, ownerName, node, labels }
}
const patchedBy = (operation: string, id: string): PodFacts["mark"] => ({
  operation,
  from: { web: "web:1" },
  to: { web: "web:2" },
  was: { web: { id, restarts: 0 } },
  at: 0,
})

const calmStatus: HeldSet["status"] = { pods: 2, updated: 0, strays: 0, update: "rev-2", current: "rev-1" }
const hold: Hold = { by: "in-place", generation: 4, original: { type: "RollingUpdate", rollingUpdate: null } }
const workload = (fields: Partial<HeldSet> = {}): HeldSet => ({
  namespace: "shop",
  name: "web",
  uid: "s",
  resourceVersion: "9",
  generation: 9,
  annotations: { [strategyAnnotation]: "InPlaceIfPossible", [heldMark]: "{}" },
  isInForce: true,
  isObserved: true,
  replicas: 2,
  selector: { matchLabels: { app: "web" } },
  template: template("web:2"),
  minReadySeconds: 0,
  deadlineSeconds: 600,
  maxUnavailable: 1,
  hold,
  note: undefined,
  updateStrategy: undefined,
  ordinals: { isStrict: true },
  status: calmStatus,
  ...fields,
})
const status = (fields: Partial<HeldSet["status"]>) => ({ status: { ...calmStatus, ...fields } })

const calm: Given = {
  workload: workload(),
  isListed: true,
  revisions: [revision(1), revision(2)],
  pods: [pod(0, 1), pod(1, 1)],
  jobs: [],
  disruptions: undefined,
  imageOn: () => ({ is: "Present", digest: "" }),
  isAsked: () => false,
  isProven: () => false,
  nodeOf: () => undefined,
  drainedSince: () => 0,
  upSince: () => 0,
  now: 100_000,
}

const planOf = (kind: Kind, { revisions, ending = [], ...seen }: Given): Plan => {
  const adapter = adapters[kind] as Adapter<HeldSet, SetRevision>
  return planAny({ ...seen, native: adapter.native(seen.workload, revisions, seen.pods, ending) })
}

/** As the plan itself writes it, for this target. */
const started = (fields: Partial<HeldSet> = {}, note: Partial<WorkloadNote> = {}): HeldSet => {
  const fresh = workload(fields)
  const [first] = planOf("StatefulSet", { ...calm, workload: { ...fresh, note: undefined } }).actions
  if (first?.do !== "note") throw new Error("the first action is the note")
  return { ...fresh, note: { ...first.note, ...note } }
}

/** Released after every pod was counted, and not cleaned up. */
const completed = (): HeldSet => {
  const over = started(status({ updated: 2, current: "rev-2" }))
  const release = planOf("StatefulSet", { ...calm, workload: over, pods: [pod(0, 2), pod(1, 2)] }).actions.at(-1)
  if (release?.do !== "release") throw new Error("a release is expected")
  const { [heldMark]: _, ...annotations } = over.annotations
  const { hold: __, ...rest } = over
  return { ...rest, hold: undefined, isInForce: false, annotations, note: release.note }
}
const rewritten = (ordinal: number) =>
  pod(ordinal, 2, {
    mark: patchedBy(started().note!.operation, "old"),
    containers: new Map([["web", container("mirror/web:2")]]),
  })

const words = (action: Action): string => {
  switch (action.do) {
    case "note":
    case "release":
      return `${action.do} ${action.note.reason}${"looksAgain" in action ? ", looks again" : ""}`
    case "pod":
      return `${action.write.do} ${action.write.pod.name}${action.write.do === "label" ? ` ${action.write.revision}` : ""}`
    case "createJob":
      return `createJob ${action.image}`
    default:
      return action.do
  }
}

type Case = { given: () => Partial<Given>; does: string[]; of?: Kind }
const both = [done(0), done(1)]

const cases: Record<string, Case> = {
  "a note before the first pod": { given: () => ({}), does: ["note Updating"] },
  "the highest ordinal first": {
    of: "StatefulSet",
    given: () => ({ workload: started() }),
    does: ["createJob web:2", "patch web-1"],
  },
  "a proven pod is labelled, beside the next patch": {
    given: () => ({ workload: started(), pods: [pod(0, 1), done(1)], jobs: [] }),
    does: ["createJob web:2", "patch web-0", "label web-1 rev-2"],
  },
  "no label for a pod that is not up": {
    given: () => ({ workload: started(), pods: [done(0, { isReady: false }), done(1)] }),
    does: ["label web-1 rev-2"],
  },
  "no label before minReadySeconds": {
    given: () => ({ workload: started({ minReadySeconds: 30 }), pods: both, upSince: () => 90_000 }),
    does: [],
  },
  "no label for a pod that an earlier operation changed and that has not restarted": {
    given: () => ({ workload: started(), pods: [done(0), done(1, { mark: patchedBy("1-x", "c") })] }),
    does: ["label web-0 rev-2"],
  },
  "a label once it has": {
    given: () => ({
      workload: started(status({ updated: 1 })),
      pods: [pod(0, 2), done(1, { mark: patchedBy("1-x", "old") })],
    }),
    does: ["label web-1 rev-2"],
  },
  "no label while it is drained": {
    given: () => ({ workload: started(), pods: [done(0), done(1, { gate: { isDrained: true } })] }),
    does: ["undrain web-1", "label web-0 rev-2"],
  },
  "no label before the hold was seen": {
    given: () => ({ workload: started({ isObserved: false }), pods: both }),
    does: [],
  },
  "no label while the revision is another template's": {
    given: () => ({ workload: started(), pods: both, revisions: [revision(1), revision(2, "web:0")] }),
    does: [],
  },
  "no label while its controller counts labels that are not there": {
    given: () => ({ workload: started(status({ updated: 1 })), pods: both }),
    does: [],
  },
  "no label while its controller counts pods that are not there": {
    given: () => ({ workload: started(status({ pods: 3 })), pods: both }),
    does: [],
  },
  "a pod that is being deleted is counted, and keeps no label from the others": {
    given: () => ({ workload: started(status({ pods: 2 })), pods: [done(1)], ending: [ending(0)] }),
    does: ["label web-1 rev-2"],
  },
  "a pod that is not up is named once that lasts": {
    of: "StatefulSet",
    given: () => ({
      workload: started(status({ updated: 2 })),
      pods: [pod(0, 2, { isReady: false }), pod(1, 2)],
      waitsSince: 90_000,
    }),
    does: ["note PodNotReady"],
  },
  "and not before": {
    of: "StatefulSet",
    given: () => ({
      workload: started(status({ updated: 2 })),
      pods: [pod(0, 2, { isReady: false }), pod(1, 2)],
      waitsSince: 90_001,
    }),
    does: [],
  },
  "nor again": {
    of: "StatefulSet",
    given: () => ({
      workload: started(status({ updated: 2 }), { reason: "PodNotReady" }),
      pods: [pod(0, 2, { isReady: false }), pod(1, 2)],
    }),
    does: [],
  },
  "every pod labelled, and not all counted": {
    given: () => ({ workload: started(status({ updated: 1 })), pods: [pod(0, 2), pod(1, 2)] }),
    does: [],
  },
  "every pod labelled and counted, and the current revision is the old one": {
    of: "StatefulSet",
    given: () => ({ workload: started(status({ updated: 2 })), pods: [pod(0, 2), pod(1, 2)] }),
    does: [],
  },
  "every pod labelled and counted": {
    given: () => ({
      workload: started(status({ updated: 2, current: "rev-2" })),
      pods: [pod(0, 2), pod(1, 2)],
    }),
    does: ["release Completed, looks again"],
  },
  "a pod is missing: no release": {
    given: () => ({ workload: started(status({ pods: 1, updated: 1, current: "rev-2" })), pods: [pod(0, 2)] }),
    does: [],
  },
  "no pods, and none wanted": {
    given: () => ({
      workload: started({ replicas: 0, ...status({ pods: 0, current: "rev-2" }) }),
      pods: [],
    }),
    does: ["release Completed, looks again"],
  },
  "a pod on a node where it should not be is counted neither way": {
    of: "DaemonSet",
    given: () => ({
      workload: started({ replicas: 1, ...status({ pods: 1, updated: 1, strays: 1 }) }),
      pods: [pod(0, 2), pod(1, 2)],
    }),
    does: ["release Completed, looks again"],
  },
  "back: labels of the other revision go as well": {
    given: () => {
      const there = started()
      const back = { ...there, template: template("web:1"), ...status({ update: "rev-1", updated: 1 }) }
      const first = planOf("StatefulSet", { ...calm, workload: back }).actions[0]
      const note = first?.do === "note" ? first.note : undefined
      const later = [{ ...revision(1), number: 3 }, revision(2)]
      const relabelled = pod(1, 1, { labels: { [revisionLabel]: "rev-2" } })
      return { workload: { ...back, note }, revisions: later, pods: [pod(0, 1), relabelled] }
    },
    does: ["label web-1 rev-1"],
  },
  "back: no label while a pod has the image of the other target": {
    given: () => {
      const there = started()
      const back = { ...there, template: template("web:1"), ...status({ update: "rev-1", updated: 1 }) }
      const first = planOf("StatefulSet", { ...calm, workload: back }).actions[0]
      const note = first?.do === "note" ? { ...first.note, touched: there.note!.touched } : undefined
      const later = [{ ...revision(1), number: 3 }, revision(2)]
      const relabelled = pod(1, 1, { labels: { [revisionLabel]: "rev-2" } })
      const left = done(0, { mark: patchedBy(there.note!.operation, "old") })
      return { workload: { ...back, note }, revisions: later, pods: [left, relabelled] }
    },
    does: ["createJob web:1", "patch web-0"],
  },
  "a pod of a revision that is not there": {
    given: () => ({ pods: [pod(0, 1), pod(1, 7)] }),
    does: ["release FellBackToRollingUpdate, looks again"],
  },
  "pods of two revisions: a rollout that is stuck": {
    of: "StatefulSet",
    given: () => ({
      workload: started(status({ update: "rev-3" })),
      revisions: [revision(1), revision(2, "web:broken"), revision(3, "web:2")],
      pods: [pod(0, 1), pod(1, 2, { isReady: false, containers: new Map([["web", container("web:broken")]]) })],
    }),
    does: ["createJob web:2", "patch web-1"],
  },
  "the hold is dropped": {
    given: () => ({ workload: { ...started(), isInForce: false } }),
    does: ["release FellBackToRollingUpdate"],
  },
  "the hold is lost": {
    given: () => {
      const { annotations } = workload()
      return { workload: { ...started(), annotations: { ...annotations, [heldMark]: "?" }, hold: undefined } }
    },
    does: ["release OptedOut"],
  },
  "no budget": {
    given: () => ({ workload: workload({ maxUnavailable: 0 }) }),
    does: ["release NoBudget, looks again"],
  },
  "completed: pods that a webhook has given another name of the image are not taken back": {
    given: () => ({ workload: completed(), pods: [rewritten(0), rewritten(1)] }),
    does: ["unmark"],
  },
  "a rollback writes the template before": {
    given: () => {
      const { annotations } = workload()
      const rollback = { ...annotations, [settingAnnotations.onFailure]: "Rollback" }
      const crashing = new Map([["web", { ...container("web:2"), id: "new", waiting: "CrashLoopBackOff" }]])
      const noted = started({ annotations: rollback })
      const mark = { ...patchedBy(noted.note!.operation, "c")!, at: 99_000 }
      return { workload: noted, pods: [pod(0, 1), done(1, { mark, containers: crashing })] }
    },
    does: ["rollback"],
  },
}

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  describe(`the next writes of a held ${kind}`, () => {
    for (const [name, { given, does, of = kind }] of Object.entries(cases)) {
      if (of !== kind) continue
      test(name, () => {
        const seen = { ...calm, ...given() }
        const { ordinals: _, ...plain } = seen.workload
        const actions = planOf(kind, kind === "StatefulSet" ? seen : { ...seen, workload: plain }).actions.map(words)
        expect(actions).toEqual(does)
      })
    }
  })

test("what a StatefulSet and a DaemonSet allow of themselves", () => {
  const spec = (rollingUpdate: object) => ({ template: {}, replicas: 10, updateStrategy: { rollingUpdate } })
  const held = (rollingUpdate: object) => ({
    annotations: {
      [heldMark]: JSON.stringify({ by: "in-place", original: { type: "RollingUpdate", rollingUpdate }, generation: 1 }),
    },
  })
  const desired = { desiredNumberScheduled: 10 }
  const sts = (block: object) => statefulSet.read({ metadata: {}, spec: spec(block) }).maxUnavailable
  const ds = (block: object) =>
    daemonSet.read({ metadata: held(block), spec: { template: {} }, status: desired }).maxUnavailable
  const shares = [{}, { maxUnavailable: 3 }, { maxUnavailable: "25%" }, { maxUnavailable: "1%" }]
  expect(shares.map(sts)).toEqual([1, 3, 2, 1])
  expect([...shares, { maxUnavailable: 0, maxSurge: 1 }].map(ds)).toEqual([1, 3, 3, 1, 0])
})
