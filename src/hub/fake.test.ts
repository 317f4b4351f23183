import { describe, expect, test } from "vitest"
import type { Contested, Manifest, Refused } from "#core/cluster-fleet/transport.ts"
import { virtualClock } from "#runtime/clock.ts"
import { deliveryOf, type TransportWorld, transportSuite } from "#test/support/transport/suite.ts"
import { createFakeTransport, type SpokeScript } from "./test-fake.ts"

async function open(script: SpokeScript): Promise<TransportWorld> {
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const isTaken = new Set<string>()
  const answers = ({ metadata, spec }: Manifest): Refused | Contested | undefined => {
    if (typeof (spec as { equivalentRepositories?: unknown })?.equivalentRepositories === "number")
      return { is: "Refused", reason: "Invalid", message: "spec.equivalentRepositories must be a list" }
    return isTaken.has(metadata.name) ? { is: "Contested", message: "the field belongs to editor" } : undefined
  }
  const { transport, spoke } = createFakeTransport({ clock, clusters: { north: { answers, ...script } } })
  const north = spoke("north")
  return {
    transport,
    cluster: "north",
    pass: () => clock.advance(1000),
    spoke: {
      read: async manifest => structuredClone(north.read(manifest)),
      async edit(manifest, change) {
        isTaken.add(manifest.metadata.name)
        north.edit(manifest, object => Object.assign(object, change))
      },
      status: async (manifest, status) => north.edit(manifest, object => Object.assign(object, { status })),
      delete: async manifest => north.delete(manifest),
    },
    setAway: async isAway => north.setAway(isAway),
    restarted: async () => transport,
    close: async () => {},
  }
}

describe("a cluster that is written to", () => transportSuite({ open: () => open({}) }))
describe("a cluster that comes for what is there", () => transportSuite({ open: () => open({ hasMailbox: true }) }))

test("a scripted cluster becomes ready or stalls by itself", async () => {
  const clock = virtualClock(0)
  const stalls = { reason: "PullFailed", message: "no such tag" }
  const { transport } = createFakeTransport({
    clock,
    clusters: { good: { readyAfterMs: 60_000 }, bad: { readyAfterMs: 60_000, stalls } },
  })
  const delivery = deliveryOf([
    {
      manifest: {
        apiVersion: "autoimagemanager.io/v1alpha1",
        kind: "ServiceImage",
        metadata: { name: "web" },
        spec: {},
      },
      lifetime: "Kept",
      judge: { by: "Ready", expects: [] },
    },
  ])
  for (const cluster of ["good", "bad"]) await transport.apply(cluster, delivery)
  await clock.advance(59_000)
  expect(await transport.observe("good", delivery)).toMatchObject({
    value: { objects: [{ verdict: { is: "Waiting" } }] },
  })
  await clock.advance(1_000)
  expect(await transport.observe("good", delivery)).toMatchObject({
    value: { objects: [{ verdict: { is: "Settled" } }] },
  })
  expect(await transport.observe("bad", delivery)).toMatchObject({
    value: { objects: [{ verdict: { is: "Stalled", ...stalls } }] },
  })
})
