import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { ask } from "#test/support/ask.ts"
import {
  complete,
  conditionOf,
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isTrue,
  keepController,
  quickTiers,
  recorded,
  recordHistory,
  serviceImagePath,
  startController,
  startDicomController,
} from "#test/support/fleet.ts"
import {
  floor,
  floorWithFaults,
  type Json,
  kubeconfigFor,
  onKwok,
  quickEnd,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"
import { runProgram } from "#test/support/program.ts"

// What a rollout does beyond "tier by tier", and the commands that operate it, on a real server.

const image = (tag: string) => `registry.example.com/dicom-service:${tag}`
const [v1, v2, v3] = [image("v1"), image("v2"), image("v3")]

beforeAll(installKinds)

const getServiceImage = (name: string): Promise<Json> => floor().api.get(serviceImagePath(name))
const listDicoms = async (namespace: string): Promise<Json[]> => (await floor().api.get(dicomsPath(namespace))).items
const imagesOf = async (namespace: string) => (await listDicoms(namespace)).map(each => each.spec.image)
const tierOf = (object: Json, name: string): Json =>
  object.status?.tierStatus?.find((tier: Json) => tier.upgradeTier === name)
const isFor = (reason: string) => (object: Json) => conditionOf(object, "InProgress")?.reason === reason
const failuresOf = (object: Json): Json[] => object.status?.tierStatus?.flatMap((tier: Json) => tier.failures) ?? []

const aim = (...args: string[]) => runProgram("bin/aim", args, { KUBECONFIG: floor().kubeconfig })
async function aimDoes(...args: string[]): Promise<string> {
  const { code, output, stdout } = await aim(...args)
  expect(code, output).toBe(0)
  return stdout
}

const says = (name: string, what: string, isSo: (object: Json) => boolean, withinMs = 120_000): Promise<Json> =>
  until(
    `${name} to say ${what}`,
    async () => {
      const now = await getServiceImage(name)
      return isSo(now) && now
    },
    { withinMs },
  )

async function createDicoms(namespace: string, fleet: string, names: readonly string[], tier = ""): Promise<void> {
  for (const name of names)
    await floor().api.create(dicomsPath(namespace), dicom(name, tier, { placement: onKwok }, { fleet }))
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

test("a few customers first, then the approved ones, while people pause, resume and overtake", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig } = floor()
  await createDicoms(namespace, fleet, numbered("early", 8), "early")
  await createDicoms(namespace, fleet, numbered("other", 4))
  startDicomController(kubeconfig)
  keepController(kubeconfig)
  const tiers = quickTiers([
    { upgradeTier: "early", priority: 1 },
    { upgradeTier: "", priority: 0 },
  ])
  await createServiceImage(fleet, { defaultImage: v1, tiers })
  await complete(fleet)

  // It soaks until the test says otherwise, however long the commands take meanwhile.
  const soakFor = (soakSeconds: number) => {
    const steps = [{ percent: 25, soakSeconds }, { percent: 100 }]
    const careful = [
      { ...tiers[0], steps },
      { ...tiers[1], requireApproval: true },
    ]
    return api.patch(serviceImagePath(fleet), { spec: { tiers: careful } })
  }
  await soakFor(3600)
  // How it goes is no operation of its own; what it brings is.
  expect((await complete(fleet)).status.operation.id).toBe("g1")
  const having = async (wanted: string) =>
    (await listDicoms(namespace)).filter(each => each.spec.image === wanted).map(each => each.metadata.name)
  expect(await aimDoes("set-image", `si/${fleet}`, v2)).toContain(v2)

  const soaking = await says(fleet, "Soaking", isFor("Soaking"))
  const first = await having(v2)
  expect(first.length).toBeGreaterThan(0)
  expect(first.length).toBeLessThan(8)
  expect(tierOf(soaking, "early")).toMatchObject({ upToDate: first.length, step: { percent: 25 } })
  const refused = await aim("set-image", `si/${fleet}`, v3)
  expect(refused.code).toBe(1)
  expect(refused.output).toContain("--supersede")

  await aimDoes("pause", `si/${fleet}`)
  await says(fleet, "Paused", now => isTrue(now, "Paused"))
  const upToDateAt = Date.parse(tierOf(soaking, "early").step.upToDateAt)
  await until("a soak of a second to be long over", async () => Date.now() > upToDateAt + 3000)
  const { metadata } = await soakFor(1)
  await says(fleet, "the shorter soak", now => now.status.observedGeneration === metadata.generation)
  expect(await having(v2)).toEqual(first)
  await aimDoes("resume", `si/${fleet}`)

  const waiting = await says(fleet, "AwaitingApproval", isFor("AwaitingApproval"))
  expect(await having(v2)).toEqual(numbered("early", 8))
  expect(tierOf(waiting, "early")).toMatchObject({ upToDate: 8, total: 8 })
  expect(await aimDoes("approve", `si/${fleet}`)).toContain("approved: the default tier")
  await complete(fleet)
  expect(await having(v2)).toHaveLength(12)

  // The same customers are the first each time, and an overtaken rollout is remembered as one.
  await soakFor(3600)
  await aimDoes("set-image", `si/${fleet}`, v3)
  await says(fleet, "Soaking", isFor("Soaking"))
  expect(await having(v3)).toEqual(first)
  const fixed = image("v3.1")
  expect(await aimDoes("set-image", `si/${fleet}`, fixed, "--supersede")).toContain(fixed)
  await soakFor(1)
  await says(fleet, "AwaitingApproval", isFor("AwaitingApproval"))
  await aimDoes("approve", `si/${fleet}`, "")
  await complete(fleet)
  expect(await having(fixed)).toHaveLength(12)

  const operations = JSON.parse(await aimDoes("history", `si/${fleet}`, "-o", "json"))
  expect(operations.map((each: Json) => [each.images[""], each.phase])).toEqual([
    [fixed, "Complete"],
    [v3, "Superseded"],
    [v2, "Complete"],
    [v1, "Complete"],
  ])
})

