import { expect, test } from "vitest"
import type { ContainerRecreateRequest, ContainerState } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { ContainerRecreateRequest as Kind, limitPrefix } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { validate } from "#api/validate.ts"
import { formatMicroInstant } from "#lib/instant.ts"
import { agentAnswersMs, agentIsQuickMs, type Plan, plan, type Snapshot, wantsUnready } from "./plan.ts"
import type { ContainerFacts, PodFacts } from "./pod.ts"
import { report } from "./report.ts"

const now = Date.parse("2026-01-01T00:10:00Z")
const started = now - 5000

type Spec = Partial<Omit<ContainerRecreateRequest["spec"], "strategy">> & { strategy?: object }

function request(spec: Spec = {}, status?: Partial<ContainerRecreateRequest["status"]>): ContainerRecreateRequest {
  const written = {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ContainerRecreateRequest",
    metadata: { name: "restart", namespace: "shop", generation: 1 },
    spec: { podName: "web-0", containers: [{ name: "app" }], ...spec },
  }
  const { object, errors } = validate(Kind, written)
  expect(errors).toEqual([])
  return { ...object!, ...(status && { status: { observedGeneration: 1, ...none, ...status } }) }
}
const none = { containerRecreateStates: [], containerStatusSnapshot: [], conditions: [] }

const running = (name: string, fields: Partial<ContainerFacts> = {}): ContainerFacts => ({
  name,
  restartPolicy: "Always",
  id: `containerd://${name}-1`,
  restartCount: 0,
  isReady: true,
  state: { is: "Running" },
  ...fields,
})
const again = (name: string, fields: Partial<ContainerFacts> = {}) =>
  running(name, { id: `containerd://${name}-2`, restartCount: 1, ...fields })
const pod = (fields: Partial<PodFacts> = {}): PodFacts => ({
  resourceVersion: "7",
  uid: "pod-uid",
  node: "node-a",
  isTerminating: false,
  hasEnded: false,
  isStatic: false,
  isForWindows: false,
  initContainers: ["setup"],
  containers: [running("app"), running("sidecar")],
  gate: undefined,
  ...fields,
})
const state = (name: string, fields: Partial<ContainerState> = {}): ContainerState => ({
  name,
  phase: "Pending",
  containerID: `containerd://${name}-1`,
  restartCount: 0,
  ...fields,
})
const stopped = { phase: "Recreating", stopTime: formatMicroInstant(now - 2000) } as const

/** A request that the agent has. */
const handedOver = (spec: Spec, states: ContainerState[], fields: object = {}) =>
  request(spec, {
    phase: "Recreating",
    podUID: "pod-uid",
    nodeName: "node-a",
    startTime: formatMicroInstant(started),
    handOverTime: formatMicroInstant(started),
    containerRecreateStates: states,
    ...fields,
  })
const pending = (spec: Spec, states: ContainerState[]) =>
  request(spec, {
    phase: "Pending",
    podUID: "pod-uid",
    startTime: formatMicroInstant(started),
    containerRecreateStates: states,
  })

const calm: Snapshot = {
  request: request(),
  pod: pod(),
  ahead: undefined,
  runningSince: () => now,
  gateRefusal: undefined,
  now,
}
const gated = (is: "True" | "False", since = now - 60_000) => pod({ gate: { is, since, isOfUpdate: false } })
const drained = { strategy: { unreadyGracePeriodSeconds: 3 } }
const both = { containers: [{ name: "app" }, { name: "sidecar" }] }

type Want = { phase: string; reason: string; states?: string[]; says?: string; lookAgainAt?: number }

