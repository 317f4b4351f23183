import { expect, test } from "vitest"
import { AlternateImageSource, type Reason } from "#api/v1alpha1/alternateimagesource/index.ts"
import { type CheckName, checks } from "#controllers/alternateimagesource/checks.ts"
import { statusOf } from "#controllers/alternateimagesource/report.ts"
import { alternateImageSources, pods, workloadKinds } from "#controllers/alternateimagesource/resources.ts"
import { decisionAnnotation, formatDecision } from "#core/image/record.ts"
import { formatInstant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Inventory, kindOf } from "../inventory.ts"
import { decisionsOf, survey } from "./survey.ts"
import { whySource } from "./why.ts"

// One list gives a source its Ready condition and its explanation: in every combination of what can be said about it.

const now = Date.parse("2026-01-01T12:00:00Z")
const [quay, hub] = ["quay.io/team/app", "docker.io/team/app"]

type Json = Record<string, unknown>

const pod = (name: string, image: string, metadata: Json, status: Json): KubeObject =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop", uid: `uid-${name}`, resourceVersion: "1", ...metadata },
    spec: { nodeName: "n", containers: [{ name: "app", image }] },
    status: { phase: "Pending", containerStatuses: [{ name: "app", restartCount: 0, ...status }] },
  }) as unknown as KubeObject
const waiting = (reason: string, message: string) => ({ state: { waiting: { reason, message } } })
const repaired = {
  annotations: {
    [decisionAnnotation]: formatDecision({
      ...{ from: `${quay}:2`, was: { app: `${quay}:2` }, to: `${hub}:2`, reason: "Unreachable" },
      ...{ operation: "incident-1", by: "alternateimagesource/demo", at: now - 60_000 },
    }),
  },
}
const terminated = { exitCode: 3, reason: "Error", finishedAt: formatInstant(now - 5000) }
const crashed = { restartCount: 4, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated } }

type Replacement = { equivalentRepositories: string[]; targets?: Json[] }
const source = (name: string, createdAt: number, replacements: readonly Replacement[]): KubeObject =>
  ({
    apiVersion: AlternateImageSource.apiVersion,
    kind: "AlternateImageSource",
    metadata: {
      name,
      namespace: "shop",
      uid: `uid-${name}`,
      resourceVersion: "1",
      creationTimestamp: formatInstant(createdAt),
    },
    spec: AlternateImageSource.spec.parse({
      imageSourceReplacements: replacements,
      policy: { disabledRepositories: ["gone.example.com/app", "lost.example.com/app"] },
    }),
  }) as unknown as KubeObject
const taken = { type: { group: "", kind: "Pod" }, name: "taken", container: "app" }
const missing = { type: { group: "apps", kind: "Deployment" }, name: "gone", container: "app" }

/** What makes each check apply, and the reason that it then has. */
const causes: Record<CheckName, { objects?: KubeObject[]; replacement?: Replacement; reason: Reason }> = {
  stuck: {
    objects: [pod("rejected", `${quay}:3`, {}, waiting("SignatureValidationFailed", "no"))],
    reason: "SignatureRejected",
  },
  useless: {
    replacement: { equivalentRepositories: ["gone.example.com/app", "lost.example.com/app"] },
    reason: "NoAlternative",
  },
  troubled: {
    objects: [pod("fresh", `${quay}:1`, {}, waiting("ImagePullBackOff", "dial tcp: connection refused"))],
    reason: "Confirming",
  },
  crashing: { objects: [pod("crashing", `${hub}:2`, repaired, crashed)], reason: "CrashLoop" },
  missing: {
    replacement: { equivalentRepositories: ["a.example.com/web", "b.example.com/web"], targets: [missing] },
    reason: "TargetNotFound",
  },
  claimed: {
    objects: [
      pod("taken", `${quay}:1`, {}, { state: { running: {} } }),
      source("older", now - 7_200_000, [{ equivalentRepositories: [quay, hub], targets: [taken] }]),
    ],
    reason: "ClaimedByAnother",
  },
  elsewhere: { objects: [pod("moved", `${hub}:2`, repaired, { state: { running: {} } })], reason: "Switched" },
}
const names = checks.map(({ name }) => name)

for (let mask = 0; mask < 2 ** names.length; mask++) {
  const given = names.filter((_, index) => mask & (1 << index))
  test(`Ready and aim why name the same: ${given.join(", ") || "nothing"}`, () => {
    const replacements = given.flatMap(name => causes[name].replacement ?? [])
    const inventory = new Inventory()
    for (const resource of [alternateImageSources, pods, ...workloadKinds.map(each => each.resource)])
      inventory.list(kindOf(resource))
    const demo = source("demo", now - 3_600_000, [{ equivalentRepositories: [quay, hub] }, ...replacements])
    for (const object of [demo, ...given.flatMap(name => causes[name].objects ?? [])]) inventory.add(object)

    const seen = survey(inventory, "shop", now)
    const it = seen.all.find(({ metadata }) => metadata.name === "demo")!
    const status = statusOf(it, seen.sources.scene(it), decisionsOf(seen, it), new Map(), now)
    const expected = given[0] ? causes[given[0]].reason : "Watching"
    expect({
      ready: status.conditions.find(({ type }) => type === "Ready")!.reason,
      why: whySource(seen, it).reason,
    }).toEqual({ ready: expected, why: expected })
  })
}