test("a quota that leaves no room is named, spends the budget, and what was changed goes back", async () => {
  const [namespace, full] = [await uniqueNamespace(), await uniqueNamespace()]
  const fleet = namespace
  const { api, kubeconfig } = floor()
  await createDicoms(namespace, fleet, numbered("roomy", 3))
  await createDicoms(full, fleet, numbered("full", 2))
  startDicomController(kubeconfig)
  keepController(kubeconfig)
  const tier = { upgradeTier: "", failureBudget: 1 }
  await createServiceImage(fleet, { defaultImage: v1, tiers: [tier], onFailure: "Rollback" })
  await complete(fleet)
  // Only what has no room must miss it: the others take two seconds on a quiet machine.
  await api.patch(serviceImagePath(fleet), { spec: { tiers: quickTiers([{ ...tier, progressDeadlineSeconds: 30 }]) } })
  await complete(fleet)
  const quotas = `/api/v1/namespaces/${full}/resourcequotas`
  await api.create(quotas, { metadata: { name: "small" }, spec: { hard: { pods: "2" } } })
  // It is counted by its controller, and in force some time after that.
  await until("the quota to be in force", async () => {
    const tried = { metadata: { name: "tried" }, spec: { containers: [{ name: "app", image: v1 }] } }
    const { status, body } = await ask("POST", `/api/v1/namespaces/${full}/pods?dryRun=All`, tried)
    return status === 403 && body.message.includes("exceeded quota")
  })

  const history = await recordHistory(fleet)
  await aimDoes("set-image", `si/${fleet}`, v2)
  const found = await says(fleet, "QuotaExceeded", now => failuresOf(now).some(each => each.count === 2))
  expect(failuresOf(found)).toMatchObject([
    { reason: "QuotaExceeded", scope: "Partial", count: 2, examples: expect.arrayContaining([`${full}/full-0`]) },
  ])

  const back = await says(fleet, "RolledBack", now => now.status.operation.phase === "RolledBack")
  expect(isTrue(back, "Stalled") && !isTrue(back, "Complete")).toBe(true)
  expect(back.status.operation).toMatchObject({ images: { "": v2 }, cause: expect.stringContaining("failureBudget 1") })
  const objects = [...(await listDicoms(namespace)), ...(await listDicoms(full))]
  expect(objects.map(each => each.spec.image)).toEqual(Array(5).fill(v1))
  await recorded(history, objects)
  for (const { metadata } of objects) {
    const own = history.filter(each => each.key === `${metadata.namespace}/${metadata.name}`)
    const seen = [v1, ...own.map(each => each.image)]
    expect(seen.filter((each, index) => each !== seen[index - 1])).toEqual([v1, v2, v1])
  }
  expect(await aimDoes("history", `si/${fleet}`)).toContain("RolledBack")

  // The spec still asks for v2; restoring v1 there starts an operation without any work.
  await aimDoes("set-image", `si/${fleet}`, v1)
  await complete(fleet)
  const operations = JSON.parse(await aimDoes("history", `si/${fleet}`, "-o", "json"))
  expect(operations.map((each: Json) => each.phase)).toEqual(["Complete", "RolledBack", "Complete"])
})