const cases: Record<string, { given: Partial<Snapshot>; want: Want }> = {
  // What cannot be carried out is complete at once.
  "a pod that is not there": { given: { pod: undefined }, want: { phase: "Completed", reason: "PodNotFound" } },
  "a pod that is being deleted": {
    given: { pod: pod({ isTerminating: true }) },
    want: { phase: "Completed", reason: "PodTerminating" },
  },
  "a pod that has ended": { given: { pod: pod({ hasEnded: true }) }, want: { phase: "Completed", reason: "PodEnded" } },
  "a pod without a node": {
    given: { pod: pod({ node: "" }) },
    want: { phase: "Completed", reason: "PodNotScheduled" },
  },
  "a static pod": { given: { pod: pod({ isStatic: true }) }, want: { phase: "Completed", reason: "StaticPod" } },
  "a pod on Windows": {
    given: { pod: pod({ isForWindows: true }) },
    want: { phase: "Completed", reason: "WindowsPod" },
  },
  "a container that is not there": {
    given: { request: request({ containers: [{ name: "ap" }] }) },
    want: { phase: "Completed", reason: "ContainerNotFound", says: "write one of app, sidecar" },
  },
  "an init container": {
    given: { request: request({ containers: [{ name: "setup" }] }) },
    want: { phase: "Completed", reason: "InitContainer", states: ["setup Failed"] },
  },
  "a container that was never started": {
    given: { pod: pod({ containers: [running("app", { id: "" })] }) },
    want: { phase: "Completed", reason: "ContainerNotStarted" },
  },
  "restartPolicy Never": {
    given: { pod: pod({ containers: [running("app", { restartPolicy: "Never" })] }) },
    want: { phase: "Completed", reason: "RestartPolicyNever" },
  },

  // Turns.
  "a request is recorded and handed over at once": {
    given: {},
    want: {
      phase: "Recreating",
      reason: "Recreating",
      states: ["app Pending"],
      says: "node node-a",
      lookAgainAt: now + agentIsQuickMs,
    },
  },
  "a second request for the pod is recorded and waits": {
    given: { ahead: "first" },
    want: { phase: "Pending", reason: "Queued", states: ["app Pending"], says: "first" },
  },
  "it joins when the first has recreated the same container": {
    given: { request: pending({}, [state("app")]), ahead: "first", pod: pod({ containers: [again("app")] }) },
    want: { phase: "Completed", reason: "Succeeded", states: ["app Succeeded"] },
  },
  "it follows for the containers that the first did not have": {
    given: {
      request: pending(both, [state("app"), state("sidecar")]),
      pod: pod({ containers: [again("app"), running("sidecar")] }),
    },
    want: {
      phase: "Recreating",
      reason: "Recreating",
      states: ["app Succeeded", "sidecar Pending"],
      says: "node-a",
    },
  },
  "a forced one does not join: it is for the new container": {
    given: {
      request: pending({ strategy: { forceRecreate: true } }, [state("app")]),
      pod: pod({ containers: [again("app")] }),
    },
    want: { phase: "Recreating", reason: "Recreating", states: ["app Pending containerd://app-2"] },
  },

  // The drain.
  "the pod is set to not ready first": {
    given: { request: request(drained), pod: gated("True") },
    want: { phase: "Pending", reason: "Draining" },
  },
  "the drain counts from when the pod is not ready": {
    given: { request: pending(drained, [state("app")]), pod: gated("False", now - 1000) },
    want: { phase: "Pending", reason: "Draining", lookAgainAt: now + 3000 },
  },
  "after the drain it is handed over": {
    given: { request: pending(drained, [state("app")]), pod: gated("False", now - 4000) },
    want: { phase: "Recreating", reason: "Recreating" },
  },
  "a pod without the gate is not drained, which is reported": {
    given: { request: request(drained) },
    want: { phase: "Recreating", reason: "Recreating", says: "InPlaceUpdateReady" },
  },
  "a pod that may not be set to not ready is not touched": {
    given: {
      request: pending(drained, [state("app")]),
      pod: gated("True"),
      gateRefusal: { reason: "Forbidden", message: "no right" },
    },
    want: { phase: "Pending", reason: "Forbidden", says: "no right" },
  },

  // With the agent.
  "no answer yet": {
    given: { request: handedOver({}, [state("app")]) },
    want: { phase: "Recreating", reason: "WaitingForAgent", lookAgainAt: started + agentAnswersMs },
  },
  "no answer for 60 s": {
    given: { request: handedOver({}, [state("app")]), now: started + agentAnswersMs },
    want: { phase: "Completed", reason: "AgentMissing", states: ["app Failed"] },
  },
  "an agent that waits for its limit is not missing": {
    given: {
      request: handedOver({}, [state("app", { message: `${limitPrefix} of 10` })]),
      now: started + 5 * agentAnswersMs,
    },
    want: { phase: "Recreating", reason: "WaitingForLimit", says: "app: waits for the limit" },
  },
  "a container is being stopped": {
    given: { request: handedOver({}, [state("app", stopped)]) },
    want: { phase: "Recreating", reason: "Recreating", states: ["app Recreating"] },
  },
  "the new container is not ready yet": {
    given: {
      request: handedOver({}, [state("app", stopped)]),
      pod: pod({ containers: [again("app", { isReady: false })] }),
    },
    want: { phase: "Recreating", reason: "Recreating", states: ["app Recreating"] },
  },
  "the new container is ready": {
    given: { request: handedOver({}, [state("app", stopped)]), pod: pod({ containers: [again("app")] }) },
    want: { phase: "Completed", reason: "Succeeded", states: ["app Succeeded"] },
  },
  "the new container has not run for minStartedSeconds": {
    given: {
      request: handedOver({ strategy: { minStartedSeconds: 10 } }, [state("app", stopped)]),
      pod: pod({ containers: [again("app")] }),
      runningSince: () => now - 4000,
    },
    want: { phase: "Recreating", reason: "Recreating", lookAgainAt: now + 6000 },
  },
  "the kubelet's back-off is reported with its end": {
    given: {
      request: handedOver({}, [state("app", stopped)]),
      pod: pod({ containers: [running("app", { state: { is: "BackOff", until: now + 10_000 }, isReady: false })] }),
    },
    want: { phase: "Recreating", reason: "WaitingForBackOff", says: "until 2026-01-01T00:10:10Z" },
  },
  "OnFailure does not start a container that ended well": {
    given: {
      request: handedOver({}, [state("app", stopped)]),
      pod: pod({
        containers: [running("app", { restartPolicy: "OnFailure", state: { is: "Ended", exitCode: 0 } })],
      }),
    },
    want: { phase: "Completed", reason: "ContainerEnded", states: ["app Failed"] },
  },
  "OnFailure starts a container that was killed": {
    given: {
      request: handedOver({}, [state("app", stopped)]),
      pod: pod({
        containers: [running("app", { restartPolicy: "OnFailure", state: { is: "Ended", exitCode: 137 } })],
      }),
    },
    want: { phase: "Recreating", reason: "Recreating" },
  },
  "one failure ends it": {
    given: { request: handedOver(both, [state("app", { phase: "Failed", message: "no" }), state("sidecar")]) },
    want: { phase: "Completed", reason: "StopFailed", states: ["app Failed", "sidecar Failed"], says: "app: no" },
  },
  "with Ignore it goes on": {
    given: {
      request: handedOver({ ...both, strategy: { failurePolicy: "Ignore" } }, [
        state("app", { phase: "Failed", message: "no" }),
        state("sidecar"),
      ]),
    },
    want: { phase: "Recreating", reason: "Recreating", states: ["app Failed", "sidecar Pending"] },
  },
  "with Ignore it is not a success either": {
    given: {
      request: handedOver({ ...both, strategy: { failurePolicy: "Ignore" } }, [
        state("app", { phase: "Failed", message: "no" }),
        state("sidecar", { phase: "Succeeded" }),
      ]),
    },
    want: { phase: "Completed", reason: "StopFailed" },
  },

  // The end that comes from elsewhere.
  "the deadline": {
    given: {
      request: handedOver({ ...both, activeDeadlineSeconds: 5 }, [
        state("app", stopped),
        state("sidecar", { phase: "Succeeded" }),
      ]),
    },
    want: { phase: "Completed", reason: "DeadlineExceeded", states: ["app Failed", "sidecar Succeeded"], says: "app" },
  },
  "the deadline counts in the queue too": {
    given: { request: pending({ activeDeadlineSeconds: 5 }, [state("app")]), ahead: "first" },
    want: { phase: "Completed", reason: "DeadlineExceeded" },
  },
  "before the deadline": {
    given: { request: handedOver({ activeDeadlineSeconds: 6 }, [state("app", stopped)]) },
    want: { phase: "Recreating", reason: "Recreating", lookAgainAt: now + 1000 },
  },
  "another pod of the same name": {
    given: { request: handedOver({}, [state("app", stopped)]), pod: pod({ uid: "other" }) },
    want: { phase: "Completed", reason: "PodGone" },
  },
  "the pod is gone": {
    given: { request: handedOver({}, [state("app", stopped)]), pod: undefined },
    want: { phase: "Completed", reason: "PodGone" },
  },
}

