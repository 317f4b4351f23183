import { describe, expect, test } from "vitest"
import { nextWrites, type PodsSeen } from "./next.ts"
import type { ContainerFacts, PodFacts } from "./pod.ts"
import { parseSettings, type Settings } from "./settings.ts"
import { drainedSinceOf, upSinceOf } from "./up-since.ts"

const parsed = parseSettings({})
const usual: Settings = { ...(parsed.ok ? parsed.settings : undefined!), strategy: "InPlaceIfPossible" }

const container = (fields: Partial<ContainerFacts> = {}): ContainerFacts => ({
  image: "web:1",
  isInit: false,
  id: "old",
  digest: "sha256:1",
  restarts: 0,
  isRunning: true,
  isReady: true,
  waiting: "",
  ...fields,
})

const pod = (name: string, fields: Partial<PodFacts> = {}, web: Partial<ContainerFacts> = {}): PodFacts => ({
  namespace: "shop",
  name,
  uid: `uid-${name}`,
  resourceVersion: "1",
  owner: "set",
  ownerName: "web",
  node: "node",
  isReady: true,
  readyChangedAt: undefined,
  pullSecrets: [],
  labels: {},
  annotations: {},
  containers: new Map([
    ["web", container(web)],
    ["side", container({ image: "side:1", id: "side" })],
  ]),
  mark: undefined,
  gate: undefined,
  ...fields,
})

const now = 1_000_000
const target: PodsSeen["target"] = {
  operation: "1-x",
  images: new Map([
    ["web", "web:2"],
    ["side", "side:1"],
  ]),
  labels: {},
  annotations: {},
  touched: { containers: ["web"], labels: [], annotations: [] },
  minReadyMs: 5000,
  deadlineMs: 600_000,
}
/** The pod was patched: `web:1` → `web:2`. */
const mark = {
  operation: "1-x",
  from: { web: "web:1" },
  to: { web: "web:2" },
  was: { web: { id: "old", restarts: 0 } },
  at: now - 1000,
}
const patched = (name: string, web: Partial<ContainerFacts> = {}, fields: Partial<PodFacts> = {}) =>
  pod(name, { mark, ...fields }, { image: "web:2", ...web })

/** Patched a moment ago, by another operation. */
const awaiting = (name: string, web: Partial<ContainerFacts> = {}) =>
  pod(name, { mark: { ...mark, operation: "1-y", to: { web: "web:3" } } }, { image: "web:3", id: "old", ...web })

const calm: PodsSeen = {
  pods: [pod("a"), pod("b"), pod("c")],
  target,
  settings: usual,
  replicas: 3,
  maxUnavailable: 1,
  disruptions: undefined,
  missingOn: () => undefined,
  noAgentOn: () => undefined,
  isAsked: () => false,
  evidence: { digestOn: () => "sha256:2", upSince: () => now - 60_000, drainedSince: () => now - 60_000, now },
}

/** Container web reads this label into its environment. */
const read: PodsSeen["target"] = {
  ...target,
  images: new Map([["web", "web:1"]]),
  labels: { team: "blue" },
  touched: { containers: [], labels: ["team"], annotations: [], restarts: ["web"] },
}
const relabelled = (name: string, web: Partial<ContainerFacts> = {}, fields: Partial<PodFacts> = {}) =>
  pod(
    name,
    { mark: { ...mark, from: {}, to: {}, restarts: ["web"], at: now - 3000 }, labels: { team: "blue" }, ...fields },
    web,
  )

const proven = { ...mark, proven: true } as const
/** Its container had restarted four times before the change. */
const restartedFour = { ...mark, was: { web: { id: "old", restarts: 4 } } }
const startedFromNew = { web: { id: "old", restarts: 0, image: "web:2" } }
const wentBack = { ...mark, from: { web: "web:2" }, to: { web: "web:1" }, failed: "Timeout" }
const failedTwo = { maxUnavailable: 2, hasFailed: true }
const lostNode = { isReady: false, since: now - 700_000 }
/** Changed and restarted a quarter of an hour ago, and not ready for longer than the deadline. */
const longDown = (name: string, web: Partial<ContainerFacts> = {}, fields: Partial<PodFacts> = {}) =>
  patched(
    name,
    { id: "new", digest: "sha256:2", restarts: 1, ...web },
    { mark: { ...mark, at: now - 900_000 }, isReady: false, readyChangedAt: now - 700_000, ...fields },
  )

