import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import type { RuntimeCall } from "#test/support/runtime-log.ts"
import { violationsOf } from "./invariants.ts"
import { decisionAnnotation } from "./reading.ts"

// The invariant itself: a history in which a tier starts after the proof, and one thing in it that is wrong.

const minute = 60_000
const wanted = "registry.example.com/web:v2"
const told = (instant: number) => formatInstant(instant)

const commit = (revision: number, at: number, object: Json, before?: Json): Commit =>
  ({ revision, at, place: "", manager: "", type: before ? "MODIFIED" : "ADDED", object, before }) as Commit

const node = (uid = "uid-0"): Json => ({ apiVersion: "v1", kind: "Node", metadata: { name: "node-0", uid } })
const pod: Json = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "web-0",
    namespace: "default",
    ownerReferences: [{ apiVersion: "example.com/v1", kind: "Tenant", name: "web", uid: "web", controller: true }],
  },
  spec: { nodeName: "node-0" },
  status: { phase: "Running" },
}
const tenant = (image: string, annotations: Json = {}): Json => ({
  apiVersion: "example.com/v1",
  kind: "Tenant",
  metadata: { name: "web", namespace: "default", uid: "web", annotations, creationTimestamp: told(0) },
  spec: { image },
})
const serviceImage = (spec: Json, reason: string): Json => ({
  kind: "ServiceImage",
  metadata: { name: "si", uid: "si", generation: 1 },
  spec: {
    target: { apiVersion: "example.com/v1", kind: "Tenant" },
    defaultImage: wanted,
    tiers: [],
    preCache: "BeforeTier",
    preCacheTimeoutSeconds: 600,
    ...spec,
  },
  status: {
    electionID: "1",
    inflight: ["default/web"],
    operation: { id: "g1", phase: "Progressing", startedAt: told(5 * minute) },
    priorityStartedAt: told(5 * minute),
    tierStatus: [{ upgradeTier: "", conditions: [{ type: "Complete", status: "False", reason }] }],
    conditions: [],
  },
})

type Difference = {
  spec?: Json
  call?: Partial<RuntimeCall> | null
  reason?: string
  stampedAt?: number
  decision?: Json
  hasNode?: boolean
}

/** The status at 10 min, proof at 8 min, the stamp a second after the status. */
function history({ spec = {}, call = {}, reason = "RollingOut", decision, ...rest }: Difference = {}): Run {
  const { stampedAt = 10 * minute + 1000, hasNode = true } = rest
  const decided = { by: "serviceimage/si", uid: "si", operation: "g1", reason: "Stamped", to: wanted, ...decision }
  const before = tenant("registry.example.com/web:v1")
  const after = tenant(wanted, { [decisionAnnotation]: JSON.stringify(decided) })
  const status = serviceImage(spec, reason)
  const statusAt = stampedAt - 1000
  const sent = (path: string, body: Json, at: number, after: number, revision: number): Sent => {
    const metadata = { resourceVersion: "1" }
    return { process: 1, method: path.includes("status") ? "PUT" : "PATCH", path, body: { ...body, metadata }, at, after, revision } // biome-ignore format: one line
  }
  const proof = {
    ...{ node: "node-0", nodeUid: "uid-0", agent: 0, method: "imageStatus", subject: wanted, at: 8 * minute },
    ...{ after: 5, begun: 1, ended: 2, endedAfter: 5, imageId: "sha256:a", ...call },
  } as RuntimeCall
  const other = { ...proof, node: "node-9", nodeUid: "uid-9" }
  return {
    seed: 0,
    initial: [],
    lagMs: 0,
    commits: [
      ...(hasNode ? [commit(1, 0, node())] : []),
      commit(2, 0, before),
      commit(3, 0, pod),
      commit(6, statusAt, status, { ...status, status: undefined }),
      commit(7, stampedAt, after, before),
    ],
    sent: [
      sent("/apis/x/serviceimages/si/status", status, statusAt, 5, 6),
      sent("/apis/example.com/v1/namespaces/default/tenants/web", after, stampedAt, 6, 7),
    ],
    calls: call === null ? [other] : [other, proof],
  }
}

const cases: Record<string, { given: Difference; isWrong: boolean }> = {
  "after the proof": { given: {}, isWrong: false },
  "without a proof": { given: { call: null }, isWrong: true },
  "the runtime did not have it": { given: { call: { imageId: undefined } }, isWrong: true },
  "pulled, and not shown": { given: { call: { method: "pullImage" } }, isWrong: true },
  "shown on another node of that name": { given: { call: { nodeUid: "uid-1" } }, isWrong: true },
  "another tag was shown": { given: { call: { subject: "registry.example.com/web:v1" } }, isWrong: true },
  "another digest was shown": { given: { call: { subject: `${wanted}@sha256:${"b".repeat(64)}` } }, isWrong: true },
  "shown before the operation": { given: { call: { at: 4 * minute } }, isWrong: true },
  "shown after the stamp": { given: { call: { endedAfter: 7 } }, isWrong: true },
  "Proceed, and the time is not up": { given: { call: null, spec: { preCacheMissing: "Proceed" } }, isWrong: true },
  "Proceed, and the time is up": {
    given: { call: null, spec: { preCacheMissing: "Proceed" }, stampedAt: 15 * minute },
    isWrong: false,
  },
  "Wait, and the time is up": { given: { call: null, stampedAt: 15 * minute }, isWrong: true },
  "not asked for": { given: { call: null, spec: { preCache: "Never" } }, isWrong: false },
  "a tier that is reopened": { given: { call: null, reason: "TierReopened" }, isWrong: false },
  "an object that never had an image": { given: { call: null, decision: { reason: "StampedNew" } }, isWrong: false },
  "taken back": { given: { call: null, decision: { reason: "RolledBack" } }, isWrong: false },
  "a node that is gone": { given: { call: null, hasNode: false }, isWrong: false },
}

for (const [name, { given, isWrong }] of Object.entries(cases))
  test(name, () => {
    const found = violationsOf(history(given)).filter(each => each.startsWith("S17"))
    expect(found).toHaveLength(isWrong ? 1 : 0)
  })