for (const [name, { given, want }] of Object.entries(cases))
  test(name, () => {
    const seen = { ...calm, ...given }
    const next = plan(seen)
    expect({ phase: next.phase, reason: next.reason }).toEqual({ phase: want.phase, reason: want.reason })
    if (want.says) expect(next.message).toContain(want.says)
    if (want.states) expect(wordsOf(next)).toEqual(want.states.map(text => expect.stringContaining(text)))
    if (want.lookAgainAt !== undefined) expect(next.lookAgainAt).toBe(want.lookAgainAt)
    const { status } = report(seen, next, undefined, seen.now)
    expect(validate(Kind, { ...seen.request, status }).errors).toEqual([])
    // What was reported leads to the same again: no write follows from it.
    const after = { ...seen, request: { ...seen.request, status } as ContainerRecreateRequest }
    expect(report(after, plan(after), undefined, seen.now).status).toEqual(status)
  })

const wordsOf = ({ states }: Plan) => states.map(({ name, phase, containerID }) => `${name} ${phase} ${containerID}`)

test("a complete request is deleted when its time to live has passed", () => {
  const status = { phase: "Completed", completionTime: "2026-01-01T00:00:00Z" } as const
  const kept = plan({ ...calm, request: request({ ttlSecondsAfterFinished: 601 }, status) })
  expect(kept).toMatchObject({ isExpired: false, lookAgainAt: now + 1000 })
  expect(plan({ ...calm, request: request({ ttlSecondsAfterFinished: 600 }, status) }).isExpired).toBe(true)
  expect(plan({ ...calm, request: request({}, status) })).toMatchObject({ isExpired: false, lookAgainAt: undefined })
})

test("a pod is not ready from its turn to the end of the request, and only if it asks for that", () => {
  const asked = pending(drained, [state("app")])
  expect(wantsUnready(asked, undefined)).toBe(true)
  expect(wantsUnready(asked, "first")).toBe(false)
  expect(wantsUnready(handedOver(drained, [state("app")]), undefined)).toBe(true)
  expect(wantsUnready(request(drained, { phase: "Completed" }), undefined)).toBe(false)
  expect(wantsUnready(pending({}, [state("app")]), undefined)).toBe(false)
})
