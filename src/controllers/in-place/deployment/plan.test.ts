import { describe, expect, test } from "vitest"
import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { decisionAnnotation, formatDecision } from "#core/image/record.ts"
import type { WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { short } from "#core/in-place/operation.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { imagesOf, type PodTemplate } from "#core/in-place/template.ts"
import type { Job } from "../facts.ts"
import { type Action, type Plan, plan as planAny, type Snapshot } from "../plan.ts"
import type { Revision, Deployment as Workload } from "./facts.ts"
import { nativeOf } from "./native.ts"

const template = (image: string, hash?: string): PodTemplate => ({
  metadata: { labels: { app: "web", ...(hash && { "pod-template-hash": hash }) } },
  spec: { containers: [{ name: "web", image }] },
})

const workload = (fields: Partial<Workload> = {}): Workload => ({
  namespace: "shop",
  name: "web",
  uid: "d",
  resourceVersion: "9",
  generation: 9,
  annotations: { [strategyAnnotation]: "InPlaceIfPossible", [heldMark]: "{}" },
  isInForce: true,
  isObserved: true,
  replicas: 1,
  selector: { matchLabels: { app: "web" } },
  template: template("web:2"),
  minReadySeconds: 0,
  deadlineSeconds: 600,
  keepsHistory: true,
  maxUnavailable: 1,
  hold: { by: "in-place", generation: 4 },
  note: undefined,
  ...fields,
})

const set = (name: string, image: string, fields: Partial<Revision> = {}): Revision => ({
  resourceVersion: "5",
  namespace: "shop",
  name,
  uid: `uid-${name}`,
  owner: { uid: "d", name: "web" },
  replicas: 1,
  running: 1,
  template: template(image, name),
  annotations: {},
  number: "3",
  generation: 7,
  note: undefined,
  isObserved: true,
  ...fields,
})
const empty = { replicas: 0, running: 0 }

const pod = (image: string, fields: Partial<PodFacts> = {}): PodFacts => ({
  namespace: "shop",
  name: "web-0",
  uid: "p",
  resourceVersion: "6",
  owner: "uid-a",
  ownerName: "a",
  node: "node-1",
  isReady: true,
  readyChangedAt: undefined,
  pullSecrets: [],
  labels: {},
  annotations: {},
  containers: new Map([
    ["web", { image, isInit: false, id: "c", digest: "", restarts: 0, isRunning: true, isReady: true, waiting: "" }],
  ]),
  mark: undefined,
  gate: undefined,
  ...fields,
})

const job: Job = {
  resourceVersion: "1",
  name: "web-job",
  uid: "j",
  owner: { uid: "d", name: "web" },
  image: "web:2",
  trouble: "",
  failed: new Map(),
}

const changed = {
  operation: "1-x",
  from: { web: "web:1" },
  to: { web: "web:2" },
  was: { web: { id: "c", restarts: 0 } },
  at: 90_000,
}
const aboutToRestart = pod("web:2", { gate: { isDrained: true }, mark: changed })
const crashing = (mark: PodFacts["mark"]) =>
  pod("web:2", {
    mark,
    isReady: false,
    containers: new Map([["web", { ...pod("web:2").containers.get("web")!, id: "new", waiting: "CrashLoopBackOff" }]]),
  })
/** The ReplicaSet has the new template, and the pod of it crashes. */
const afterFlip = (policy: string) => {
  const annotations = { ...workload().annotations, [settingAnnotations.onFailure]: policy }
  const flipped = started({}, { annotations })
  return { workload: flipped, pods: [crashing({ ...changed, operation: flipped.note!.operation })] }
}
/** Held again with the template that has failed under the hold before. */
const again = (annotations: Record<string, string> = {}): Workload => {
  const { operation } = started().note!
  const note = { ...started().note!, operation: "4-back", reason: "RolledBack", failed: operation, back: "4-back" }
  const hold = { by: "in-place", generation: 8 }
  return workload({ hold, note, annotations: { ...workload().annotations, ...annotations } })
}
const stamp = (operation: string) =>
  formatDecision({ from: "web:1", to: "web:2", reason: "", operation, by: "serviceimage/web", at: 0 })
/** Released, and not cleaned up. */
const freed = workload({ isInForce: false, hold: undefined, annotations: {} })

/** As the plan itself writes it, for this target. */
const started = (fields: Partial<WorkloadNote> = {}, of: Partial<Workload> = {}): Workload => {
  const fresh = workload(of)
  const [first] = plan({ ...calm, workload: { ...fresh, note: undefined } }).actions
  if (first?.do !== "note") throw new Error("the first action is the note")
  return { ...fresh, note: { ...first.note, ...fields } }
}

const refused = () => ({ operation: started().note!.operation, reason: "Refused" as const, message: "pod web-0: no" })

type Given = Omit<Snapshot, "workload" | "native"> & {
  readonly workload: Workload
  readonly revisions: readonly Revision[]
}
const plan = ({ revisions, ...seen }: Given): Plan => planAny({ ...seen, native: nativeOf(seen.workload, revisions) })

const calm: Given = {
  workload: workload(),
  isListed: true,
  revisions: [set("a", "web:1")],
  pods: [pod("web:1")],
  jobs: [],
  disruptions: undefined,
  imageOn: () => ({ is: "Present", digest: "" }),
  isAsked: () => false,
  isProven: () => false,
  nodeOf: () => undefined,
  upSince: () => 0,
  drainedSince: () => 0,
  now: 100_000,
}

const words = (action: Action): string => {
  switch (action.do) {
    case "note":
    case "release":
      return `${action.do} ${action.note.reason}${"looksAgain" in action ? ", fenced" : ""}`
    case "pod":
      return `${action.write.do} ${action.write.pod.name}`
    case "deleteDouble":
    case "flip":
      return `${action.do} ${action.revision.name}`
    case "rollback":
      return `rollback ${imagesOf(action.template).get("web")}`
    case "createJob":
      return `createJob ${action.image}`
    default:
      return action.do
  }
}
const said = ({ actions }: Plan) => actions.map(words)

const cases: Record<string, { given: () => Partial<Given>; does: string[] }> = {
  "nothing before everything is listed": { given: () => ({ isListed: false }), does: [] },
  "a note before the first pod": { given: () => ({}), does: ["note Updating"] },
  "a job and a pod": { given: () => ({ workload: started() }), does: ["createJob web:2", "patch web-0"] },
  "a write that was refused is the reason": {
    given: () => ({ workload: started(), jobs: [job], refusal: refused() }),
    does: ["note Refused", "patch web-0"],
  },
  "and is written once": {
    given: () => ({ workload: started({ reason: "Refused" }), jobs: [job], refusal: refused() }),
    does: ["patch web-0"],
  },
  "another process leaves it until it has tried": {
    given: () => ({ workload: started({ reason: "Refused" }), jobs: [job] }),
    does: ["patch web-0"],
  },
  "a write that is not refused any more": {
    given: () => ({ workload: started({ reason: "Refused" }), jobs: [job], refusal: null }),
    does: ["note Updating", "patch web-0"],
  },
  "a refusal of another target": {
    given: () => ({ workload: started(), jobs: [job], refusal: { ...refused(), operation: "4-x" } }),
    does: ["patch web-0"],
  },
  "a budget that has no room for a moment": {
    given: () => ({ workload: started(), jobs: [job], disruptions: { budget: "b", allowed: 0 } }),
    does: [],
  },
  "and for longer": {
    given: () => ({
      workload: started(),
      jobs: [job],
      disruptions: { budget: "b", allowed: 0 },
      waitsSince: 98_000,
    }),
    does: ["note BudgetSpent"],
  },
  "an eviction that was refused, once that lasts": {
    given: () => ({
      workload: started(),
      jobs: [job],
      refusal: { ...refused(), reason: "BudgetSpent" as const },
      waitsSince: 98_000,
    }),
    does: ["note BudgetSpent", "patch web-0"],
  },
  "nothing without the image": {
    given: () => ({
      workload: started({ reason: "Pulling" }),
      jobs: [job],
      imageOn: () => ({ is: "Missing", why: "asked" }),
    }),
    does: [],
  },
  "an agent that cannot pull it": {
    given: () => ({ workload: started(), jobs: [job], imageOn: () => ({ is: "Missing", why: "NotFound" }) }),
    does: ["note ImageUnavailable"],
  },
  "a node without an agent": {
    given: () => ({ workload: started(), jobs: [job], imageOn: () => ({ is: "NoAgent" }) }),
    does: ["note ImageUnavailable"],
  },
  "the same where that is allowed": {
    given: () => {
      const { annotations } = workload()
      return {
        workload: started({}, { annotations: { ...annotations, [settingAnnotations.unverified]: "true" } }),
        jobs: [job],
        imageOn: () => ({ is: "NoAgent" }),
      }
    },
    does: ["patch web-0"],
  },
  "all pods done: history, then flip": {
    given: () => ({ workload: started(), pods: [pod("web:2")] }),
    does: ["keepHistory", "flip a"],
  },
  "all pods done, and the Deployment controller has not seen the hold": {
    given: () => ({ workload: started({}, { isObserved: false }), pods: [pod("web:2")] }),
    does: [],
  },
  "no history where none is kept": {
    given: () => ({ workload: started({}, { keepsHistory: false }), pods: [pod("web:2")] }),
    does: ["flip a"],
  },
  "an empty ReplicaSet with the new template goes before the flip": {
    given: () => ({
      workload: started(),
      pods: [pod("web:2")],
      revisions: [set("a", "web:1"), set("old", "web:2", empty)],
    }),
    does: ["keepHistory", "deleteDouble old", "flip a"],
  },
  "flipped: the question of the fence": {
    given: () => ({ workload: started(), pods: [pod("web:2")], revisions: [set("a", "web:2")] }),
    does: ["note Fencing"],
  },
  "asked, and not answered": {
    given: () => ({ workload: started({ fence: 7 }), pods: [pod("web:2")], revisions: [set("a", "web:2")] }),
    does: [],
  },
  "the answer is about an earlier flip": {
    given: () => {
      const asked = started({ fence: 7 })
      const note = { ...asked.note!, fence: 6 }
      return { workload: asked, pods: [pod("web:2")], revisions: [set("a", "web:2", { note })] }
    },
    does: [],
  },
  "answered: released": {
    given: () => {
      const asked = started({ fence: 7 })
      return {
        workload: asked,
        pods: [pod("web:2")],
        revisions: [set("a", "web:2", { note: asked.note })],
        jobs: [job],
      }
    },
    does: ["release Completed, fenced"],
  },
  "answered, and a pod of the old template has come": {
    given: () => {
      const asked = started({ fence: 7 })
      return {
        workload: asked,
        pods: [pod("web:1")],
        revisions: [set("a", "web:2", { note: asked.note })],
        jobs: [job],
      }
    },
    does: ["patch web-0"],
  },
  "released: jobs, and the label last": {
    given: () => {
      const { [heldMark]: _, ...annotations } = workload().annotations
      return { workload: workload({ annotations, hold: undefined, isInForce: false }), jobs: [job] }
    },
    does: ["deleteJob", "unmark"],
  },
  "the hold cannot be read": {
    given: () => {
      const { annotations } = workload()
      return { workload: { ...started(), annotations: { ...annotations, [heldMark]: "?" }, hold: undefined } }
    },
    does: ["release OptedOut"],
  },
  "the hold is gone in the middle of an update": {
    given: () => {
      const { [heldMark]: _, ...annotations } = workload().annotations
      return { workload: { ...started(), annotations, hold: undefined } }
    },
    does: ["release OptedOut"],
  },
  "the hold cannot be read, and there is no note": {
    given: () => {
      const { annotations } = workload()
      return { workload: workload({ annotations: { ...annotations, [heldMark]: "?" }, hold: undefined }) }
    },
    does: ["release OptedOut"],
  },
  "the hold is gone before the first note": {
    given: () => {
      const { [heldMark]: _, ...annotations } = workload().annotations
      return { workload: workload({ annotations, hold: undefined }) }
    },
    does: ["release OptedOut"],
  },
  "released, and paused by its owner since": {
    given: () => {
      const { [heldMark]: _, ...annotations } = workload().annotations
      return { workload: { ...started({ reason: "OptedOut" }), annotations, hold: undefined } }
    },
    does: ["unmark"],
  },
  "more labels than can be recorded": {
    given: () => {
      const labels = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`label-${index}`.repeat(5), "x"]))
      return { workload: workload({ template: { ...template("web:2"), metadata: { labels } } }) }
    },
    does: ["release NotInPlace, fenced"],
  },
  "resumed by its owner": {
    given: () => ({ workload: { ...started(), isInForce: false } }),
    does: ["release FellBackToRollingUpdate"],
  },
  "held by another": { given: () => ({ workload: workload({ hold: { by: "canary", generation: 1 } }) }), does: [] },
  "a rollout was under way": {
    given: () => ({ revisions: [set("a", "web:1"), set("b", "web:0")] }),
    does: ["release FellBackToRollingUpdate, fenced"],
  },
  "no pods": {
    given: () => ({ workload: workload({ replicas: 0 }), pods: [], revisions: [set("a", "web:1", empty)] }),
    does: ["release Completed, fenced"],
  },
  "no budget": { given: () => ({ workload: workload({ maxUnavailable: 0 }) }), does: ["release NoBudget, fenced"] },
  "a pod crashes right after the flip: the template before is the one that was kept": {
    given: () => ({
      ...afterFlip("Rollback"),
      revisions: [set("a", "web:2"), set("old", "web:0", { ...empty, number: "1" }), set("kept", "web:1", empty)],
    }),
    does: ["rollback web:1"],
  },
  "the same without a history: there is nothing to go back to": {
    given: () => ({ ...afterFlip("Rollback"), revisions: [set("a", "web:2"), set("old", "web:0", empty)] }),
    does: ["note Fencing"],
  },
  "the same with Revert: the pod alone goes back": {
    given: () => ({ ...afterFlip("Revert"), revisions: [set("a", "web:2"), set("kept", "web:1", empty)] }),
    does: ["note UpdateFailed", "patch web-0"],
  },
  "a rollback that fails is not rolled back": {
    given: () => {
      const { workload, pods } = afterFlip("Rollback")
      const { note } = workload
      return { workload: { ...workload, note: { ...note!, back: note!.operation, failed: "4-other" } }, pods }
    },
    does: ["note UpdateFailed"],
  },
  "the same before the flip: it is rolled back": {
    given: () => {
      const annotations = { ...workload().annotations, [settingAnnotations.onFailure]: "Rollback" }
      const begun = started({}, { annotations })
      return { workload: begun, pods: [crashing({ ...changed, operation: begun.note!.operation })] }
    },
    does: ["rollback web:1"],
  },
  "a template that was rolled back is written again, under another hold": {
    given: () => ({ workload: again() }),
    does: ["note UpdateFailed"],
  },
  "the same, and a person asks for it": {
    given: () => ({ workload: again({ [retryAnnotation]: started().note!.operation }) }),
    does: ["note Updating"],
  },
  "the same, and a ServiceImage stamps it in another operation": {
    given: () => ({ workload: again({ [decisionAnnotation]: stamp("g2") }) }),
    does: ["note Updating"],
  },
  "the same, stamped by the operation that had failed": {
    given: () => {
      const workload = again({ [decisionAnnotation]: stamp("g2") })
      return { workload: { ...workload, note: { ...workload.note!, stamp: "serviceimage/web g2" } } }
    },
    does: ["note UpdateFailed"],
  },
  "drained pods serve while an annotation is malformed": {
    given: () => {
      const { annotations } = workload()
      return {
        workload: {
          ...started(),
          annotations: { ...annotations, [settingAnnotations.onFailure]: "Retry" },
        },
        pods: [pod("web:1", { gate: { isDrained: true } })],
      }
    },
    does: ["note InvalidAnnotation", "undrain web-0"],
  },
  "drained pods serve while only a person can continue": {
    given: () => ({
      workload: started({ failed: started().note!.operation }),
      pods: [pod("web:1", { gate: { isDrained: true } })],
    }),
    does: ["note UpdateFailed", "undrain web-0"],
  },
  "drained pods serve before the release": {
    given: () => ({
      workload: { ...started(), isInForce: false },
      pods: [pod("web:1", { gate: { isDrained: true } })],
    }),
    does: ["undrain web-0", "release FellBackToRollingUpdate"],
  },
  "a drained pod that is about to restart does not serve before": {
    given: () => ({ workload: { ...started(), isInForce: false }, pods: [aboutToRestart] }),
    does: ["release FellBackToRollingUpdate"],
  },
  "and the label stays until it serves": {
    given: () => ({ workload: freed, pods: [aboutToRestart] }),
    does: [],
  },
  "once it has restarted it serves": {
    given: () => ({ workload: freed, pods: [{ ...aboutToRestart, mark: { ...changed, was: {} } }] }),
    does: ["undrain web-0", "unmark"],
  },
}

