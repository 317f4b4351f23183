import type { Json } from "../../../object.ts"

/**
 * Lives of pods that were recorded on a real kubelet (1.36.3, containerd 1.6) by `tools/record-kubelet.ts`, and that a
 * simulated kubelet has to live again. `good.test` and `faulty.test` stand for the two registries of the recording.
 */
export type RecordedCase = {
  name: string
  /** `spec` of the pod; what is left out is the same for all: see `podOf`. */
  spec: Json
  steps?: Step[]
  /** How long it was looked at. */
  seconds: number
}

/** Done so long after the pod was created. */
export type Step = { atSeconds: number } & (
  | { do: "setImage"; container: string; image: string }
  | { do: "delete"; grace?: number }
  | { do: "evict" }
  | { do: "patch"; body: Json }
  | { do: "gate"; type: string; status: "True" | "False" }
  /** A running container is stopped through CRI, past the kubelet. */
  | { do: "stop"; container: string; grace: number }
)

/** What an image does on the real node; the simulated registries say the same in their words (see `registriesFile`). */
export type RecordedImage = {
  readyAfterSeconds?: number
  neverReady?: boolean
  exitsAfterSeconds?: number
  exitCode?: number
  ignoresTerm?: boolean
  paddingBytes?: number
  /** Not on the node before the case that pulls it; all others are. */
  isFresh?: boolean
}

export const images: Record<string, RecordedImage> = {
  "web:1": {},
  "web:2": {},
  "fresh:1": { isFresh: true },
  "big:1": { paddingBytes: 20_000_000, isFresh: true },
  "slow:1": { readyAfterSeconds: 5 },
  "deaf:1": { neverReady: true },
  "crash:1": { exitsAfterSeconds: 1, exitCode: 3 },
  "once:1": { exitsAfterSeconds: 2, exitCode: 0 },
  "stubborn:1": { ignoresTerm: true },
}

const one = (image: string, more: Json = {}, spec: Json = {}): Json => ({
  containers: [{ name: "app", image, ...more }],
  ...spec,
})
const two = (app: string, side: string, spec: Json = {}): Json => ({
  containers: [
    { name: "app", image: app },
    { name: "side", image: side },
  ],
  ...spec,
})
const fieldEnv = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
const http = (more: Json = {}) => ({ httpGet: { path: "/", port: 8080 }, ...more })

/** A pull that fails: long enough for the first two back-offs. */
const failing = (name: string, image: string, seconds = 45): RecordedCase => ({ name, spec: one(image), seconds })

