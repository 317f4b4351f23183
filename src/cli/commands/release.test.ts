import { describe, expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import type { Json } from "#cluster-sim/index.ts"
import { pods } from "#controllers/in-place/resources.ts"
import { everyOrdinal, gateReason, heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { virtualClock } from "#runtime/clock.ts"
import { resourceOf } from "#runtime/resource.ts"
import { storedWorld } from "../test-store.ts"
import { run } from "./release.ts"

const containers = [{ name: "app", image: "shop/web:2" }]
const workload = (kind: string, name: string, held: string | undefined, spec: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: {
    name,
    namespace: "shop",
    ...(held && { labels: { [heldMark]: "in-place" }, annotations: { [heldMark]: held, mine: "stays" } }),
  },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers } },
    ...spec,
  },
})
const deployment = workload.bind(undefined, "Deployment")
const hold = '{"by":"in-place","original":{"paused":false},"generation":3}'
const drained: Json = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-0", namespace: "shop", labels: { app: "web" } },
  spec: { containers, readinessGates: [{ conditionType: readinessGate }] },
  status: { conditions: [{ type: readinessGate, status: "False", reason: gateReason }] },
}

const world = (...objects: Json[]) =>
  storedWorld(virtualClock(0), { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } }, ...objects)
type World = Awaited<ReturnType<typeof world>>
const ask = ({ world }: World, words: string[], options: Record<string, unknown> = {}) =>
  run({ arguments: words, options: { namespace: "shop", ...options } }, world)
const read = (here: World, name: string, kind = "Deployment"): Promise<Json> =>
  here.client.get(resourceOf(workloadKind(kind)!), { name, namespace: "shop" })

describe("release of what a Canary holds, without its controller", () => {
  const by = (name: string, more = "") => `{"by":"canary","name":"${name}","generation":3${more}}`
  const ofCanary = (kind: string, held: string, spec: Json): Json => {
    const object = workload(kind, "web", held, spec)
    return { ...object, metadata: { ...object.metadata, labels: { [heldMark]: "canary" } } }
  }
  const rolling = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } }
  const cases: Record<string, { held: string; spec: Json; word: string; is: Json }> = {
    Deployment: { held: by("web"), spec: { paused: true }, word: "deploy/web", is: { paused: undefined } },
    StatefulSet: {
      held: by("web", `,"isStanding":true,"original":${JSON.stringify({ type: "RollingUpdate" })}`),
      spec: { serviceName: "web", updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } },
      word: "sts/web",
      is: { updateStrategy: expect.not.objectContaining({ rollingUpdate: { partition: 2 } }) },
    },
    DaemonSet: {
      held: by("web", `,"isStanding":true,"original":${JSON.stringify(rolling)}`),
      spec: { updateStrategy: { type: "OnDelete" } },
      word: "ds/web",
      is: { updateStrategy: expect.objectContaining({ type: "RollingUpdate" }) },
    },
  }
  for (const [kind, { held, spec, word, is }] of Object.entries(cases))
    for (const words of [[word], []])
      test(`${kind}, by ${words[0] ?? "--all"}`, async () => {
        const here = await world(ofCanary(kind, held, spec))
        const { text } = await ask(here, words, { all: words.length === 0 })
        expect(text).toBe(`${word} of namespace shop is released: its own controller goes on with its template\n`)
        const { metadata, spec: after } = await read(here, "web", kind)
        expect([metadata.labels?.[heldMark], metadata.annotations?.[heldMark]]).toEqual([undefined, undefined])
        expect({ paused: after.paused, updateStrategy: after.updateStrategy }).toMatchObject(is)
      })
})

