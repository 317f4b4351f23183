import { Readable } from "node:stream"
import { describe, expect, test } from "vitest"
import { parse as parseYaml } from "yaml"
import { crdOf } from "#api/crd.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { retryAnnotation, ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { grantName } from "#core/grant.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { operationOf } from "#core/in-place/operation.ts"
import type { Sight } from "#explain/workloads/facts.ts"
import {
  budget,
  type Given,
  markOf,
  nodeImage,
  noteOf,
  operation,
  pod,
  revision,
  sight,
  templateOf,
  v1,
  v2,
  v3,
} from "#explain/workloads/test-workloads.ts"
import { virtualClock } from "#runtime/clock.ts"
import { policies } from "../manifests/policies.ts"
import { replicaSets } from "../restart/target.ts"
import { storedWorld } from "../test-store.ts"
import { updatable } from "../workloads/words.ts"
import { candidates } from "./complete.ts"
import { run as history } from "./history.ts"
import { run as plan } from "./plan.ts"
import { run as resume } from "./resume.ts"
import { run as rollback } from "./rollback.ts"
import { run as status } from "./status.ts"
import { run as wait } from "./wait.ts"
import { run as why } from "./why.ts"

const kinds = { Deployment: "deploy", StatefulSet: "sts", DaemonSet: "ds" } as const
const granted: Json = {
  ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
  metadata: { name: grantName, namespace: "shop" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: grantName },
}

/** A cluster in which nothing moves, with what a sight shows. `hasPolicy`: its server holds changes. */
async function world(given: Given = {}, over: Partial<Sight> = {}, { hasPolicy = true } = {}) {
  const seen = sight(given, over)
  const here = await storedWorld(virtualClock(seen.now), ...([NodeImage, ServiceImage].map(crdOf) as Json[]), {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "shop" },
  })
  // The server gives each object a uid of its own.
  const uids = new Map<string, string>()
  /** Their controllers write revisions from templates that have the defaults of the server. */
  const defaulted = async ({ spec: { template } }: Json): Promise<Json> => {
    const { $patch, ...own } = template
    const body: Json = { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "any", namespace: "shop" } }
    const spec = { selector: { matchLabels: { app: "web" } }, template: own }
    const made: Json = await here.client.create(replicaSets, { ...body, spec } as never, { dryRun: true })
    return { ...made.spec.template, $patch }
  }
  const put = async (object: Json) => {
    const { status: reported, ...whole } = JSON.parse(
      JSON.stringify(object).replaceAll(/"uid-[^"]*"/g, found => JSON.stringify(uids.get(JSON.parse(found)) ?? found)),
    )
    const { uid, resourceVersion: _, generation: __, ...metadata } = whole.metadata
    const resource = (await here.client.discover(object.apiVersion, object.kind))!
    const body = {
      ...whole,
      metadata,
      ...(whole.data && { data: { spec: { template: await defaulted(whole.data) } } }),
    }
    const made = await here.client.patch(resource, metadata, { type: "apply", body, force: true })
    if (object.metadata.uid) uids.set(object.metadata.uid, made.metadata.uid!)
    if (!reported) return uid
    const { generation } = made.metadata
    const told = { ...reported, ...(reported.observedGeneration && { observedGeneration: generation }) }
    await here.client.patch(resource, metadata, { type: "merge", body: { status: told } }, { subresource: "status" })
  }
  for (const object of [seen.workload, ...seen.revisions, ...seen.pods, ...seen.budgets, ...(seen.nodeImages ?? [])])
    await put(object as Json)
  if (hasPolicy) for (const object of [granted, ...(policies() as Json[])]) await put(object)
  const resource = updatable.find(({ resource: { kind } }) => kind === seen.workload.kind)!.resource
  return {
    ...here,
    /** The workload as it is now. */
    read: (): Promise<Json> => here.client.get(resource, { name: "web", namespace: "shop" }),
    /** Writes a note, which its controller has seen: an annotation raises the generation of a Deployment. */
    async annotate(note: Json) {
      const name = { name: "web", namespace: "shop" }
      const body = { metadata: { annotations: { [inPlaceAnnotation]: JSON.stringify(note) } } }
      const { metadata } = await here.client.patch(resource, name, { type: "merge", body })
      const seen = { status: { observedGeneration: metadata.generation } }
      await here.client.patch(resource, name, { type: "merge", body: seen }, { subresource: "status" })
    },
  }
}
type Here = Awaited<ReturnType<typeof world>>

