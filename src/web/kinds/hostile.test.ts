import { expect, test } from "vitest"
import type { KubeObject } from "#runtime/resource.ts"
import { pages } from "./all.ts"
import { conditionsOf } from "./kind.ts"

// A bidi override reverses what stands behind it, and a bell rings. Neither may reach a page, from any field.
const evil = "a\u202eb\u0007c\u2028"
const long = "x".repeat(10_000)

const objectWith = (text: string): KubeObject =>
  ({
    metadata: {
      name: text,
      namespace: text,
      generation: 1,
      annotations: { "autoimagemanager.io/update-strategy": text },
    },
    spec: {
      image: text,
      podName: text,
      defaultImage: text,
      type: text,
      provider: { type: text },
      containers: [{ name: text }],
      template: { spec: { containers: [{ name: text, image: text }] } },
      target: { apiVersion: "apps/v1", kind: text },
      targetRef: { kind: text, name: text },
      tiers: [{ upgradeTier: text, image: text, priority: 1, steps: [{ percent: 10 }] }],
      imageSourceReplacements: [{ equivalentRepositories: [text] }],
    },
    status: {
      observedGeneration: 1,
      phase: text,
      nodeName: text,
      conditions: [{ type: "Ready", status: "True", reason: text, message: text, observedGeneration: 1 }],
      tierStatus: [
        {
          upgradeTier: text,
          newDeploymentImage: text,
          failures: [{ reason: text, scope: text, count: 1, message: text, examples: [text] }],
        },
      ],
      operation: { id: text, phase: text, startedAt: text, images: { [text]: text }, cause: text },
      history: [
        {
          id: text,
          phase: text,
          startedAt: text,
          images: { [text]: text },
          cause: text,
          source: { images: [text] },
          target: { images: [text] },
          result: text,
          reason: text,
          message: text,
        },
      ],
      targetsAvailable: [
        {
          container: text,
          currentRepository: text,
          name: text,
          type: { group: "", kind: text },
          incident: { since: text, reason: text, image: text, failing: text, working: text, bad: [text] },
          switches: [{ oldImage: text, newImage: text, time: text, reason: text }],
        },
      ],
      failedNodes: [{ name: text, message: text }],
      imageStatuses: { [text]: { tags: [{ tag: text, phase: text, message: text }] } },
      failedImageStatuses: [{ name: text, message: text }],
      containerRecreateStates: [{ name: text, phase: text, message: text }],
      run: {
        id: text,
        startedAt: text,
        source: { hash: text, images: [text] },
        target: { hash: text, images: [text] },
        sizes: { full: 1, source: 1, target: 1 },
        metrics: [{ name: text, verdict: text, value: text, message: text, count: 1, at: text }],
        gates: [{ type: text, name: text, state: text, message: text, approvedBy: text, since: text }],
      },
    },
  }) as unknown as KubeObject

for (const page of pages)
  test(`${page.resource.kind}: hostile text is shown without what moves or hides text, and bounded`, () => {
    const shownOf = (text: string) => {
      const cutter = page.open({ now: () => 1 })
      const object = objectWith(text)
      const row = cutter.row(object)
      return JSON.stringify([row, cutter.details(object), conditionsOf(object)])
    }
    expect(shownOf(evil)).toContain("a\ufffdb\ufffdc\ufffd")
    for (const each of ["\u202e", "\u2028", "\\u202e", "\\u0007", "\\u2028"]) expect(shownOf(evil)).not.toContain(each)
    expect(shownOf(long)).not.toMatch(/x{2100}/)
  })