describe("release", () => {
  test("gives the Deployment back as it was, and its pods serve", async () => {
    const here = await world(deployment("web", hold, { paused: true }), drained)
    const { text } = await ask(here, ["deploy/web"])
    expect(text).toBe("deploy/web of namespace shop is released: its own controller goes on with its template\n")
    const { metadata, spec } = await read(here, "web")
    expect(spec.paused).toBeUndefined()
    expect(metadata.labels).toBeUndefined()
    expect(metadata.annotations).toEqual({ mine: "stays", [inPlaceAnnotation]: expect.stringContaining("Released") })
    const pod: Json = await here.client.get(pods, { name: "web-0", namespace: "shop" })
    expect(pod.status.conditions).toEqual([expect.objectContaining({ type: readinessGate, status: "True" })])
  })

  test("names the pods that have got another image than the template's", async () => {
    const at = "2026-01-01T00:00:00Z"
    const changed = (name: string, image: string): Json => ({
      ...drained,
      metadata: {
        ...drained.metadata,
        name,
        annotations: {
          [inPlaceAnnotation]: JSON.stringify({ operation: "3-x", from: {}, to: { app: image }, was: {}, at }),
        },
      },
      spec: { containers: [{ name: "app", image }] },
    })
    const here = await world(
      deployment("web", hold, { paused: true }),
      changed("web-1", "shop/web:2"),
      changed("web-2", "shop/web:3"),
    )
    const { text } = await ask(here, ["deploy/web"])
    expect(text).toContain("template; web-2 had got another image: delete what is not replaced\n")
  })

  test("a hold that cannot be read any more is released too", async () => {
    const broken = deployment("web", "?", { paused: true })
    broken.metadata.annotations[inPlaceAnnotation] = '{"operation":"3-x","reason":"Updating","message":""}'
    const here = await world(broken)
    await ask(here, ["deploy/web"])
    const { metadata, spec } = await read(here, "web")
    expect([spec.paused, metadata.labels, metadata.annotations[heldMark]]).toEqual([undefined, undefined, undefined])
  })

  const stopped = {
    Deployment: { spec: { paused: true }, free: {} },
    StatefulSet: {
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: everyOrdinal } } },
      free: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } } },
    },
    DaemonSet: {
      spec: { updateStrategy: { type: "OnDelete", rollingUpdate: { maxUnavailable: "150%", maxSurge: 0 } } },
      free: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } } },
    },
  }
  for (const [kind, { spec, free }] of Object.entries(stopped))
    for (const held of [
      "?",
      '{"by":"in-place","original":{"type":"Never","rollingUpdate":{"partition":-1}},"generation":3}',
    ])
      test(`a ${kind} with the hold ${held} and no note is given back with the server's own defaults`, async () => {
        const here = await world(workload(kind, "db", held, spec))
        const word = { Deployment: "deploy/db", StatefulSet: "sts/db", DaemonSet: "ds/db" }[kind]!
        expect((await ask(here, [word])).text).toContain("is released")
        const now = await read(here, "db", kind)
        expect([now.spec.paused, now.metadata.annotations[heldMark]]).toEqual([undefined, undefined])
        expect(now.spec).toMatchObject(free)
      })

  test("leaves a Deployment alone that its owner has paused", async () => {
    const here = await world(deployment("web", undefined, { paused: true }))
    expect((await ask(here, ["deploy/web"])).text).toBe("deploy/web of namespace shop is not held\n")
    expect((await read(here, "web")).spec.paused).toBe(true)
  })

  const rolling = (rollingUpdate: Json) => ({ type: "RollingUpdate", rollingUpdate })
  const setHold = (original: Json) => JSON.stringify({ by: "in-place", original, generation: 3 })
  const sets: Record<string, { kind: string; now: Json; original: Json; after?: Json }> = {
    "a StatefulSet": {
      kind: "StatefulSet",
      now: rolling({ partition: everyOrdinal, maxUnavailable: "25%" }),
      original: rolling({ partition: 0, maxUnavailable: "25%" }),
    },
    "a StatefulSet that got a partition while it was held": {
      kind: "StatefulSet",
      now: rolling({ partition: everyOrdinal }),
      original: rolling({ partition: 2 }),
    },
    "a StatefulSet that got OnDelete while it was held": {
      kind: "StatefulSet",
      now: rolling({ partition: everyOrdinal }),
      original: { type: "OnDelete" },
    },
    "a StatefulSet whose owner has taken the hold away": {
      kind: "StatefulSet",
      now: rolling({ partition: 1 }),
      original: rolling({ partition: 0 }),
      after: rolling({ partition: 1 }),
    },
    "a DaemonSet": {
      kind: "DaemonSet",
      now: { type: "OnDelete" },
      original: rolling({ maxUnavailable: "10%", maxSurge: 0 }),
    },
    "a DaemonSet with its block": {
      kind: "DaemonSet",
      now: { ...rolling({ maxUnavailable: 2, maxSurge: 0 }), type: "OnDelete" },
      original: rolling({ maxUnavailable: 2, maxSurge: 0 }),
    },
  }
  for (const [name, { kind, now, original, after = original }] of Object.entries(sets))
    test(`gives back ${name}`, async () => {
      const here = await world(workload(kind, "db", setHold(original), { updateStrategy: now }))
      const word = kind === "StatefulSet" ? "sts/db" : "ds/db"
      expect((await ask(here, [word])).text).toContain(`${word} of namespace shop is released`)
      const { metadata, spec } = await read(here, "db", kind)
      expect([spec.updateStrategy, metadata.labels, metadata.annotations[heldMark]]).toEqual([
        after,
        undefined,
        undefined,
      ])
    })

  test("leaves a partition and OnDelete of the owner alone, also with --all", async () => {
    const partitioned = rolling({ partition: everyOrdinal })
    const here = await world(
      workload("StatefulSet", "db", undefined, { updateStrategy: partitioned }),
      workload("DaemonSet", "log", undefined, { updateStrategy: { type: "OnDelete" } }),
    )
    expect((await ask(here, ["sts/db", "ds/log"])).text).toMatch(/^sts.* is not held\nds.* is not held\n$/)
    expect((await ask(here, [], { all: true })).text).toBe("no workload is held\n")
    expect((await read(here, "db", "StatefulSet")).spec.updateStrategy).toEqual(partitioned)
    expect((await read(here, "log", "DaemonSet")).spec.updateStrategy).toEqual({ type: "OnDelete" })
  })

  test("--all finds those that are held, and --dry-run writes nothing", async () => {
    const here = await world(deployment("web", hold, { paused: true }), deployment("api", undefined, { paused: true }))
    const dry = await ask(here, [], { all: true, dryRun: true })
    expect(dry.text).toBe("deploy/web of namespace shop would be released (dry run: nothing was written)\n")
    expect((await read(here, "web")).spec.paused).toBe(true)
    await ask(here, [], { all: true })
    expect((await read(here, "web")).spec.paused).toBeUndefined()
    expect((await read(here, "api")).spec.paused).toBe(true)
    expect((await ask(here, [], { all: true })).text).toBe("no workload is held\n")
  })

  test("refuses the hold of another, and what is never held", async () => {
    const here = await world(deployment("web", '{"by":"another","generation":1}', { paused: true }))
    await expect(ask(here, ["deploy/web"])).rejects.toThrow("is held by another")
    await expect(ask(here, ["pod/web"])).rejects.toThrow(
      "pod/web is never held: write one of deploy/NAME, sts/NAME, ds/NAME",
    )
    await expect(ask(here, [])).rejects.toThrow("release needs one of deploy/NAME, sts/NAME, ds/NAME, or --all")
    expect((await read(here, "web")).spec.paused).toBe(true)
  })
})