const ask = (run: typeof status, { world }: Here, words: string[], options: Record<string, unknown> = {}) =>
  run({ arguments: words, options: { namespace: "shop", timeout: "0", ...options } }, world)

describe("status", () => {
  for (const [kind, short] of Object.entries(kinds) as [keyof typeof kinds, string][])
    test(`a held ${kind} is under way, whatever its own counts say`, async () => {
      const pods = [pod("web-0", { kind, image: v2, mark: markOf() }), pod("web-1", { kind }), pod("web-2", { kind })]
      const here = await world({ kind, image: v2, note: noteOf("Updating", "0 of 3 pods updated") }, { pods })
      expect(
        (await ask(status, here, [`${short}/web`])).text,
      ).toBe(`${short}/web -n shop InProgress 1/3 updated (Updating)
  web-1 on node-0 Stale
  web-2 on node-0 Stale
  1 updated
`)
    })

  test("is a line when all is done, with every pod by -o wide", async () => {
    const here = await world()
    const line = "deploy/web -n shop Complete 3/3 updated (RolledOut: 3 pods run the present template)\n"
    expect((await ask(status, here, ["deploy"])).text).toBe(line)
    expect((await ask(status, here, ["deployments.apps", "web"], { output: "wide" })).text).toBe(
      `${line}${[0, 1, 2].map(index => `  web-${index} on node-${index} Updated\n`).join("")}`,
    )
    expect((await ask(status, here, ["deploy/web"], { output: "name" })).text).toBe("deployment.apps/web\n")
  })

  test("-o json and yaml have the state and every pod", async () => {
    const here = await world({ image: v2, note: noteOf("BudgetSpent", "3 pods wait for maxUnavailable") })
    const wanted = {
      ...{ kind: "Deployment", name: "web", namespace: "shop", state: "Waiting", reason: "BudgetSpent" },
      ...{ operation, updated: 0, total: 3 },
    }
    const json = JSON.parse((await ask(status, here, ["deploy/web"], { output: "json" })).text)
    expect(json).toMatchObject(wanted)
    expect(json.pods.map(({ name, state }: Json) => [name, state])).toEqual([0, 1, 2].map(i => [`web-${i}`, "Stale"]))
    expect(parseYaml((await ask(status, here, ["deploy/web"], { output: "yaml" })).text)).toEqual(json)
  })

  test("-w prints again what changes", async () => {
    const here = await world()
    const watching = ask(status, here, ["deploy/web"], { watch: true })
    await expect.poll(() => here.drawn.length).toBe(1)
    await here.client.patch(
      updatable[0]!.resource,
      { name: "web", namespace: "shop" },
      { type: "merge", body: { status: { availableReplicas: 2 } } },
      { subresource: "status" },
    )
    await expect
      .poll(() => here.drawn.at(-1))
      .toContain("InProgress 3/3 updated (RollingUpdate: 3 of 3 pods updated, 2 available)")
    here.interrupt()
    await watching
  })

  test("a name that is not there, and kinds that are mixed, are refused", async () => {
    const here = await world()
    await expect(ask(status, here, ["deploy/wep"])).rejects.toThrow(
      "there is no Deployment wep in namespace shop; did you mean deploy/web?",
    )
    await expect(ask(status, here, ["deploy/web", "sts/web"])).rejects.toThrow("one kind at a time")
  })
})