export const cases: RecordedCase[] = [
  { name: "pull-success", spec: one("good.test/big:1"), seconds: 8 },
  { name: "pull-present", spec: one("good.test/web:1", { imagePullPolicy: "IfNotPresent" }), seconds: 5 },
  { name: "pull-always", spec: one("good.test/web:1", { imagePullPolicy: "Always" }), seconds: 5 },
  { name: "pull-never", spec: one("good.test/not-here:1", { imagePullPolicy: "Never" }), seconds: 40 },
  failing("pull-tag-missing", "good.test/web:missing"),
  failing("pull-repository-missing", "good.test/no/such/repository:1"),
  failing("pull-digest-missing", `good.test/web@sha256:${"0".repeat(64)}`, 20),
  failing("pull-401-bare", "faulty.test/bare-401:1"),
  failing("pull-401-basic", "faulty.test/basic-401:1", 20),
  failing("pull-401-token", "faulty.test/token-401:1", 20),
  failing("pull-401-scope", "faulty.test/scope-401:1", 20),
  failing("pull-403", "faulty.test/status-403:1", 20),
  failing("pull-404-bare", "faulty.test/status-404:1", 20),
  failing("pull-429", "faulty.test/status-429:1"),
  failing("pull-500", "faulty.test/status-500:1"),
  failing("pull-503", "faulty.test/status-503:1", 20),
  failing("pull-reset", "faulty.test/reset:1", 20),
  failing("pull-refused", "127.0.0.1:9/app:1", 45),
  failing("pull-unreachable", "192.0.2.1:5000/app:1", 45),
  failing("pull-tls", "tls.test/app:1", 20),
  failing("pull-plain", "plain.test/app:1", 20),
  failing("pull-invalid-name", "good.test/UPPER:1", 40),
  failing("pull-platform-missing", "faulty.test/no-platform:1", 20),
  {
    name: "in-place-good",
    spec: one("good.test/web:1"),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/fresh:1" }],
    seconds: 25,
  },
  {
    name: "in-place-present",
    spec: one("good.test/web:1"),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:2" }],
    seconds: 25,
  },
  {
    name: "in-place-missing-and-back",
    spec: one("good.test/web:1"),
    steps: [
      { atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:missing" },
      { atSeconds: 40, do: "setImage", container: "app", image: "good.test/web:1" },
    ],
    seconds: 70,
  },
  {
    name: "in-place-repair",
    spec: one("good.test/web:missing"),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:1" }],
    seconds: 20,
  },
  {
    name: "in-place-crash",
    spec: one("good.test/web:1"),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/crash:1" }],
    seconds: 45,
  },
  {
    name: "in-place-out-of-crash",
    spec: one("good.test/crash:1"),
    steps: [{ atSeconds: 20, do: "setImage", container: "app", image: "good.test/web:1" }],
    seconds: 70,
  },
  {
    name: "in-place-stubborn",
    spec: one("good.test/stubborn:1", {}, { terminationGracePeriodSeconds: 5 }),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:1" }],
    seconds: 30,
  },
  {
    name: "in-place-probe",
    spec: one("good.test/web:1", { readinessProbe: http({ periodSeconds: 2 }) }),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/slow:1" }],
    seconds: 30,
  },
  {
    name: "in-place-one-of-two",
    spec: {
      containers: [
        { name: "app", image: "good.test/web:1" },
        { name: "side", image: "good.test/deaf:1" },
      ],
    },
    steps: [{ atSeconds: 8, do: "setImage", container: "side", image: "good.test/stubborn:1" }],
    seconds: 25,
  },
  {
    name: "in-place-init",
    spec: one("good.test/web:1", {}, { initContainers: [{ name: "init", image: "good.test/once:1" }] }),
    steps: [{ atSeconds: 12, do: "setImage", container: "init", image: "good.test/crash:1" }],
    seconds: 30,
  },
  {
    name: "in-place-sidecar",
    spec: one(
      "good.test/web:1",
      {},
      { initContainers: [{ name: "side", image: "good.test/deaf:1", restartPolicy: "Always" }] },
    ),
    steps: [{ atSeconds: 10, do: "setImage", container: "side", image: "good.test/stubborn:1" }],
    seconds: 30,
  },
  {
    name: "in-place-two-at-once",
    spec: two("good.test/web:1", "good.test/deaf:1"),
    steps: [
      {
        atSeconds: 8,
        do: "patch",
        body: {
          spec: {
            containers: [
              { name: "app", image: "good.test/web:2" },
              { name: "side", image: "good.test/stubborn:1" },
            ],
          },
        },
      },
    ],
    seconds: 25,
  },
  {
    name: "in-place-sidecar-probe",
    spec: one(
      "good.test/deaf:1",
      {},
      {
        initContainers: [
          {
            name: "side",
            image: "good.test/web:1",
            restartPolicy: "Always",
            readinessProbe: http({ periodSeconds: 2 }),
          },
        ],
      },
    ),
    steps: [{ atSeconds: 10, do: "setImage", container: "side", image: "good.test/slow:1" }],
    seconds: 30,
  },
  {
    name: "in-place-gate",
    spec: two("good.test/web:1", "good.test/deaf:1", { readinessGates: [{ conditionType: "example.com/gate" }] }),
    steps: [
      { atSeconds: 6, do: "gate", type: "example.com/gate", status: "True" },
      { atSeconds: 9, do: "gate", type: "example.com/gate", status: "False" },
      { atSeconds: 12, do: "setImage", container: "app", image: "good.test/web:2" },
      { atSeconds: 18, do: "gate", type: "example.com/gate", status: "True" },
    ],
    seconds: 25,
  },
  {
    name: "in-place-metadata-env",
    spec: one("good.test/web:1", {
      env: [
        fieldEnv("VERSION", "metadata.labels['version']"),
        fieldEnv("NOTE", "metadata.annotations['example.com/note']"),
      ],
    }),
    steps: [
      {
        atSeconds: 8,
        do: "patch",
        body: { metadata: { labels: { version: "2" }, annotations: { "example.com/note": "two" } } },
      },
      { atSeconds: 14, do: "stop", container: "app", grace: 10 },
    ],
    seconds: 25,
  },
  {
    name: "in-place-and-back",
    spec: one("good.test/web:1"),
    steps: [
      { atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:2" },
      { atSeconds: 14, do: "setImage", container: "app", image: "good.test/web:1" },
    ],
    seconds: 25,
  },
  {
    name: "in-place-again-while-stopping",
    spec: one("good.test/stubborn:1", {}, { terminationGracePeriodSeconds: 6 }),
    steps: [
      { atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:1" },
      { atSeconds: 11, do: "setImage", container: "app", image: "good.test/deaf:1" },
    ],
    seconds: 30,
  },
  {
    name: "in-place-pre-stop",
    spec: one("good.test/web:1", { lifecycle: { preStop: { sleep: { seconds: 3 } } } }),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:2" }],
    seconds: 25,
  },
  {
    name: "in-place-never",
    spec: one("good.test/web:1", {}, { restartPolicy: "Never" }),
    steps: [{ atSeconds: 8, do: "setImage", container: "app", image: "good.test/web:2" }],
    seconds: 25,
  },
  {
    name: "cri-stop-once",
    spec: {
      containers: [
        {
          name: "app",
          image: "good.test/web:1",
          ports: [{ containerPort: 8080, name: "http" }, { containerPort: 9090 }],
          lifecycle: { preStop: { exec: { command: ["sleep", "1"] } } },
        },
        { name: "side", image: "good.test/deaf:1" },
      ],
    },
    steps: [{ atSeconds: 8, do: "stop", container: "app", grace: 10 }],
    seconds: 25,
  },
  {
    name: "cri-stop-three-times",
    spec: {
      containers: [
        { name: "app", image: "good.test/web:1" },
        { name: "side", image: "good.test/deaf:1" },
      ],
    },
    steps: [
      { atSeconds: 8, do: "stop", container: "app", grace: 10 },
      { atSeconds: 14, do: "stop", container: "app", grace: 10 },
      { atSeconds: 40, do: "stop", container: "app", grace: 10 },
    ],
    seconds: 85,
  },
  {
    name: "cri-stop-stubborn",
    spec: one("good.test/stubborn:1"),
    steps: [{ atSeconds: 8, do: "stop", container: "app", grace: 3 }],
    seconds: 20,
  },
  {
    name: "cri-stop-probe",
    spec: one("good.test/slow:1", { readinessProbe: http({ periodSeconds: 2 }) }),
    steps: [{ atSeconds: 15, do: "stop", container: "app", grace: 10 }],
    seconds: 30,
  },
  {
    name: "cri-stop-never",
    spec: one("good.test/web:1", {}, { restartPolicy: "Never" }),
    steps: [{ atSeconds: 8, do: "stop", container: "app", grace: 10 }],
    seconds: 20,
  },
  {
    name: "cri-stop-on-failure",
    spec: one("good.test/web:1", {}, { restartPolicy: "OnFailure" }),
    steps: [{ atSeconds: 8, do: "stop", container: "app", grace: 10 }],
    seconds: 20,
  },
  { name: "crash-loop", spec: one("good.test/crash:1"), seconds: 200 },
  { name: "crash-loop-completed", spec: one("good.test/once:1"), seconds: 60 },
  { name: "on-failure-crash", spec: one("good.test/crash:1", {}, { restartPolicy: "OnFailure" }), seconds: 40 },
  { name: "on-failure-once", spec: one("good.test/once:1", {}, { restartPolicy: "OnFailure" }), seconds: 15 },
  { name: "never-crash", spec: one("good.test/crash:1", {}, { restartPolicy: "Never" }), seconds: 15 },
  { name: "never-once", spec: one("good.test/once:1", {}, { restartPolicy: "Never" }), seconds: 15 },
  {
    name: "never-two",
    spec: {
      restartPolicy: "Never",
      containers: [
        { name: "app", image: "good.test/once:1" },
        { name: "bad", image: "good.test/crash:1" },
      ],
    },
    seconds: 15,
  },
  {
    name: "readiness-slow",
    spec: one("good.test/slow:1", { readinessProbe: http({ periodSeconds: 2, initialDelaySeconds: 1 }) }),
    seconds: 25,
  },
  {
    name: "readiness-never",
    spec: one("good.test/deaf:1", { readinessProbe: http({ periodSeconds: 5 }) }),
    seconds: 30,
  },
  {
    name: "liveness-never",
    spec: one(
      "good.test/deaf:1",
      { livenessProbe: http({ periodSeconds: 2, failureThreshold: 2 }) },
      { terminationGracePeriodSeconds: 3 },
    ),
    seconds: 60,
  },
  {
    name: "startup-slow",
    spec: one("good.test/slow:1", {
      startupProbe: http({ periodSeconds: 1, failureThreshold: 30 }),
      readinessProbe: http({ periodSeconds: 2 }),
    }),
    seconds: 25,
  },
  {
    name: "startup-never",
    spec: one("good.test/deaf:1", { startupProbe: http({ periodSeconds: 1, failureThreshold: 3 }) }),
    seconds: 40,
  },
  {
    name: "readiness-gate",
    spec: one("good.test/web:1", {}, { readinessGates: [{ conditionType: "example.com/gate" }] }),
    seconds: 10,
  },
  {
    name: "grace-delete",
    spec: one("good.test/web:1"),
    steps: [{ atSeconds: 8, do: "delete" }],
    seconds: 20,
  },
  {
    name: "grace-stubborn",
    spec: one("good.test/stubborn:1", {}, { terminationGracePeriodSeconds: 5 }),
    steps: [{ atSeconds: 8, do: "delete" }],
    seconds: 25,
  },
  {
    name: "grace-pre-stop",
    spec: one("good.test/web:1", { lifecycle: { preStop: { sleep: { seconds: 3 } } } }),
    steps: [{ atSeconds: 8, do: "delete" }],
    seconds: 25,
  },
  {
    name: "grace-shorter",
    spec: one("good.test/stubborn:1", {}, { terminationGracePeriodSeconds: 20 }),
    steps: [
      { atSeconds: 8, do: "delete" },
      { atSeconds: 11, do: "delete", grace: 2 },
    ],
    seconds: 25,
  },
  {
    name: "grace-force",
    spec: one("good.test/stubborn:1", {}, { terminationGracePeriodSeconds: 5 }),
    steps: [{ atSeconds: 8, do: "delete", grace: 0 }],
    seconds: 20,
  },
  {
    name: "grace-probe",
    spec: one(
      "good.test/stubborn:1",
      { readinessProbe: http({ periodSeconds: 1 }) },
      { terminationGracePeriodSeconds: 6 },
    ),
    steps: [{ atSeconds: 8, do: "delete" }],
    seconds: 25,
  },
  {
    name: "grace-pulling-failed",
    spec: one("good.test/web:missing"),
    steps: [{ atSeconds: 8, do: "delete" }],
    seconds: 20,
  },
  {
    name: "evict",
    spec: one("good.test/web:1"),
    steps: [{ atSeconds: 8, do: "evict" }],
    seconds: 20,
  },
  {
    name: "init-success",
    spec: one(
      "good.test/web:1",
      {},
      {
        initContainers: [
          { name: "first", image: "good.test/once:1" },
          { name: "second", image: "good.test/once:1" },
        ],
      },
    ),
    seconds: 25,
  },
  {
    name: "init-failure",
    spec: one("good.test/web:1", {}, { initContainers: [{ name: "first", image: "good.test/crash:1" }] }),
    seconds: 60,
  },
  {
    name: "init-failure-never",
    spec: one(
      "good.test/web:1",
      {},
      { restartPolicy: "Never", initContainers: [{ name: "first", image: "good.test/crash:1" }] },
    ),
    seconds: 20,
  },
  {
    name: "init-missing",
    spec: one("good.test/web:1", {}, { initContainers: [{ name: "first", image: "good.test/web:missing" }] }),
    seconds: 40,
  },
  {
    name: "sidecar",
    spec: one(
      "good.test/web:1",
      {},
      {
        initContainers: [
          {
            name: "side",
            image: "good.test/slow:1",
            restartPolicy: "Always",
            startupProbe: http({ periodSeconds: 1, failureThreshold: 30 }),
          },
          { name: "after", image: "good.test/once:1" },
        ],
      },
    ),
    steps: [{ atSeconds: 25, do: "delete" }],
    seconds: 40,
  },
  {
    name: "sidecar-job",
    spec: one(
      "good.test/once:1",
      {},
      {
        restartPolicy: "Never",
        initContainers: [{ name: "side", image: "good.test/deaf:1", restartPolicy: "Always" }],
      },
    ),
    seconds: 25,
  },
  {
    name: "two-one-missing",
    spec: {
      containers: [
        { name: "app", image: "good.test/web:1" },
        { name: "bad", image: "good.test/web:missing" },
      ],
    },
    seconds: 40,
  },
  { name: "active-deadline", spec: one("good.test/web:1", {}, { activeDeadlineSeconds: 8 }), seconds: 25 },
  { name: "host-network", spec: one("good.test/deaf:1", {}, { hostNetwork: true }), seconds: 8 },
  { name: "resources", spec: one("good.test/deaf:1", { resources: { requests: { cpu: "10m" } } }), seconds: 8 },
  { name: "schedule-selector", spec: one("good.test/web:1", {}, { nodeSelector: { zone: "nowhere" } }), seconds: 8 },
  {
    name: "schedule-cpu",
    spec: one("good.test/web:1", { resources: { requests: { cpu: "1000", memory: "100000Gi" } } }),
    seconds: 8,
  },
  {
    name: "schedule-affinity",
    spec: one(
      "good.test/web:1",
      {},
      {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["nowhere"] }] }],
            },
          },
        },
      },
    ),
    seconds: 8,
  },
  {
    name: "schedule-gate",
    spec: one("good.test/web:1", {}, { schedulingGates: [{ name: "example.com/wait" }] }),
    seconds: 8,
  },
]

/** The whole pod. Grace is short unless the case is about it, and no token is mounted: nothing of it is looked at. */
export function podOf({ name, spec }: RecordedCase): Json {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 10, automountServiceAccountToken: false, ...spec },
  }
}

/** The condition of a readiness gate, as the controller of the gate writes it. */
export const gateOf = ({ type, status }: Step & { do: "gate" }): Json => ({
  status: { conditions: [{ type, status }] },
})
