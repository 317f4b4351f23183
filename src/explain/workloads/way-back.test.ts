import { describe, expect, test } from "vitest"
import type { Sight } from "./facts.ts"
import { type Given, markOf, noteOf, pod, revision, sight, templateOf, v1, v2, v3 } from "./test-workloads.ts"
import { wayBack } from "./way-back.ts"

type Kind = "Deployment" | "StatefulSet" | "DaemonSet"
const [a, b, c] = [v1, v2, v3].map(image => templateOf(image)) as [object, object, object]
const all = (kind: Kind) => [a, b, c].map((template, index) => revision(kind, index + 1, template))
const podsOn = (kind: Kind, image: string, number: number, over: object = {}) =>
  [0, 1, 2].map(index => pod(`web-${index}`, { kind, image, revision: number, ...over }))

describe("a rollback without a number goes to", () => {
  const failing = noteOf("UpdateFailed", "", { to: { web: v3 } })
  const rows: Record<string, [given: Given, over: Partial<Sight>, to: number | undefined]> = {
    "the revision of the pods, and not to an image that failed before": [
      { kind: "DaemonSet", image: v3, note: failing },
      { revisions: all("DaemonSet"), pods: podsOn("DaemonSet", v1, 1) },
      1,
    ],
    "the current revision of a StatefulSet": [
      { kind: "StatefulSet", image: v3, note: failing, status: { currentRevision: "web-a" } },
      { revisions: all("StatefulSet"), pods: podsOn("StatefulSet", v2, 2) },
      1,
    ],
    "what ready pods run, where that is no revision any more": [
      { kind: "StatefulSet", image: v3, note: failing, status: { currentRevision: "web-f" } },
      { revisions: all("StatefulSet"), pods: podsOn("StatefulSet", v2, 2) },
      2,
    ],
    "the newest, where no pod that is not of the present template is ready": [
      { image: v3 },
      { revisions: all("Deployment"), pods: podsOn("Deployment", v1, 1, { isReady: false }) },
      2,
    ],
    "what the last update came from": [
      {
        kind: "StatefulSet",
        image: v3,
        lastNote: noteOf("Completed", "", { to: { web: v3 } }),
        status: { currentRevision: "web-c" },
      },
      { revisions: all("StatefulSet"), pods: podsOn("StatefulSet", v3, 3) },
      1,
    ],
    "the newest, where nothing is known": [
      { kind: "StatefulSet", image: v3, status: { currentRevision: "web-c" } },
      { revisions: all("StatefulSet"), pods: podsOn("StatefulSet", v3, 3) },
      2,
    ],
    "nothing that was rolled back": [
      { kind: "DaemonSet", image: v1, lastNote: noteOf("RolledBack", "", { to: { web: v3 }, failed: "CrashLoop" }) },
      { revisions: all("DaemonSet"), pods: podsOn("DaemonSet", v1, 1) },
      2,
    ],
    "nothing that its owner took back": [
      {
        ...{ kind: "StatefulSet", image: v2, status: { currentRevision: "web-b" } },
        lastNote: noteOf("Completed", "", { from: { web: v3 }, to: { web: v2 }, isTakenBack: true }),
      },
      { revisions: all("StatefulSet"), pods: podsOn("StatefulSet", v2, 2) },
      1,
    ],
    "nothing that a pod went back from": [
      { kind: "DaemonSet", image: v1 },
      {
        revisions: all("DaemonSet").slice(0, 2),
        pods: podsOn("DaemonSet", v1, 1, { mark: markOf({ from: { web: v2 }, to: { web: v1 }, failed: "CrashLoop" }) }),
      },
      undefined,
    ],
  }
  for (const [name, [given, over, expected]] of Object.entries(rows))
    test(name, () => expect(wayBack(sight(given, over)).to?.number).toBe(expected))

  test("and names what it does not go to", () => {
    const given: Given = { image: v1, lastNote: noteOf("RolledBack", "", { failed: "CrashLoop" }) }
    const found = wayBack(sight(given, { revisions: all("Deployment").slice(0, 2) }))
    expect([found.to, found.failed.map(({ number }) => number)]).toEqual([undefined, [2]])
  })
})