describe("wait", () => {
  const cases: Record<string, [given: Given, words: string]> = {
    "a pod that failed": [
      { image: v2, note: noteOf("UpdateFailed", "web-0: CrashLoop") },
      "Stalled (UpdateFailed: web-0: CrashLoop)",
    ],
    "a change that is held and cannot go in place": [
      { image: v2, note: noteOf("NotInPlace", "spec.volumes") },
      "Stalled (NotInPlace: spec.volumes)",
    ],
  }
  for (const [name, [given, words]] of Object.entries(cases))
    test(`fails at once with the standing reason: ${name}`, async () => {
      const here = await world(given)
      await expect(ask(wait, here, ["deploy/web"], { timeout: "10m" })).rejects.toThrow(`deploy/web -n shop ${words}`)
    })

  test("fails at once with an update that was rolled back, and not with one of another template", async () => {
    const here = await world()
    const { spec } = await here.read()
    const write = (operation: string) => here.annotate(noteOf("RolledBack", "all went back", { operation, from: {} }))
    await write(operationOf({ hold: undefined, template: spec.template }))
    await expect(ask(wait, here, ["deploy/web"])).rejects.toThrow(
      "deploy/web -n shop RolledBack 3/3 updated (RolledBack: all went back)",
    )
    await write(operationOf({ hold: undefined, template: templateOf(v3) }))
    expect((await ask(wait, here, ["deploy/web"])).text).toContain("deploy/web -n shop Complete 3/3 updated")
  })

  test("a held set is not complete, where kubectl says so", async () => {
    for (const [kind, short] of [
      ["StatefulSet", "sts"],
      ["DaemonSet", "ds"],
    ] as const) {
      const here = await world({ kind, image: v2, note: noteOf("Pulling", "not on 1 node: node-0 (asked)") })
      await expect(ask(wait, here, [`${short}/web`])).rejects.toThrow(
        `not complete now: ${short}/web -n shop Waiting (Pulling: not on 1 node: node-0 (asked))`,
      )
    }
  })

  test("ends well when every pod has the change", async () => {
    for (const [kind, short] of Object.entries(kinds) as [keyof typeof kinds, string][]) {
      const here = await world({ kind })
      expect((await ask(wait, here, [`${short}/web`])).text).toContain(`${short}/web -n shop Complete 3/3 updated`)
    }
  })
})

const [first, second] = [templateOf(v1), templateOf(v2)]

describe("history", () => {
  for (const [kind, short] of Object.entries(kinds) as [keyof typeof kinds, string][])
    test(`lists the revisions of a ${kind} with their images and pods`, async () => {
      const revisions = [revision(kind, 1, first), revision(kind, 2, second)]
      const pods = [pod("web-0", { kind, image: v2, revision: 2 }), pod("web-1", { kind })]
      const here = await world({ kind, image: v2 }, { revisions, pods })
      expect((await ask(history, here, [`${short}/web`])).text).toBe(`REVISION      IMAGES                     PODS
2 (present)   web=web:2, proxy=proxy:1   1
1             web=web:1, proxy=proxy:1   1
`)
      const json = JSON.parse((await ask(history, here, [`${short}/web`], { output: "json" })).text)
      expect(json[1]).toMatchObject({
        revision: 1,
        images: { web: v1, proxy: "proxy:1" },
        pods: ["web-1"],
        isPresent: false,
      })
    })

  test("a template that is held is no revision yet", async () => {
    const here = await world({ image: v2, note: "none" })
    await ask(history, here, ["deploy/web"])
    expect(here.said).toEqual(["The present template (web=web:2, proxy=proxy:1) is no revision yet."])
  })
})

describe("resume", () => {
  const rolledBack = { failed: "4-other", back: "4-back" }
  const retryOf = async (here: Here) => (await here.read()).metadata.annotations[retryAnnotation]

  test("a template that was rolled back: its operation is asked for, once", async () => {
    const here = await world({ lastNote: noteOf("RolledBack", "", rolledBack) })
    const what = "deploy/web, operation 4-other once more"
    expect(await ask(resume, here, ["deploy/web"], { dryRun: true })).toMatchObject({ exitCode: 0 })
    expect(await retryOf(here)).toBeUndefined()
    const { text, next } = await ask(resume, here, ["deploy/web"])
    expect([text, next]).toEqual([`resumed: ${what}\n`, expect.stringContaining("write the other one again")])
    expect(await retryOf(here)).toBe("4-other")
    expect((await ask(resume, here, ["deploy/web"])).text).toBe(`already resumed: ${what}\n`)
  })

  test("one that is held with it starts", async () => {
    const here = await world()
    const { spec } = await here.read()
    const failed = operationOf({ hold: undefined, template: spec.template })
    await here.annotate(noteOf("UpdateFailed", "", { ...rolledBack, failed }))
    expect((await ask(resume, here, ["deploy/web"])).next).toContain("starts again with the same template")
  })

  test("one that was not rolled back", async () => {
    const here = await world()
    expect((await ask(resume, here, ["deploy/web"])).text).toBe("not rolled back: deploy/web\n")
    expect(await retryOf(here)).toBeUndefined()
  })
})