test("Deployments are rolled out by container, and an image that cannot be pulled halts long before the deadline", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig, pushImage } = floor()
  const progressDeadlineSeconds = 600
  const [web1, web2, log] = await Promise.all(
    ["web:1", "web:2", "log:1"].map(async each => (await pushImage(each)).reference),
  )
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  for (const name of ["a", "b", "c"])
    await api.create(deployments, {
      metadata: { name, labels: { fleet } },
      spec: {
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            ...quickEnd,
            containers: [
              { name: "log", image: log },
              { name: "app", image: web1 },
            ],
          },
        },
      },
    })
  keepController(kubeconfig)
  await createServiceImage(fleet, {
    target: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      selector: { matchLabels: { fleet } },
      image: { container: "app" },
    },
    defaultImage: web2,
    tiers: [{ upgradeTier: "", progressDeadlineSeconds }],
  })
  await complete(fleet)
  const containers = async () =>
    (await api.get(deployments)).items.map((each: Json) =>
      each.spec.template.spec.containers.map((one: Json) => one.image),
    )
  expect(await containers()).toEqual(Array(3).fill([log, web2]))

  const missing = web2!.replace(/:2$/, ":never-pushed")
  await aimDoes("set-image", `si/${fleet}`, missing)
  const halted = await says(fleet, "Halted", now => isTrue(now, "Halted"))
  expect(conditionOf(halted, "Halted")).toMatchObject({ reason: "AllFailed", message: expect.stringContaining("pull") })
  expect(failuresOf(halted)).toMatchObject([{ reason: "ImagePullFailed", scope: "All", count: 3 }])
  const { startedAt } = halted.status.operation
  const haltedAt = Date.parse(conditionOf(halted, "Halted").lastTransitionTime)
  expect(haltedAt - Date.parse(startedAt)).toBeLessThan((progressDeadlineSeconds * 1000) / 2)
  const told = await until("the events to tell it", async () => {
    const { items } = await api.get(`/api/v1/events?fieldSelector=involvedObject.name=${fleet}`)
    return items.some((event: Json) => event.reason === "AllFailed") && items
  })
  expect(told.filter((event: Json) => event.reason === "AllFailed")).toHaveLength(1)

  await aimDoes("rollback", `si/${fleet}`, "--wait", "--timeout", "4m")
  expect(await containers()).toEqual(Array(3).fill([log, web2]))
})