const unpulled = { id: "", digest: "", waiting: "ImagePullBackOff", isRunning: false, isReady: false }
const afterUnpulled = (agoMs: number) => ({
  ...mark,
  was: { web: { id: "", restarts: 0, waiting: "ErrImagePull" } },
  at: now - agoMs,
})
const up = { id: "new", digest: "sha256:2", restarts: 1 }
const gate = { isDrained: false }
const drained = { gate: { isDrained: true }, isReady: false }

const cases: Record<string, { given: Partial<PodsSeen>; writes: string[]; says?: object }> = {
  "one of three, by name": { given: {}, writes: ["patch a web=web:2"] },
  "two, where two may be down": { given: { maxUnavailable: 2 }, writes: ["patch a web=web:2", "patch b web=web:2"] },
  "none, while one restarts": { given: { pods: [patched("a"), pod("b"), pod("c")] }, writes: [], says: { waiting: 2 } },
  "none, while one is missing": { given: { pods: [pod("a"), pod("b")] }, writes: [] },
  "a pod that serves nothing is free": {
    given: { pods: [pod("a"), pod("b", { isReady: false }), pod("c")] },
    writes: ["patch b web=web:2"],
  },
  "the next, when the first is proven": {
    given: { pods: [patched("a", up), pod("b"), pod("c")] },
    writes: ["patch b web=web:2"],
    says: { updated: 1 },
  },
  "a container that is still the old one proves nothing": {
    given: { pods: [patched("a", { id: "old", digest: "sha256:2" })] },
    writes: [],
    says: { updated: 0, underWay: 1 },
  },
  "ready for too short a time": {
    given: { pods: [patched("a", up)], evidence: { ...calm.evidence, upSince: () => now - 1000 } },
    writes: [],
    says: { updated: 0, lookAgainAt: now + 4000 },
  },
  "other bits than those that were pulled: the old image may be started once more": {
    given: { pods: [patched("a", { ...up, digest: "sha256:3" })] },
    writes: [],
    says: { updated: 0, underWay: 1 },
  },
  "other bits until the deadline": {
    given: { pods: [patched("a", { ...up, digest: "sha256:3" }, { mark: { ...mark, at: now - 600_000 } })] },
    writes: ["patch a web=web:1 failed ImageDiffers"],
  },
  "a crash loop of the old image in a new container": {
    given: { pods: [patched("a", { ...up, digest: "sha256:1", waiting: "CrashLoopBackOff", isRunning: false })] },
    writes: [],
    says: { failures: [] },
  },
  "the image before could not be pulled: its report is not the new one's": {
    given: { pods: [patched("a", unpulled, { mark: afterUnpulled(1000), isReady: false })] },
    writes: [],
    says: { failures: [], underWay: 1, lookAgainAt: now + 29_000 },
  },
  "and a report that lasts is": {
    given: { pods: [patched("a", unpulled, { mark: afterUnpulled(30_000), isReady: false })] },
    writes: ["patch a web=web:1 failed ImagePullFailed"],
  },
  "a crash loop goes back, and nothing else is touched": {
    given: {
      pods: [patched("a", { ...up, waiting: "CrashLoopBackOff", isRunning: false }), pod("b", { isReady: false })],
    },
    writes: ["patch a web=web:1 failed CrashLoop"],
    says: { failures: [expect.objectContaining({ pod: "a", reason: "CrashLoop" })] },
  },
  "the crash loop of the old container is not the new one's": {
    given: { pods: [patched("a", { id: "old", waiting: "CrashLoopBackOff", isRunning: false })] },
    writes: [],
    says: { failures: [] },
  },
  "too late": {
    given: { pods: [patched("a", {}, { mark: { ...mark, at: now - 600_000 } })] },
    writes: ["patch a web=web:1 failed Timeout"],
  },
  "a proven pod that is not ready for a moment, long after": {
    given: {
      pods: [patched("a", up, { mark: { ...mark, at: now - 900_000 }, isReady: false, readyChangedAt: now - 1000 })],
    },
    writes: [],
    says: { failures: [], lookAgainAt: now + 599_000 },
  },
  "a proven pod whose node was lost for longer than the deadline": {
    given: { pods: [longDown("a"), pod("b"), pod("c")], evidence: { ...calm.evidence, isProven: () => true } },
    writes: [],
    says: { failures: [], updated: 1, underWay: 0, waiting: 2 },
  },
  "the same, and nothing says that it was proven": {
    given: { pods: [longDown("a")], settings: { ...usual, onFailure: "Stop" } },
    writes: [],
    says: { failures: [expect.objectContaining({ pod: "a", reason: "Timeout" })] },
  },
  "a proven pod that was ended for want of memory, again and again, long after": {
    given: {
      pods: [longDown("a", { restarts: 9, waiting: "CrashLoopBackOff" })],
      evidence: { ...calm.evidence, isProven: () => true },
    },
    writes: [],
    says: { failures: [], updated: 1 },
  },
  "a proven pod in a crash loop soon after: a moment of health was no proof of the image": {
    given: {
      pods: [patched("a", { ...up, waiting: "CrashLoopBackOff", isRunning: false }), pod("b")],
      evidence: { ...calm.evidence, isProven: () => true },
    },
    writes: ["patch a web=web:1 failed CrashLoop"],
  },
  "a proven pod whose node is lost soon after: it is waited for until its proof is final": {
    given: {
      pods: [patched("a", up, { isReady: false, readyChangedAt: now - 500 }), pod("b")],
      evidence: { ...calm.evidence, isProven: () => true, nodeOf: () => lostNode },
    },
    writes: [],
    says: { updated: 0, failures: [], underWay: 0, lost: new Set(["node"]), lookAgainAt: now + 599_000 },
  },
  "the same, and it counts as one of the new revision: it stops the others and keeps its image": {
    given: {
      pods: [patched("a", { ...up, waiting: "CrashLoopBackOff", isRunning: false }, { mark: proven }), pod("b")],
    },
    writes: [],
    says: { failures: [expect.objectContaining({ pod: "a", reason: "CrashLoop" })] },
  },
  "its mark says that it was proven": {
    given: { pods: [longDown("a", {}, { mark: { ...proven, at: now - 900_000 } })] },
    writes: [],
    says: { updated: 1, failures: [] },
  },
  "a pod that is not proven, on a node that is lost: it waits for the node, whatever the deadline": {
    given: { pods: [longDown("a"), pod("b"), pod("c")], evidence: { ...calm.evidence, nodeOf: () => lostNode } },
    writes: [],
    says: { failures: [], updated: 0, underWay: 0, lost: new Set(["node"]) },
  },
  "its node is back: it has its time again": {
    given: {
      pods: [longDown("a")],
      evidence: { ...calm.evidence, nodeOf: () => ({ isReady: true, since: now - 1000 }) },
    },
    writes: [],
    says: { failures: [], underWay: 1, lookAgainAt: now + 599_000 },
  },
  "an image that the kubelet could not pull is a failure, though its node is lost since": {
    given: {
      pods: [patched("a", { ...unpulled, id: "new" })],
      evidence: { ...calm.evidence, nodeOf: () => lostNode },
    },
    writes: ["patch a web=web:1 failed ImagePullFailed"],
  },
  "a pod of a node that is lost is not changed": {
    given: {
      pods: [pod("a", { node: "gone", isReady: false }), pod("b"), pod("c")],
      maxUnavailable: 2,
      evidence: { ...calm.evidence, nodeOf: name => ({ isReady: name !== "gone", since: 0 }) },
    },
    writes: ["patch b web=web:2"],
    says: { lost: new Set(["gone"]) },
  },
  "a proven pod of a node that is lost keeps others waiting: the node is named": {
    given: {
      pods: [longDown("a", {}, { node: "gone" }), pod("b"), pod("c")],
      evidence: {
        ...calm.evidence,
        isProven: () => true,
        nodeOf: name => ({ isReady: name !== "gone", since: 0 }),
      },
    },
    writes: [],
    says: { updated: 1, underWay: 0, waiting: 2, lost: new Set(["gone"]) },
  },
  "a budget is asked for the others while a node is lost": {
    given: {
      pods: [patched("a", {}, { node: "gone", isReady: false }), pod("b"), pod("c")],
      maxUnavailable: 2,
      disruptions: { budget: "web", allowed: 1 },
      evidence: { ...calm.evidence, nodeOf: name => ({ isReady: name !== "gone", since: 0 }) },
    },
    writes: ["patch b web=web:2"],
  },
  "restarted by the update, and once more by itself: no crash loop": {
    given: { pods: [patched("a", { ...up, restarts: 6 }, { mark: restartedFour })] },
    writes: [],
    says: { updated: 1, failures: [] },
  },
  "the same, and up for a moment: a crash loop is so in each round": {
    given: {
      pods: [patched("a", { ...up, restarts: 6 }, { mark: restartedFour }), pod("b"), pod("c")],
      evidence: { ...calm.evidence, upSince: () => now - 10_000 },
    },
    writes: [],
    says: { updated: 0, failures: [], waiting: 2, lookAgainAt: now + 20_000 },
  },
  "after a failure, no other before what was changed is proven": {
    given: { pods: [patched("a", up), pod("b"), patched("c", { id: "new", isRunning: false })], ...failedTwo },
    writes: [],
    says: { isStopped: true, updated: 1 },
  },
  "and then the next": {
    given: { pods: [patched("a", up), pod("b"), patched("c", up)], ...failedTwo },
    writes: ["patch b web=web:2"],
    says: { isStopped: false },
  },
  "restarted by the update, and three times more": {
    given: { pods: [patched("a", { ...up, restarts: 8 }, { mark: restartedFour, isReady: false })] },
    writes: ["patch a web=web:1 failed CrashLoop"],
  },
  "Stop leaves it as it is": {
    given: {
      pods: [patched("a", { id: "new", waiting: "ImagePullBackOff", isRunning: false }), pod("b")],
      settings: { ...usual, onFailure: "Stop" },
    },
    writes: [],
  },
  "a pod that went back stops the others": {
    given: { pods: [pod("a", { mark: { ...mark, failed: "CrashLoop" } }), pod("b")] },
    writes: [],
  },
  "the mark of another operation says nothing": {
    given: { pods: [pod("a", { mark: { ...mark, operation: "1-y", failed: "CrashLoop" } })], replicas: 1 },
    writes: ["patch a web=web:2"],
  },
  "a pod of another operation that is about to restart is down already, and goes on first": {
    given: { pods: [pod("a"), awaiting("b"), pod("c")] },
    writes: ["patch b web=web:2"],
  },
  "the bits that it ran before our last change are not those that it will run": {
    given: { pods: [awaiting("a", { digest: "sha256:2" })], replicas: 1 },
    writes: ["patch a web=web:2"],
  },
  "an image that was changed back: the kubelet may have seen it": {
    given: { pods: [patched("a", { id: "old", digest: "sha256:2" })] },
    writes: [],
    says: { isDone: false, lookAgainAt: now + 29_000 },
  },
  "an image that was changed back before the kubelet saw it": {
    given: { pods: [patched("a", { id: "old", digest: "sha256:2" }, { mark: { ...mark, at: now - 30_000 } })] },
    writes: [],
    says: { isDone: true },
  },
  "the same, and no agent says which bits it has: the record says what it was started from": {
    given: {
      pods: [patched("a", { id: "old" }, { mark: { ...mark, was: startedFromNew, at: now - 30_000 } })],
      evidence: { ...calm.evidence, digestOn: () => undefined },
    },
    writes: [],
    says: { isDone: true },
  },
  "and without that record it is waited for": {
    given: {
      pods: [patched("a", { id: "old" }, { mark: { ...mark, at: now - 30_000 } })],
      evidence: { ...calm.evidence, digestOn: () => undefined },
    },
    writes: [],
    says: { isDone: false, failures: [] },
  },
  "its image is missing, and it is about to restart: it stays drained": {
    given: {
      pods: [{ ...awaiting("a"), ...drained }],
      missingOn: () => "asked",
    },
    writes: [],
    says: { lookAgainAt: now + 29_000 },
  },
  "and serves once it has restarted": {
    given: { pods: [{ ...awaiting("a", { id: "new" }), ...drained }], missingOn: () => "asked" },
    writes: ["undrain a"],
  },
  "a pod that went back and is about to restart stays drained": {
    given: { pods: [patched("a", { image: "web:1" }, { ...drained, mark: wentBack })], settings: usual },
    writes: [],
  },
  "the same bits under another name": {
    given: { pods: [pod("a", {}, { digest: "sha256:2" })] },
    writes: [],
    says: { isDone: true },
  },
  "a webhook has rewritten our image": {
    given: { pods: [patched("a", { ...up, image: "mirror/web:2" })] },
    writes: [],
    says: { isDone: true },
  },
  "the image is not on the node": {
    given: { missingOn: () => "NotFound" },
    writes: [],
    says: { missing: new Map([["node", "NotFound"]]) },
  },
  "a pod without a node needs no image there": {
    given: { pods: [pod("a", { node: "", isReady: false })], missingOn: () => "NotFound" },
    writes: ["patch a web=web:2"],
  },
  "a partition keeps pods": {
    given: { maxUnavailable: 3, settings: { ...usual, partition: { count: 2 } } },
    writes: ["patch a web=web:2"],
  },
  "a label orders pods, by number": {
    given: {
      pods: [pod("a", { labels: { wave: "10" } }), pod("b", { labels: { wave: "9" } })],
      replicas: 2,
      settings: { ...usual, order: "wave" },
    },
    writes: ["patch b web=web:2"],
  },
  "a gate is closed first": { given: { pods: [pod("a", { gate })], replicas: 1 }, writes: ["drain a"] },
  "within the grace period": {
    given: {
      pods: [pod("a", drained)],
      settings: { ...usual, graceSeconds: 10 },
      evidence: { ...calm.evidence, drainedSince: () => now - 5000 },
    },
    writes: [],
    says: { lookAgainAt: now + 5000 },
  },
  "after it": {
    given: {
      pods: [pod("a", drained)],
      settings: { ...usual, graceSeconds: 10 },
      evidence: { ...calm.evidence, drainedSince: () => now - 10_000 },
    },
    writes: ["patch a web=web:2"],
  },
  "the kubelet has not reported the drain yet": {
    given: {
      pods: [pod("a", { ...drained, isReady: true })],
      replicas: 1,
      evidence: { ...calm.evidence, drainedSince: () => now - 3000 },
    },
    writes: [],
    says: { lookAgainAt: now + 7000 },
  },
  "the kubelet does not report at all": {
    given: {
      pods: [pod("a", { ...drained, isReady: true })],
      replicas: 1,
      evidence: { ...calm.evidence, drainedSince: () => now - 10_000 },
    },
    writes: ["patch a web=web:2"],
  },
  "a drained pod and one that is about to serve are under way, whatever the budget": {
    given: {
      pods: [pod("a", { ...drained, isReady: true }), patched("b", up, drained), pod("c")],
      evidence: { ...calm.evidence, drainedSince: () => now },
    },
    writes: ["undrain b"],
    says: { underWay: 2, waiting: 1 },
  },
  "a proven pod serves again": {
    given: { pods: [patched("a", up, drained)] },
    writes: ["undrain a"],
    says: { isDone: false },
  },
  "a drained pod serves again when nothing is touched any more": {
    given: { pods: [pod("a", { mark: { ...mark, failed: "CrashLoop" } }), pod("b", drained)] },
    writes: ["undrain b"],
  },
  "a drained pod whose node lacks the image serves again": {
    given: { pods: [pod("a", drained)], replicas: 1, missingOn: () => "NotFound" },
    writes: ["undrain a"],
    says: { underWay: 0, missing: new Map([["node", "NotFound"]]) },
  },
  "a budget of none": { given: { disruptions: { budget: "web", allowed: 0 } }, writes: [], says: { waiting: 3 } },
  "what a budget has left beside the pods that are down already": {
    given: { maxUnavailable: 3, disruptions: { budget: "web", allowed: 1 }, pods: [patched("a"), pod("b"), pod("c")] },
    writes: ["patch b web=web:2"],
  },
  "a pod with a write in doubt keeps its place, and is written again without a question": {
    given: { pods: [pod("a"), pod("b", { isInDoubt: true }), pod("c")] },
    writes: ["patch b web=web:2"],
    says: { waiting: 2 },
  },
  "the same where it was to be drained": {
    given: { pods: [pod("a", { gate }), pod("b", { gate, isInDoubt: true })], replicas: 2 },
    writes: ["drain b"],
  },
  "labels alone": {
    given: {
      target: {
        ...target,
        images: new Map(),
        labels: { team: "blue" },
        touched: { containers: [], labels: ["team"], annotations: [] },
      },
      maxUnavailable: 0,
    },
    writes: ["patch a", "patch b", "patch c"],
  },
  "a label that a container reads: within the budget": {
    given: { target: read },
    writes: ["patch a"],
    says: { waiting: 2 },
  },
  "a label that a container reads, on a node without an agent": {
    given: { target: read, noAgentOn: () => "none" },
    writes: [],
    says: { missing: new Map([["node", "none"]]) },
  },
  "a label was changed, and the container is the old one: its agent is asked": {
    given: { target: read, pods: [relabelled("a", { id: "old" }), pod("b"), pod("c")] },
    writes: ["restart a"],
    says: { underWay: 1 },
  },
  "the kubelet may not have seen the label yet": {
    given: {
      target: read,
      pods: [
        relabelled("a", { id: "old" }, { mark: { ...mark, from: {}, to: {}, restarts: ["web"], at: now - 1000 } }),
      ],
    },
    writes: [],
    says: { underWay: 1, lookAgainAt: now + 2000 },
  },
  "the agent was asked": {
    given: { target: read, pods: [relabelled("a", { id: "old" }), pod("b"), pod("c")], isAsked: () => true },
    writes: [],
    says: { underWay: 1 },
  },
  "a pod whose container the agent is about to restart counts as down, and is changed for free": {
    given: {
      pods: [
        pod("a"),
        pod("b"),
        relabelled("c", {}, { mark: { ...mark, operation: "1-y", from: {}, to: {}, restarts: ["web"] } }),
      ],
    },
    writes: ["patch c web=web:2"],
  },
  "the agent has restarted the container": {
    given: { target: read, pods: [relabelled("a", { id: "new", restarts: 1 })], replicas: 1 },
    writes: [],
    says: { isDone: true },
  },
  "the agent never restarted the container": {
    given: {
      target: { ...read, deadlineMs: 500 },
      pods: [relabelled("a", { id: "old" }, { readyChangedAt: now - 60_000 })],
      settings: { ...usual, onFailure: "Stop" },
    },
    writes: [],
    says: {
      failures: [
        {
          pod: "a",
          reason: "Timeout",
          message: "the node's agent has not restarted container web 500ms after the change",
        },
      ],
    },
  },
  "labels that another writer has changed since": {
    given: {
      pods: [pod("a", { mark: { ...mark, from: {}, to: {}, was: {} }, labels: { team: "red" } })],
      target: {
        ...target,
        images: new Map(),
        labels: { team: "blue" },
        touched: { containers: [], labels: ["team"], annotations: [] },
      },
    },
    writes: [],
    says: { isDone: true },
  },
  "containers in an order: the first": {
    given: {
      pods: [pod("a")],
      replicas: 1,
      target: {
        ...target,
        images: new Map([
          ["web", "web:2"],
          ["side", "side:2"],
        ]),
        touched: { containers: ["side", "web"], labels: [], annotations: [] },
      },
      settings: { ...usual, containerOrder: ["web", "side"] },
    },
    writes: ["patch a web=web:2"],
  },
  "containers in an order: the second waits for the first": {
    given: {
      pods: [patched("a")],
      replicas: 1,
      target: {
        ...target,
        images: new Map([
          ["web", "web:2"],
          ["side", "side:2"],
        ]),
        touched: { containers: ["side", "web"], labels: [], annotations: [] },
      },
      settings: { ...usual, containerOrder: ["web", "side"] },
    },
    writes: [],
  },
}