describe("rollback", () => {
  test("of a held Deployment, which kubectl refuses, is to the template of its pods", async () => {
    const here = await world(
      { image: v2, note: noteOf("UpdateFailed") },
      { revisions: [revision("Deployment", 3, first), revision("Deployment", 2, templateOf(v3))] },
    )
    const { text, next } = await ask(rollback, here, ["deploy/web"])
    expect(text).toBe(`rolling back: deploy/web to revision 3 (web=${v1}, proxy=proxy:1)\n`)
    expect(next).toContain("In place: the pods stay")
    const { spec, metadata } = await here.read()
    expect(spec.template.spec.containers[0].image).toBe(v1)
    expect([spec.paused, metadata.annotations[heldMark]]).toEqual([true, expect.stringContaining("in-place")])
  })

  test("of one that is not held, is held by the server in the same write", async () => {
    const revisions = [revision("Deployment", 1, first), revision("Deployment", 2, second)]
    const pods = [pod("web-0", { image: v2, revision: 2 })]
    const here = await world({ image: v2 }, { revisions, pods })
    expect((await ask(rollback, here, ["deploy/web"])).next).toContain("In place")
    expect((await here.read()).spec.paused).toBe(true)
    const without = await world({ image: v2 }, { revisions, pods }, { hasPolicy: false })
    expect((await ask(rollback, without, ["deploy/web"])).next).toContain(
      "The Deployment controller replaces the pods.",
    )
  })

  for (const [kind, short] of [
    ["StatefulSet", "sts"],
    ["DaemonSet", "ds"],
  ] as const)
    test(`of a ${kind}, to any revision`, async () => {
      const revisions = [revision(kind, 1, first), revision(kind, 2, second), revision(kind, 3, templateOf(v3))]
      const here = await world({ kind, image: v3 }, { revisions })
      await ask(rollback, here, [`${short}/web`], { toRevision: "1" })
      expect((await here.read()).spec.template.spec.containers[0].image).toBe(v1)
    })

  test("of a rolling update that is under way is a rolling update", async () => {
    const revisions = [revision("Deployment", 1, first), revision("Deployment", 2, second)]
    const pods = [pod("web-0"), pod("web-1", { image: v2, revision: 2, isReady: false })]
    const here = await world({ image: v2 }, { revisions, pods })
    expect((await ask(rollback, here, ["deploy/web"])).next).toContain(
      "A rolling update is under way, and goes back as one: the Deployment controller replaces the pods.",
    )
  })

  test("says which field keeps it from going in place", async () => {
    const revisions = [
      revision("Deployment", 1, templateOf(v1, { hostNetwork: true })),
      revision("Deployment", 2, second),
    ]
    const here = await world({ image: v2 }, { revisions, pods: [pod("web-0", { image: v2, revision: 2 })] })
    expect((await ask(rollback, here, ["deploy/web"], { dryRun: true })).next).toContain(
      "It cannot go in place (spec.hostNetwork: a running pod cannot change it): the Deployment controller replaces the pods.",
    )
    expect((await here.read()).spec.template.spec.hostNetwork).toBeUndefined()
  })

  test("leaves a pause of the owner alone, and what is there already", async () => {
    const revisions = [revision("Deployment", 1, first), revision("Deployment", 2, second)]
    const here = await world({ image: v2, spec: { paused: true } }, { revisions })
    expect((await ask(rollback, here, ["deploy/web"])).next).toContain("Its owner has paused it")
    expect((await here.read()).spec.paused).toBe(true)
    expect((await ask(rollback, here, ["deploy/web"], { toRevision: "1" })).text).toBe(
      "deploy/web has the template of revision 1 already\n",
    )
  })

  test("waits for the pods, also where the template is there already", async () => {
    const revisions = [revision("StatefulSet", 1, first), revision("StatefulSet", 2, second)]
    const held = await world({ kind: "StatefulSet", image: v2, note: noteOf("BudgetSpent", "2 wait") }, { revisions })
    await expect(ask(rollback, held, ["sts/web"], { toRevision: "2", wait: true, timeout: "0" })).rejects.toThrow(
      "not complete now: sts/web -n shop Waiting (BudgetSpent: 2 wait)",
    )
    const complete = await world({ kind: "StatefulSet", image: v2 }, { revisions })
    expect((await ask(rollback, complete, ["sts/web"], { toRevision: "2", wait: true, timeout: "0" })).text).toContain(
      "Complete",
    )
  })

  test("goes past an image that failed", async () => {
    const kind = "DaemonSet"
    const revisions = [revision(kind, 1, first), revision(kind, 2, second), revision(kind, 3, templateOf(v3))]
    const here = await world({ kind, image: v3, note: noteOf("UpdateFailed", "", { to: { web: v3 } }) }, { revisions })
    await ask(rollback, here, ["ds/web"])
    expect((await here.read()).spec.template.spec.containers[0].image).toBe(v1)
  })

  test("names what there is, where the revision is not", async () => {
    const here = await world()
    await expect(ask(rollback, here, ["deploy/web"])).rejects.toThrow(
      "deploy/web has no earlier revision to go back to",
    )
    await expect(ask(rollback, here, ["deploy/web"], { toRevision: "7" })).rejects.toThrow("no revision 7: there are 1")
    await expect(ask(rollback, here, ["deploy/web"], { toRevision: "one" })).rejects.toThrow("--to-revision: one")
    await expect(ask(rollback, here, ["deploy/web"], { operation: "g1" })).rejects.toThrow("--operation is for si/NAME")
    await expect(ask(rollback, here, ["si/web"], { toRevision: "1" })).rejects.toThrow("--to-revision is for workloads")
  })
})