test("an image that exits a second after its start stops at the first tier, and the command that waits says so", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig, pushImage } = floor()
  const { reference: good } = await pushImage("brief:1")
  const { reference: bad } = await pushImage("brief:crash", { crashes: { afterSeconds: 1, exitCode: 3 } })
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  for (const [name, tier] of Object.entries({ a: "early", b: "early", c: "" }))
    await api.create(deployments, {
      metadata: { name, labels: { fleet, ...(tier && { "upgrade-tier": tier }) } },
      spec: {
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { ...quickEnd, containers: [{ name: "app", image: good }] },
        },
      },
    })
  keepController(kubeconfig)
  await createServiceImage(fleet, {
    target: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      selector: { matchLabels: { fleet } },
      image: { container: "app" },
    },
    defaultImage: good,
    // It is for such an image that objects settle.
    tiers: [
      { upgradeTier: "early", priority: 1, settleSeconds: 10 },
      { upgradeTier: "", settleSeconds: 10 },
    ],
  })
  await complete(fleet)

  const { code, output } = await aim("set-image", `si/${fleet}`, bad, "--wait", "--timeout", "4m")
  expect(code, output).toBe(1)
  const halted = await getServiceImage(fleet)
  expect(conditionOf(halted, "Halted")).toMatchObject({ reason: "AllFailed", status: "True" })
  expect(tierOf(halted, "early").failures).toMatchObject([{ reason: "CrashLoop", scope: "All", count: 2 }])
  expect((await api.get(`${deployments}/c`)).spec.template.spec.containers[0].image).toBe(good)
  expect(await aimDoes("why", "deployment/a", "-n", namespace)).toMatch(/CrashLoop: container app exited with 3/)

  await aimDoes("rollback", `si/${fleet}`, "--wait", "--timeout", "4m")
  const { items } = await api.get(deployments)
  expect(items.map((each: Json) => each.spec.template.spec.containers[0].image)).toEqual(Array(3).fill(good))
})

test("a writer that keeps restoring the old image is named, and not fought", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig } = floor()
  await createDicoms(namespace, fleet, ["calm", "contested"])
  startDicomController(kubeconfig)
  const proxy = await floorWithFaults()
  keepController(proxy.kubeconfig)
  await createServiceImage(fleet, { defaultImage: v1 })
  await complete(fleet)

  proxy.forget()
  const path = dicomsPath(namespace, "contested")
  const sync = (to: string) => api.patch(`${path}?fieldManager=gitops`, { spec: { image: to } })
  await api.patch(serviceImagePath(fleet), { spec: { defaultImage: v2 } })
  const told = await until("it to be told", async () => {
    if ((await api.get(path)).spec.image === v2) await sync(v1)
    const now = await getServiceImage(fleet)
    return isFor("Contested")(now) && now
  })
  expect(conditionOf(told, "InProgress").message).toContain("gitops")
  expect(failuresOf(told)).toMatchObject([{ reason: "Contested", count: 1, examples: [`${namespace}/contested`] }])
  // Once like all others, once at once after the first restore, once more a quarter of a minute later.
  const stamps = proxy.writes(/\/dicoms\/contested/).filter(each => each.status === 200)
  expect(stamps).toHaveLength(3)

  await sync(v2)
  await complete(fleet)
})

test("a namespace without a grant is counted and does not delay the others", async () => {
  const [granted, closed] = [await uniqueNamespace(), await uniqueNamespace()]
  const fleet = granted
  const { access, api, kubeconfig } = floor()
  await createDicoms(granted, fleet, numbered("open", 3))
  await createDicoms(closed, fleet, numbered("closed", 2))
  startDicomController(kubeconfig)
  const token = await controllerToken()
  keepController(kubeconfigFor({ ...access, token }), "--lease-namespace", "aim-system")
  await aimDoes("grant", granted)
  await createServiceImage(fleet, { defaultImage: v1 })

  const counted = await says(fleet, "Forbidden", now => isFor("Forbidden")(now) && tierOf(now, "").upToDate === 3)
  expect(failuresOf(counted)).toMatchObject([
    { reason: "Forbidden", scope: "Partial", count: 2, examples: [`${closed}/closed-0`, `${closed}/closed-1`] },
  ])
  expect((await listDicoms(closed)).map(each => each.spec.image ?? "")).toEqual(["", ""])
  await aimDoes("grant", closed)
  await complete(fleet)
  expect(await imagesOf(closed)).toEqual([v1, v1])

  /** Of the service account that is installed with the product, with its rights and no others. */
  async function controllerToken(): Promise<string> {
    await api.create("/api/v1/namespaces", { metadata: { name: "aim-system" } })
    await applyManifests(await aimDoes("manifests", "rbac"))
    await applyManifests(await aimDoes("manifests", "rbac", "--for", "dicoms.services.example.com"))
    onTestFinished(async () => {
      await floor().kubectlRun("delete", "namespace", "aim-system", "--wait=true")
      const selector = "--selector=app.kubernetes.io/part-of=autoimagemanager"
      await floor().kubectlRun("delete", "clusterrole,clusterrolebinding,role,rolebinding", "-A", selector)
    })
    const account = "/api/v1/namespaces/aim-system/serviceaccounts/aim-controller/token"
    return (await api.create(account, { spec: { expirationSeconds: 3600 } })).status.token
  }
})