describe("the next writes of a held Deployment", () => {
  for (const [name, { given, does }] of Object.entries(cases))
    test(name, () => expect(said(plan({ ...calm, ...given() }))).toEqual(does))
})

test("what a hold has touched is kept when the target changes: a change back takes all of it back", () => {
  const first = started()
  const back = { ...first, template: template("web:1") }
  const [noted] = plan({ ...calm, workload: back, pods: [pod("web:2")] }).actions
  if (noted?.do !== "note") throw new Error("a note is expected")
  expect(noted.note.touched.containers).toEqual(["web"])
  const next = plan({ ...calm, workload: { ...back, note: noted.note }, pods: [pod("web:2")] })
  expect(said(next)).toEqual(["createJob web:1", "patch web-0"])
})

test("a failure is remembered while its template is refused, and forgotten with another one", () => {
  const noted = (workload: Workload) => {
    const [first] = plan({ ...calm, workload }).actions
    return first?.do === "note" ? first.note : undefined
  }
  const { failed } = again().note!
  expect(noted(again())).toMatchObject({ failed, message: expect.stringContaining(`${failed} failed`) })
  expect(noted({ ...again(), template: template("web:3") })).not.toHaveProperty("failed")
  expect(noted(again({ [retryAnnotation]: failed! }))).not.toHaveProperty("failed")
})