describe("plan", () => {
  test("says beforehand what kubectl set image would do, and writes nothing", async () => {
    const nodeImages = [nodeImage("node-0", v2), nodeImage("node-1"), nodeImage("node-2")]
    const here = await world({}, { budgets: [budget("careful", 0)], nodeImages })
    const before = await here.read()
    const { text, next } = await ask(plan, here, ["deploy/web", `web=${v2}`])
    expect(text).toBe(`deploy/web -n shop  in place
  The pods stay, web restarts, at most 1 of 3 pods down at a time.
  web: ${v1} → ${v2}
  pods, in this order:
    web-0 on node-0
    web-1 on node-1
    web-2 on node-2
  Not known to be on node-1, node-2: ${v2}. It is pulled before a pod of the node is touched.
  blocked by:
    PodDisruptionBudget careful allows no disruption now
`)
    expect(next).toBe("Nothing was written.")
    expect(await here.read()).toEqual(before)
    const json = JSON.parse((await ask(plan, here, ["deploy/web", `web=${v2}`], { output: "json" })).text)
    expect(json).toMatchObject({ way: "InPlace", blockedBy: ["PodDisruptionBudget careful allows no disruption now"] })
  })

  test("refuses what is no image, which a server would take", async () => {
    const here = await world()
    await expect(ask(plan, here, ["deploy/web", "web=web@nothing"])).rejects.toThrow("web=web@nothing: ")
  })

  test("says that a server without the policy does not hold it", async () => {
    const here = await world({ kind: "StatefulSet" }, {}, { hasPolicy: false })
    expect((await ask(plan, here, ["sts/web", `web=${v2}`])).text).toContain(
      "or aim hold sts/web; its controller re-creates its pods",
    )
    expect((await ask(plan, here, ["sts/web"])).text).toContain("The next change does not go in place")
  })

  /** The present manifest with this template, in stdin. */
  const withFile = async (here: Here, template: Json) => {
    const { spec } = await here.read()
    const file = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "shop" } }
    const stdin = Readable.from([Buffer.from(JSON.stringify({ ...file, spec: { ...spec, template } }))])
    return ask(plan, { ...here, world: { ...here.world, stdin } }, ["deploy/web"], { file: "-" })
  }
  const slower = templateOf(v2, { terminationGracePeriodSeconds: 5 })

  test("with a file, has the path that is not in place", async () => {
    const { text } = await withFile(await world(), slower)
    expect(text).toContain("NotInPlace: spec.terminationGracePeriodSeconds: a running pod cannot change it.")
  })

  test("what the server would refuse is a failure, in its own words", async () => {
    const here = await world({ annotations: { [strategyAnnotation]: "InPlaceOnly" } })
    const { text, exitCode } = await withFile(here, slower)
    expect(text).toMatch(
      /^deploy\/web -n shop {2}refused\n {2}.*spec.terminationGracePeriodSeconds of the template cannot change/,
    )
    expect(exitCode).toBe(1)
  })

  test("a container that is not there is named, and a dump is refused", async () => {
    const here = await world()
    await expect(ask(plan, here, ["deploy/web", "app=web:2"])).rejects.toThrow(
      "web has no container app: write web=IMAGE or proxy=IMAGE",
    )
    await expect(ask(plan, here, ["deploy/web", "web="])).rejects.toThrow("web=: write CONTAINER=IMAGE")
    await expect(ask(plan, here, ["deploy/web"], { from: "x" })).rejects.toThrow("--from")
  })
})

