import { describe, expect, test } from "vitest"
import { controllerOf, imagesOf, type PodFacts, readPod, refusalOf } from "./pod-facts.ts"

type Json = Record<string, unknown>

const pod = (status: Json = {}, spec: Json = {}, metadata: Json = {}) => ({
  metadata: { name: "web-1", namespace: "shop", uid: "p", resourceVersion: "7", ...metadata },
  spec: { containers: [{ name: "app", image: "shop/web:2" }], ...spec },
  status,
})
const waiting = (reason: string, message?: string) => ({
  containerStatuses: [{ name: "app", ready: false, state: { waiting: { reason, message } } }],
})
const ready = { type: "Ready", status: "True" }

describe("what is wrong with a pod", () => {
  const pull = 'rpc error: code = NotFound desc = failed to pull image "shop/web:2": not found'
  const cases: Record<string, { status: Json; trouble: PodFacts["trouble"] }> = {
    "nothing of a pod without container statuses": { status: { phase: "Pending" }, trouble: undefined },
    "nothing of a pod whose containers are being made": { status: waiting("ContainerCreating"), trouble: undefined },
    "nothing of a ready one": {
      status: { phase: "Running", conditions: [ready], containerStatuses: [{ name: "app", ready: true }] },
      trouble: undefined,
    },
    "nothing of one that is done": {
      status: {
        phase: "Succeeded",
        containerStatuses: [{ name: "app", ready: false, lastState: { terminated: { exitCode: 1 } } }],
      },
      trouble: undefined,
    },
    "an image that cannot be pulled": {
      status: waiting("ErrImagePull", pull),
      trouble: said("ImagePullFailed", 'failed to pull image "shop/web:2": not found'),
    },
    "the same while the kubelet waits before it tries again": {
      status: waiting("ImagePullBackOff", `Back-off pulling image "shop/web:2": ErrImagePull: ${pull}`),
      trouble: said("ImagePullFailed", 'failed to pull image "shop/web:2": not found'),
    },
    "the same from a kubelet that does not say why": {
      status: waiting("ImagePullBackOff", 'Back-off pulling image "shop/web:2"'),
      trouble: said("ImagePullFailed", "ImagePullBackOff"),
    },
    "the end of a long error, where its cause stands": {
      status: waiting("ErrImagePull", `${"failed to resolve: ".repeat(20)}not found`),
      trouble: said("ImagePullFailed", `…${`${"failed to resolve: ".repeat(20)}not found`.slice(-127)}`),
    },
    "an image of an init container": {
      status: { initContainerStatuses: [{ name: "init", state: { waiting: { reason: "InvalidImageName" } } }] },
      trouble: said("ImagePullFailed", "InvalidImageName"),
    },
    "a pull before a crash beside it": {
      status: {
        containerStatuses: [
          { name: "app", ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } },
          { name: "side", ready: false, state: { waiting: { reason: "ErrImageNeverPull" } } },
        ],
      },
      trouble: said("ImagePullFailed", "ErrImageNeverPull"),
    },
    "a crash loop, without the name of the pod and how long it waits": {
      status: {
        containerStatuses: [
          {
            name: "app",
            ready: false,
            state: {
              waiting: {
                reason: "CrashLoopBackOff",
                message: "back-off 5m0s restarting failed container=app pod=web-1_shop(p)",
              },
            },
            lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } },
          },
        ],
      },
      trouble: said("Unhealthy", "CrashLoopBackOff: container app exited with 137 (OOMKilled)"),
    },
    "a loop of a program that ends without an error": {
      status: waiting("CrashLoopBackOff"),
      trouble: said("Unhealthy", "CrashLoopBackOff: container app keeps ending"),
    },
    "a container that cannot be made": {
      status: waiting("CreateContainerConfigError", 'secret "web" not found'),
      trouble: said("Unhealthy", 'CreateContainerConfigError: container app: secret "web" not found'),
    },
    "the end of a long error of one that cannot be made": {
      status: waiting("CreateContainerError", `${"failed to ".repeat(20)}bind`),
      trouble: said(
        "Unhealthy",
        `CreateContainerError: container app: …${`${"failed to ".repeat(20)}bind`.slice(-(127 - 37))}`,
      ),
    },
    "a container that has just crashed": {
      status: {
        phase: "Running",
        containerStatuses: [{ name: "app", ready: false, state: { terminated: { exitCode: 1, reason: "Error" } } }],
      },
      trouble: said("Unhealthy", "container app exited with 1 (Error)"),
    },
    "one that runs again after a crash and is not ready": {
      status: {
        phase: "Running",
        containerStatuses: [
          {
            name: "app",
            ready: false,
            state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
            lastState: { terminated: { exitCode: 2 } },
          },
        ],
      },
      trouble: said("Unhealthy", "container app exited with 2"),
    },
    "not one that crashed once and is ready since": {
      status: {
        phase: "Running",
        conditions: [ready],
        containerStatuses: [{ name: "app", ready: true, lastState: { terminated: { exitCode: 2 } } }],
      },
      trouble: undefined,
    },
    "a pod that failed": {
      status: { phase: "Failed", reason: "DeadlineExceeded", message: "active on the node for too long" },
      trouble: said("Unhealthy", "the pod failed (DeadlineExceeded): active on the node for too long"),
    },
    "not a pod that its node evicted": {
      status: {
        phase: "Failed",
        reason: "Evicted",
        containerStatuses: [{ name: "app", ready: false, state: { terminated: { exitCode: 137 } } }],
      },
      trouble: undefined,
    },
    "not a pod that did not fit after all": { status: { phase: "Failed", reason: "OutOfcpu" }, trouble: undefined },
    "a pod that no node takes": {
      status: {
        phase: "Pending",
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/3 nodes are available: 3 Insufficient cpu.",
          },
        ],
      },
      trouble: said("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."),
    },
    "not a pod that is held back on purpose": {
      status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }] },
      trouble: undefined,
    },
    "a pod that runs and is not ready, which may just be starting": {
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "False" }],
        containerStatuses: [
          { name: "app", ready: false, state: { running: { startedAt: "2026-01-01T00:00:00Z" } } },
          { name: "side", ready: true, state: { running: { startedAt: "2026-01-01T00:00:00Z" } } },
        ],
      },
      trouble: { ...said("Unhealthy", "container app runs and is not ready"), isTentative: true },
    },
    "a pod that is not ready though its containers are": {
      status: { phase: "Running", containerStatuses: [{ name: "app", ready: true }] },
      trouble: { ...said("Unhealthy", "the pod runs and is not ready"), isTentative: true },
    },
  }
  for (const [name, { status, trouble }] of Object.entries(cases))
    test(name, () => expect(readPod(pod(status)).trouble).toEqual(trouble))
})

