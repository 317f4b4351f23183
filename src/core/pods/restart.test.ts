import { describe, expect, test } from "vitest"
import {
  type DisruptionBudget,
  nextRestarts,
  type RestartPod,
  type RestartRequest,
  type RestartSight,
} from "./restart.ts"

const pod = (name: string, over: Partial<RestartPod> = {}): RestartPod => ({
  name,
  uid: `uid-${name}`,
  labels: { app: "web" },
  isReady: true,
  isGoing: false,
  createdAt: 100,
  ...over,
})
const request = (of: string, result: RestartRequest["result"], over: Partial<RestartRequest> = {}): RestartRequest => ({
  name: `${of}-r1`,
  pod: of,
  podUid: `uid-${of}`,
  isOurs: true,
  createdAt: 1000,
  result,
  ...over,
})
const budget = (over: Partial<DisruptionBudget> = {}): DisruptionBudget => ({
  name: "web",
  selector: { matchLabels: { app: "web" } },
  isCurrent: true,
  disruptionsAllowed: 1,
  mayBeDown: 1,
  ...over,
})
const three = [pod("a"), pod("b"), pod("c")]
const calm: RestartSight = {
  pods: three,
  requests: [],
  budgets: [],
  wanted: 3,
  maxUnavailable: 1,
  forgiven: new Set(),
}

type Case = {
  given: Partial<RestartSight>
  begin?: string[]
  left?: string[]
  waitsFor?: string
  isOver?: boolean
}

const words = (sight: RestartSight) => {
  const { begin, left, waitsFor, isOver } = nextRestarts(sight)
  return { begin: begin.map(each => each.pod.name), left: left.map(({ name }) => name), waitsFor, isOver }
}