test("a fence is of one operation", () => {
  const asked = started({ fence: 7 })
  const [kept] = plan({ ...calm, workload: { ...asked, isInForce: false } }).actions
  expect(kept).toMatchObject({ do: "release", note: { fence: 7 } })
  const [other] = plan({ ...calm, workload: { ...asked, template: template("web:3") } }).actions
  expect(other).toMatchObject({ do: "note", note: { reason: "Updating" } })
  expect(other).not.toHaveProperty("note.fence")
})

test("the note of an earlier hold says nothing", () => {
  const { note } = started()
  const later = workload({ hold: { by: "in-place", generation: 8 }, note })
  expect(said(plan({ ...calm, workload: later }))).toEqual(["note Updating"])
})

test("a job gets the secrets of the template, and those that pods have from their ServiceAccount", () => {
  const old: PodTemplate = template("web:1", "a")
  const secrets = (of: PodTemplate) => ({ ...of, spec: { ...of.spec, imagePullSecrets: [{ name: "own" }] } })
  const revisions = [set("a", "web:1", { template: secrets(old) })]
  const changed = workload({ template: secrets(template("web:2")) })
  const [first] = plan({ ...calm, revisions, workload: changed }).actions
  const note = first?.do === "note" ? first.note : undefined
  const pods = [pod("web:1", { pullSecrets: ["own", "account"] })]
  const { actions } = plan({ ...calm, revisions, pods, workload: { ...changed, note } })
  expect(actions[0]).toMatchObject({ do: "createJob", pullSecrets: ["own", "account"] })
})