describe("what is kept of a pod", () => {
  test("whose it is, where, and its images, each once and sorted", () => {
    const facts = readPod(
      pod(
        { phase: "Running", conditions: [ready] },
        {
          nodeName: "n1",
          containers: [{ image: "b" }, { image: "a" }, { image: "b" }],
          initContainers: [{ image: "c" }],
          imagePullSecrets: [{ name: "two" }, { name: "one" }, { name: "two" }, { name: "NO" }],
        },
        {
          creationTimestamp: "1970-01-01T00:01:00Z",
          ownerReferences: [{ uid: "other" }, { uid: "u", controller: true }],
        },
      ),
    )
    expect(facts).toEqual({
      resourceVersion: "7",
      owner: "u",
      node: "n1",
      images: ["a", "b", "c"],
      pullSecrets: ["one", "two"],
      trouble: undefined,
      createdAtSeconds: 60,
      isFinished: false,
      isTerminating: false,
      crash: undefined,
      steadySeconds: 0,
    })
  })

  test("whether it is done or going", () => {
    const ends = ["Succeeded", "Failed", "Running", "Unknown"].map(phase => readPod(pod({ phase })).isFinished)
    expect(ends).toEqual([true, true, false, false])
    expect(readPod(pod({}, {}, { deletionTimestamp: "2026-01-01T00:00:00Z" })).isTerminating).toBe(true)
  })

  test("an owner that does not control it is none", () => {
    expect(controllerOf({ ownerReferences: [{ uid: "u" }, { uid: "v", controller: "true" }, null, 7] })).toBe("")
  })

  const hostile: Record<string, Json> = {
    "no spec, no status": { spec: undefined, status: undefined },
    "nulls everywhere": { spec: null, status: null },
    "words for objects": { spec: "spec", status: "status" },
    "objects for words": { spec: { nodeName: {}, containers: [{ image: {} }] }, status: { phase: {}, reason: [] } },
    "things that are no lists": { spec: { containers: {} }, status: { conditions: 1, containerStatuses: "x" } },
    "lists of things that are no objects": {
      spec: { containers: [null, 1, "x"] },
      status: { conditions: [null, 2], containerStatuses: [null, { state: null }, { state: { waiting: 3 } }] },
    },
  }
  for (const [name, parts] of Object.entries(hostile))
    test(`is little, but not nothing, of a hostile one: ${name}`, () => {
      const facts = readPod({ ...pod(), ...parts })
      expect(facts).toMatchObject({ resourceVersion: "7", owner: "", node: "", images: [], trouble: undefined })
    })

  test("is bounded", () => {
    const many = Array.from({ length: 5000 }, (_, index) => ({
      name: `c${index}`,
      image: `${"x".repeat(5000)}${index}`,
    }))
    const long = waiting("CreateContainerError", "x".repeat(100_000))
    const { images, trouble } = readPod(pod(long, { containers: many, initContainers: many }))
    expect(images.length).toBeLessThanOrEqual(16)
    expect(Math.max(...images.map(image => image.length))).toBeLessThanOrEqual(512)
    expect(trouble?.message.length).toBeLessThanOrEqual(128)
  })

  test("is printable", () => {
    const { trouble } = readPod(pod(waiting("ErrImagePull", "a\u001b[31m\nb\u202ec\u0000\u2028d\ud83d")))
    expect(trouble?.message).toBe("a [31m b c d")
  })
})

