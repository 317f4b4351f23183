import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { type Json, onKwok, ownCluster, quickEnd, until } from "#test/support/floor.ts"
import { helmFor, useHelm } from "#test/support/helm.ts"
import { runProgram } from "#test/support/program.ts"
import { connectApi } from "#tools/kube/api.ts"
import { repository } from "#tools/kube/folders.ts"

// The section "Uninstall" of docs/install.md, followed to the letter while updates in place are under way.

useHelm()

const guide = readFileSync(join(repository, "docs/install.md"), "utf8")
const [uninstalls, releases] = [...guide.split("\n## Uninstall\n")[1]!.matchAll(/```sh\n(.+?)\n```/gs)].map(
  ([, line]) => line!.split(" "),
)

const rolling = (rollingUpdate: Json) => ({ updateStrategy: { type: "RollingUpdate", rollingUpdate } })
const workloads: { kind: string; name: string; spec: Json; isOwners?: boolean }[] = [
  { kind: "Deployment", name: "web", spec: {} },
  { kind: "Deployment", name: "mine", spec: { paused: true }, isOwners: true },
  { kind: "StatefulSet", name: "db", spec: {} },
  { kind: "StatefulSet", name: "mine", spec: rolling({ partition: 1 }), isOwners: true },
  { kind: "DaemonSet", name: "log", spec: rolling({ maxUnavailable: "50%", maxSurge: 0 }) },
  { kind: "DaemonSet", name: "mine", spec: { updateStrategy: { type: "OnDelete" } }, isOwners: true },
]

const manifestOf = ({ kind, name, spec }: (typeof workloads)[number]): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name, annotations: { [strategyAnnotation]: "InPlaceIfPossible" } },
  spec: {
    ...(kind !== "DaemonSet" && { replicas: 1 }),
    selector: { matchLabels: { app: `${kind}-${name}` } },
    template: {
      metadata: { labels: { app: `${kind}-${name}` } },
      spec: { ...onKwok, ...quickEnd, containers: [{ name: "app", image: "app:1" }] },
    },
    ...spec,
  },
})

test("afterwards nothing is paused, partitioned or OnDelete that was not before", async () => {
  const cluster = await ownCluster({ kwokNodes: 2 })
  const api = connectApi(cluster.access)
  onTestFinished(() => api.close())
  const { kubeconfig } = cluster
  const helm = await helmFor(kubeconfig)
  const aim = async (...args: string[]) => {
    const { code, output } = await runProgram("bin/aim", args, { KUBECONFIG: kubeconfig })
    expect(code, output).toBe(0)
    return output
  }
  await helm("install", "aim", join(repository, "charts/aim"), "--namespace", "aim-system", "--create-namespace")
  await api.create("/api/v1/namespaces", { metadata: { name: "shop" } })
  await until("its account", () => api.find("/api/v1/namespaces/shop/serviceaccounts/default"))
  await aim("grant", "shop")
  const pathOf = (kind: string) => `/apis/apps/v1/namespaces/shop/${workloadKind(kind)!.plural}`
  const stops = async () => {
    const all = workloads.map(async ({ kind, name }) => {
      const { metadata, spec } = await api.get(`${pathOf(kind)}/${name}`)
      const { annotations = {}, labels = {} } = metadata
      const isMarked = annotations[heldMark] !== undefined || labels[heldMark] !== undefined
      return [`${kind} ${name}`, { paused: spec.paused, updateStrategy: spec.updateStrategy, isMarked }]
    })
    return Object.fromEntries(await Promise.all(all))
  }
  for (const each of workloads) await api.create(pathOf(each.kind), manifestOf(each))
  const before = await stops()

  // No controller runs: its image is nowhere. What the policies hold stays held.
  const change = (image: string) => ({ spec: { template: { spec: { containers: [{ name: "app", image }] } } } })
  for (const { kind, name, isOwners = false } of workloads)
    await until(`${kind} ${name} to be changed`, async () => {
      await api.patchStrategically(`${pathOf(kind)}/${name}`, change("app:2"))
      const { isMarked } = (await stops())[`${kind} ${name}`]
      if (isOwners || isMarked) return true
      // The policy is not in force yet.
      await api.patchStrategically(`${pathOf(kind)}/${name}`, change("app:1"))
      return false
    })
  const held = await stops()
  expect(Object.values(held).map(({ isMarked }: Json) => isMarked)).toEqual(
    workloads.map(({ isOwners = false }) => !isOwners),
  )

  expect([uninstalls?.[0], releases?.[0]]).toEqual(["helm", "aim"])
  await helm(...uninstalls!.slice(1))
  expect(await stops()).toEqual(held)
  await aim(...releases!.slice(1))
  expect(await stops()).toEqual(before)
  // Their own controllers go on.
  await until("every pod of what was held to have the new image", async () => {
    const { items } = await api.get("/api/v1/namespaces/shop/pods")
    const others = items.filter(({ metadata }: Json) => !metadata.labels.app.endsWith("-mine"))
    return others.length > 0 && others.every(({ spec }: Json) => spec.containers[0].image === "app:2")
  })
})