test("a kind that comes late, gets another version and goes is followed without a restart", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig } = floor()
  const group = `${randomBytes(4).toString("hex")}.example.com`
  const shops = (version: string, name = "") =>
    `/apis/${group}/${version}/namespaces/${namespace}/shops${name && `/${name}`}`
  const program = startController(kubeconfig)
  const target = { apiVersion: `${group}/v1`, kind: "Shop", health: "has(object.spec.image)" }
  await createServiceImage(fleet, { target, defaultImage: v1 })
  const missing = await says(fleet, "TargetKindMissing", now => isTrue(now, "TargetKindMissing"))
  expect(conditionOf(missing, "Stalled")).toMatchObject({ status: "False" }) // it goes on by itself when the kind comes

  const installed = await installShops(group, ["v1"])
  await createShop("v1", "a")
  await until("the first image", async () => (await api.get(shops("v1", "a"))).spec.image === v1)
  await complete(fleet)

  await installed.serve(["v1", "v2"])
  await api.patch(serviceImagePath(fleet), { spec: { target: { apiVersion: `${group}/v2` }, defaultImage: v2 } })
  await complete(fleet)
  await installed.serve(["v2"])
  await createShop("v2", "b")
  await until("the newcomer's image", async () => (await api.get(shops("v2", "b"))).spec.image === v2)
  expect((await api.get(shops("v2", "a"))).spec.image).toBe(v2)

  await installed.remove()
  await says(fleet, "TargetKindMissing", now => isTrue(now, "TargetKindMissing"))
  await installShops(group, ["v2"])
  await createShop("v2", "c")
  await until("the image in the kind that is back", async () => (await api.get(shops("v2", "c"))).spec.image === v2)
  await complete(fleet)
  expect(await Promise.race([program.ended, "still runs"])).toBe("still runs")

  async function createShop(version: string, name: string) {
    const shop = { apiVersion: `${group}/${version}`, kind: "Shop", metadata: { name }, spec: {} }
    // A version that was just added is not served in the very moment in which it is established.
    await until(`${name} to be accepted`, () => api.create(shops(version), shop))
  }
})

/** A kind of its own group, served in these versions; the last one is stored. */
async function installShops(group: string, versions: readonly string[]) {
  const { api } = floor()
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shops.${group}`
  const properties = { spec: { type: "object", properties: { image: { type: "string" } } } }
  const schema = { openAPIV3Schema: { type: "object", properties } }
  const apply = (served: readonly string[]) =>
    api.apply(path, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `shops.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { kind: "Shop", plural: "shops" },
        versions: ["v1", "v2"].map(name => ({ name, served: served.includes(name), storage: name === "v2", schema })),
      },
    })
  const serve = async (served: readonly string[]) => {
    await apply(served)
    await until("the versions to be served", async () => {
      const found = await Promise.all(["v1", "v2"].map(version => api.find(`/apis/${group}/${version}/shops`)))
      return ["v1", "v2"].every((version, index) => served.includes(version) === (found[index] !== undefined))
    })
  }
  const remove = async () => {
    await api.remove(path)
    await until("the kind to be gone", async () => (await api.find(path)) === undefined)
  }
  await serve(versions)
  onTestFinished(() => api.remove(path))
  return { serve, remove }
}

async function applyManifests(manifests: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "aim-manifests-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, "manifests.yaml")
  writeFileSync(file, manifests)
  await floor().kubectlRun("apply", "-f", file)
}