describe("a container that an update in place has replaced", () => {
  const mark = (restarts: number) => ({
    annotations: {
      "autoimagemanager.io/in-place": JSON.stringify({
        ...{ operation: "1-x", from: { app: "shop/web:1" }, to: { app: "shop/web:2" }, at: "2026-01-01T00:00:00Z" },
        was: { app: { id: "containerd://old", restarts } },
      }),
    },
  })
  const status = (restartCount: number, ended: string) => ({
    phase: "Running",
    containerStatuses: [
      {
        ...{ name: "app", ready: false, restartCount, state: { running: {} } },
        lastState: { terminated: { exitCode: 137, containerID: `containerd://${ended}` } },
      },
    ],
  })
  test("has not crashed, whatever its exit code", () => {
    expect(readPod(pod(status(1, "old"))).crash).toBeDefined()
    expect(readPod(pod(status(1, "old"), {}, mark(0))).crash).toBeUndefined()
  })
  test("restarts from before count no more, and those since do", () => {
    expect(readPod(pod(status(9, "new"), {}, mark(7))).crash).toMatchObject({ isLoop: false })
    expect(readPod(pod(status(10, "new"), {}, mark(7))).crash).toMatchObject({ isLoop: true })
  })
})

test("a container may be called as any property of JavaScript is", () => {
  const containers = ["constructor", "valueOf", "app"].map(name => ({ name, image: `${name}.example/app:1` }))
  const expected = ["app.example/app:1", "constructor.example/app:1", "valueOf.example/app:1"]
  expect(imagesOf({ containers })).toEqual(expected)
  expect(imagesOf({ containers }, { was: { app: "app.example/app:1" }, to: "app.example/app:1" })).toEqual(expected)
})

describe("why no pod could be made", () => {
  const cases: Record<string, { says: string; reason: string; message: string }> = {
    "a quota is full": {
      says: 'pods "web-5d9f-x8k2p" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2',
      reason: "QuotaExceeded",
      message: "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2",
    },
    "an event says it of a DaemonSet": {
      says: 'Error creating: pods "web-x8k2p" is forbidden: exceeded quota: small, requested: pods=1',
      reason: "QuotaExceeded",
      message: "exceeded quota: small, requested: pods=1",
    },
    "an event says it of a StatefulSet": {
      says: 'Create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: small',
      reason: "QuotaExceeded",
      message: "exceeded quota: small",
    },
    "no quota covers it": {
      says: 'pods "a" is forbidden: insufficient quota to consume: nvidia.com/gpu',
      reason: "QuotaExceeded",
      message: "insufficient quota to consume: nvidia.com/gpu",
    },
    "pod security": {
      says: 'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
      reason: "AdmissionDenied",
      message: 'violates PodSecurity "restricted:latest": runAsNonRoot != true',
    },
    "a webhook": {
      says: 'admission webhook "images.example.com" denied the request: unsigned',
      reason: "AdmissionDenied",
      message: 'admission webhook "images.example.com" denied the request: unsigned',
    },
    "a policy": {
      says: `pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
      reason: "AdmissionDenied",
      message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
    },
    "no right to": {
      says: 'pods is forbidden: User "system:serviceaccount:shop:operator" cannot create resource "pods" in API group ""',
      reason: "Forbidden",
      message:
        'pods is forbidden: User "system:serviceaccount:shop:operator" cannot create resource "pods" in API group ""',
    },
    "something else": {
      says: 'pods "a" is forbidden: error looking up service account shop/web: serviceaccount "web" not found',
      reason: "AdmissionDenied",
      message: 'error looking up service account shop/web: serviceaccount "web" not found',
    },
  }
  for (const [name, { says, reason, message }] of Object.entries(cases))
    test(name, () => expect(refusalOf(says)).toEqual({ reason, message, isTentative: false }))

  test("is reported for any message", () => {
    expect(refusalOf({ hostile: true })).toEqual({ reason: "AdmissionDenied", message: "", isTentative: false })
    expect(refusalOf("create ".repeat(10_000)).message.length).toBeLessThanOrEqual(128)
  })
})

function said(reason: "ImagePullFailed" | "Unhealthy" | "Unschedulable", message: string) {
  return { reason, message, isTentative: false } as const
}

test("a pull that the node holds back has failed nowhere yet", () => {
  const waiting = { reason: "ErrImagePull", message: "pull QPS exceeded" }
  const status = { phase: "Pending", containerStatuses: [{ name: "app", ready: false, state: { waiting } }] }
  expect(readPod({ metadata: {}, status } as never).trouble).toBeUndefined()
})