/** Three pods of an update that was given up, with the old template again. */
function givenUp(edit: (pods: PodFacts[]) => PodFacts[], fields: Partial<Workload> = {}) {
  const { note } = started()
  const mark = { ...changed, operation: note!.operation, was: {} }
  const pods = ["web-0", "web-1", "web-2"].map(name => pod("web:2", { name, uid: name, mark }))
  return said(
    plan({
      ...calm,
      workload: workload({
        ...{ isInForce: false, hold: undefined, annotations: {}, note: { ...note!, reason: "OptedOut" } },
        ...{ template: template("web:1"), maxUnavailable: 2, replicas: 3 },
        ...fields,
      }),
      pods: edit(pods),
    }),
  )
}

test("what is taken back goes back within the budget of the annotation, and a pod that is missing counts", () => {
  const free = { [settingAnnotations.maxUnavailable]: "2" }
  const back = (replicas: number) => givenUp(pods => pods, { annotations: free, maxUnavailable: 3, replicas })
  expect(back(3)).toEqual(["patch web-0", "patch web-1"])
  expect(back(4)).toEqual(["patch web-0"])
})

test("a pod that fails on its way back counts as down, and the others go on", () => {
  const operation = `back-${short(template("web:1"))}`
  const mark = { ...changed, operation, from: { web: "web:2" }, to: { web: "web:1" }, was: {} }
  const web = { ...pod("web:1").containers.get("web")!, id: "new", isRunning: false, waiting: "CrashLoopBackOff" }
  const failed = pod("web:1", { uid: "web-0", isReady: false, mark, containers: new Map([["web", web]]) })
  expect(givenUp(([, ...rest]) => [failed, ...rest])).toEqual(["patch web-1"])
  expect(givenUp(([, ...rest]) => [failed, ...rest], { maxUnavailable: 1 })).toEqual([])
})

test("a pod that is drained and was not changed serves before the others go back", () => {
  const drained = pod("web:1", { uid: "web-0", isReady: false, gate: { isDrained: true } })
  expect(givenUp(([, ...rest]) => [drained, ...rest], { maxUnavailable: 1 })).toEqual(["undrain web-0"])
})