describe("why", () => {
  test("a workload that is held: the update comes first, then the ServiceImages", async () => {
    const here = await world({ image: v2, note: noteOf("BudgetSpent", "3 pods wait for PodDisruptionBudget careful") })
    const { text } = await ask(why, here, ["deploy/web"])
    expect(text.split("\n")).toEqual([
      "BudgetSpent",
      `Deployment shop/web is held for an update in place (operation ${operation}).`,
      `Container web goes from ${v1} to ${v2}.`,
      "3 pods wait for PodDisruptionBudget careful.",
      expect.stringContaining("No further pod may be down now"),
      "Not touched yet: 3 pods: web-0 on node-0, web-1 on node-1, web-2 on node-2.",
      expect.stringContaining("No ServiceImage is about Deployment objects"),
      "",
    ])
  })

  test("a pod that was restarted in place", async () => {
    const here = await world({ image: v2 }, { pods: [pod("web-0", { image: v2, mark: markOf() })] })
    expect((await ask(why, here, ["pod/web-0"])).text).toContain(
      `Operation ${operation} of an update in place restarted web from ${v1} to ${v2} at 2026-01-01T00:05:00Z.`,
    )
  })

  test("a workload without any of it is answered as before", async () => {
    const here = await world({ annotations: { [strategyAnnotation]: "Recreate" } })
    expect((await here.read()).metadata.annotations[inPlaceAnnotation]).toBeUndefined()
    expect((await ask(why, here, ["deploy/web"])).text).toMatch(/^NotSelected\nNo ServiceImage/)
  })
})

test("on a terminal, blocks with colours, in the width of the window", async () => {
  const given = { image: v2, note: noteOf("BudgetSpent", "3 pods wait for PodDisruptionBudget careful") }
  const here = await world(given, { budgets: [budget("careful", 0)] })
  const view = { isTerminal: true, columns: 60, colours: true }
  const seen = { ...here, world: { ...here.world, view } }
  const [bold, plain, yellow, back] = ["\x1b[1m", "\x1b[22m", "\x1b[33m", "\x1b[39m"]
  expect(
    (await ask(status, seen, ["deploy/web"])).text,
  ).toBe(`${bold}web${plain}  ${yellow}● Waiting 0/3${back}  Deployment  shop
  BudgetSpent: 3 pods wait for PodDisruptionBudget careful
  web-0 on node-0 Stale
  web-1 on node-1 Stale
  web-2 on node-2 Stale
`)
  const { text } = await ask(plan, seen, ["deploy/web"])
  expect(text.split("\n").slice(0, 3)).toEqual([
    `${bold}deploy/web -n shop${plain}  in place`,
    "  The pods stay, web restarts, at most 1 of 3 pods down at",
    "    a time.",
  ])
})

test("completion has the kinds of workloads, and then their names", async () => {
  const { world: asked } = await world()
  const complete = (prefix: string) =>
    candidates({ what: "rollouts", prefix, of: "" }, { arguments: [], options: { namespace: "shop" } }, asked)
  expect(await complete("d")).toEqual(["deploy/", "ds/"])
  expect(await complete("deploy/")).toEqual(["deploy/web"])
})