const words = (write: ReturnType<typeof nextWrites>["writes"][number]) =>
  [
    write.do,
    write.pod.name,
    ...(write.do === "patch" ? Object.entries(write.images).map(([name, image]) => `${name}=${image}`) : []),
    ...(write.do === "patch" && write.mark.failed ? [`failed ${write.mark.failed}`] : []),
  ].join(" ")

describe("what to write next", () => {
  for (const [name, { given, writes, says = {} }] of Object.entries(cases))
    test(name, () => {
      const next = nextWrites({ ...calm, ...given })
      expect({ ...next, writes: next.writes.map(words) }).toMatchObject({ writes, ...says })
    })
})

test("only pods that serve are asked for their budget", () => {
  const { writes } = nextWrites({
    ...calm,
    pods: [pod("a", { isReady: false }), pod("b"), pod("c")],
    maxUnavailable: 2,
  })
  expect(writes.map(({ pod, ...write }) => [pod.name, "asksBudget" in write])).toEqual([
    ["a", false],
    ["b", true],
  ])
})

test("a pod with a new container has been up only since then", () => {
  const first = upSinceOf([pod("a")], new Map(), 1)
  expect(upSinceOf([pod("a")], first, 2).get("uid-a")?.since).toBe(1)
  expect(upSinceOf([pod("a", {}, { id: "new" })], first, 2).get("uid-a")?.since).toBe(2)
  expect(upSinceOf([pod("a", { isReady: false })], first, 2).size).toBe(0)
})

test("a grace period begins when the pod is seen drained, and again when it is drained again", () => {
  const first = drainedSinceOf([pod("a", drained)], new Map(), 1)
  expect(drainedSinceOf([pod("a", drained)], first, 2).get("uid-a")).toBe(1)
  expect(drainedSinceOf([pod("a", { gate })], first, 2).size).toBe(0)
})