const tables: Record<string, Record<string, Case>> = {
  turns: {
    "the first of three ready pods": { given: {}, begin: ["a"], left: ["b", "c"] },
    "two at a time": { given: { maxUnavailable: 2 }, begin: ["a", "b"], left: ["c"] },
    "by number, not by letter": {
      given: { pods: [pod("web-10"), pod("web-9"), pod("web-2")] },
      begin: ["web-2"],
      left: ["web-9", "web-10"],
    },
    "none while one is under way, ready or not": {
      given: { requests: [request("a", "Open")] },
      left: ["b", "c"],
    },
    "the next one when the one before is complete": {
      given: { requests: [request("a", "Succeeded")] },
      begin: ["b"],
      left: ["c"],
    },
    "over when all are": { given: { requests: three.map(({ name }) => request(name, "Succeeded")) }, isOver: true },
    "over without pods": { given: { pods: [], wanted: 0 }, isOver: true },
  },
  maxUnavailable: {
    "a pod that is not ready comes first, and lowers nothing": {
      given: { pods: [pod("a"), pod("b"), pod("c", { isReady: false })] },
      begin: ["c"],
      left: ["a", "b"],
    },
    "several that are not ready still take turns": {
      given: { pods: three.map(each => ({ ...each, isReady: false })) },
      begin: ["a"],
      left: ["b", "c"],
    },
    "also when one of them is under way": {
      given: { pods: three.map(each => ({ ...each, isReady: false })), requests: [request("a", "Open")] },
      left: ["b", "c"],
    },
    "a restarted pod that is not ready again uses it up": {
      given: { pods: [pod("a", { isReady: false }), pod("b"), pod("c")], requests: [request("a", "Succeeded")] },
      left: ["b", "c"],
      waitsFor: "1 of 3 pods is not ready (a), and --max-unavailable is 1",
    },
    "so does a pod that is missing": {
      given: { pods: [pod("a"), pod("b")] },
      left: ["a", "b"],
      waitsFor: "1 of 3 pods is not ready, and --max-unavailable is 1",
    },
    "so does a pod that is being deleted, which is not restarted": {
      given: { pods: [pod("a", { isGoing: true }), pod("b"), pod("c")] },
      left: ["b", "c"],
      waitsFor: "1 of 3 pods is not ready (a), and --max-unavailable is 1",
    },
    "a surplus pod of a rollout that is not ready does not": {
      given: {
        pods: [...three, pod("new", { isReady: false, createdAt: 2000 })],
        requests: [request("a", "Succeeded")],
      },
      begin: ["b"],
      left: ["c"],
    },
    "a pod with a request of another restart counts, and is not asked twice": {
      given: { requests: [request("a", "Open", { isOurs: false })], maxUnavailable: 2 },
      begin: ["b"],
      left: ["a", "c"],
    },
    "the last pod waits for that other request": {
      given: { pods: [pod("a")], wanted: 1, requests: [request("a", "Open", { isOurs: false })] },
      left: ["a"],
      waitsFor: "another request for pod a is not complete",
    },
  },
  PodDisruptionBudgets: {
    "one that allows it": { given: { budgets: [budget()] }, begin: ["a"], left: ["b", "c"] },
    "allow fewer than maxUnavailable": {
      given: { budgets: [budget()], maxUnavailable: 3 },
      begin: ["a"],
      left: ["b", "c"],
    },
    "a full one": {
      given: { budgets: [budget({ disruptionsAllowed: 0 })] },
      left: ["a", "b", "c"],
      waitsFor: "PodDisruptionBudget web allows no disruption now",
    },
    "each of several counts": {
      given: { budgets: [budget(), budget({ name: "all", selector: {}, disruptionsAllowed: 0 })] },
      left: ["a", "b", "c"],
      waitsFor: "PodDisruptionBudget all allows no disruption now",
    },
    "one of other pods does not": {
      given: { budgets: [budget({ selector: { matchLabels: { app: "other" } }, disruptionsAllowed: 0 })] },
      begin: ["a"],
      left: ["b", "c"],
    },
    "one without a selector selects nothing": {
      given: { budgets: [budget({ selector: undefined, disruptionsAllowed: 0 })] },
      begin: ["a"],
      left: ["b", "c"],
    },
    "a status of an earlier generation allows nothing": {
      given: { budgets: [budget({ isCurrent: false })] },
      left: ["a", "b", "c"],
      waitsFor: "PodDisruptionBudget web allows no disruption now",
    },
    "a request was made, and the pod is still ready": {
      given: { budgets: [budget()], requests: [request("a", "Open")], maxUnavailable: 2 },
      left: ["b", "c"],
    },
    "the same where a pod of another workload is down too": {
      given: { budgets: [budget({ mayBeDown: 2 })], requests: [request("a", "Open")], maxUnavailable: 2 },
      left: ["b", "c"],
    },
    "the pod is not ready, and the budget has not noticed yet": {
      given: {
        pods: [pod("a", { isReady: false }), pod("b"), pod("c")],
        budgets: [budget()],
        requests: [request("a", "Open")],
        maxUnavailable: 2,
      },
      left: ["b", "c"],
    },
    "a pod that is not ready lowers no budget": {
      given: {
        pods: [pod("a"), pod("b", { isReady: false })],
        wanted: 2,
        budgets: [budget({ disruptionsAllowed: 0 })],
      },
      begin: ["b"],
      left: ["a"],
    },
    "only the pods that a full one selects wait": {
      given: {
        pods: [pod("a"), pod("b", { labels: { app: "web", zone: "2" } })],
        wanted: 2,
        budgets: [
          budget({
            selector: { matchExpressions: [{ key: "zone", operator: "DoesNotExist" }] },
            disruptionsAllowed: 0,
          }),
        ],
      },
      begin: ["b"],
      left: ["a"],
    },
  },
  failures: {
    "no further pod begins": { given: { requests: [request("a", "Failed")] }, left: ["b", "c"], isOver: true },
    "what is under way is waited for": {
      given: { requests: [request("a", "Failed"), request("b", "Open")], maxUnavailable: 2 },
      left: ["c"],
    },
    "one of an earlier attempt is tried again": {
      given: { requests: [request("a", "Failed")], forgiven: new Set(["a-r1"]) },
      begin: ["a"],
      left: ["b", "c"],
    },
    "and again fails only that attempt": {
      given: {
        requests: [request("a", "Failed"), request("a", "Failed", { name: "a-r1-2", createdAt: 2000 })],
        forgiven: new Set(["a-r1"]),
      },
      left: ["b", "c"],
      isOver: true,
    },
    "a pod that went away is none": {
      given: { pods: three.slice(1), wanted: 2, requests: [request("a", "PodGone")] },
      begin: ["b"],
      left: ["c"],
    },
  },
  "pods that came since": {
    "have new containers already": {
      given: { pods: [pod("a"), pod("new", { createdAt: 2000 })], wanted: 2, requests: [request("a", "Succeeded")] },
      isOver: true,
    },
    "also under the same name": {
      given: { pods: [pod("a", { uid: "another" })], wanted: 1, requests: [request("a", "Succeeded")] },
      isOver: true,
    },
    "also when the first one had failed": {
      given: {
        pods: [pod("a", { uid: "another" })],
        wanted: 1,
        requests: [request("a", "Failed")],
        forgiven: new Set(["a-r1"]),
      },
      isOver: true,
    },
  },
}

for (const [about, cases] of Object.entries(tables))
  describe(about, () => {
    for (const [name, { given, begin = [], left = [], waitsFor, isOver = false }] of Object.entries(cases))
      test(name, () => expect(words({ ...calm, ...given })).toEqual({ begin, left, waitsFor, isOver }))
  })

test("an attempt after a failed one is numbered", () => {
  const { begin } = nextRestarts({ ...calm, requests: [request("a", "Failed")], forgiven: new Set(["a-r1"]) })
  expect(begin.map(({ attempt }) => attempt)).toEqual([2])
})
