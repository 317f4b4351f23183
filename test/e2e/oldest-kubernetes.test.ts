import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { parseAllDocuments } from "yaml"
import { ask } from "#test/support/ask.ts"
import { isComplete, quickTiers, serviceImagePath, startController } from "#test/support/fleet.ts"
import { type Json, onKwok, ownCluster, until } from "#test/support/floor.ts"
import { runProgram } from "#test/support/program.ts"
import { connectApi } from "#tools/kube/api.ts"
import { run } from "#tools/kube/command.ts"

/** The oldest that Kubernetes itself supports. docs/scope.md says what is missing there. */
const oldest = "1.34"

test(`on Kubernetes ${oldest}, as the control plane emulates it: everything but the policy for new pods`, async () => {
  const cluster = await ownCluster({ kwokNodes: 1, kubelet: false, emulatedVersion: oldest })
  const { kubeconfig, kubectl, access } = cluster
  const api = connectApi(access)
  onTestFinished(() => api.close())
  const { emulationMajor, emulationMinor } = await api.get("/version")
  expect(`${emulationMajor}.${emulationMinor}`).toBe(oldest)

  const aim = async (...args: string[]) => {
    const { code, output, stdout } = await runProgram("bin/aim", args, { KUBECONFIG: kubeconfig })
    expect(code, output).toBe(0)
    return stdout
  }
  const printed = await aim("manifests", "all")
  const objects: Json[] = parseAllDocuments(printed).map(document => document.toJS())
  const isNewer = ({ kind }: Json) => kind.startsWith("MutatingAdmissionPolicy")
  const apply = async (what: Json[]) => {
    const folder = mkdtempSync(join(tmpdir(), "aim-oldest-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, "manifests.json")
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: what }))
    return run(kubectl, ["apply", "--kubeconfig", kubeconfig, "-f", file])
  }
  await expect(apply(objects.filter(isNewer))).rejects.toThrow(/no matches for kind "MutatingAdmissionPolicy"/)
  await apply(objects.filter(object => !isNewer(object)))

  const path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
  for (const { metadata } of objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicy")) {
    const { status } = await until(`${metadata.name} to be checked`, async () => {
      const policy = await api.get(`${path}/${metadata.name}`)
      return policy.status?.observedGeneration === policy.metadata.generation && policy
    })
    expect({ [metadata.name]: status.typeChecking }).toEqual({ [metadata.name]: {} })
  }

  // The controllers bring an image to a workload, with the roles they have here.
  const labels = { app: "web" }
  const image = (tag: string) => `registry.example.com/web:${tag}`
  const template = { metadata: { labels }, spec: { ...onKwok, containers: [{ name: "app", image: image("v1") }] } }
  const deployment = {
    metadata: { name: "web", labels },
    spec: { replicas: 2, selector: { matchLabels: labels }, template },
  }
  await api.create("/apis/apps/v1/namespaces/default/deployments", deployment)
  startController(kubeconfig, "--no-leader-elect")
  const serviceImage = {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: { name: "web" },
    spec: {
      target: {
        apiVersion: "apps/v1",
        kind: "Deployment",
        selector: { matchLabels: labels },
        image: { container: "app" },
      },
      defaultImage: image("v2"),
      tiers: quickTiers([{ upgradeTier: "" }]),
      serialize: "Enforce",
    },
  }
  const collection = "/apis/autoimagemanager.io/v1alpha1/serviceimages"
  await api.create(collection, serviceImage)
  await until("the rollout to complete", async () => isComplete(await api.get(serviceImagePath("web"))))
  const { spec } = await api.get("/apis/apps/v1/namespaces/default/deployments/web")
  expect(spec.template.spec.containers[0].image).toBe(image("v2"))

  // An account without rights on Deployments is refused by the policy, in its words.
  const rules = [{ apiGroups: ["autoimagemanager.io"], resources: ["serviceimages"], verbs: ["create"] }]
  const rbac = "/apis/rbac.authorization.k8s.io/v1"
  const accounts = "/api/v1/namespaces/default/serviceaccounts"
  await api.create(accounts, { metadata: { name: "author" } })
  await api.create(`${rbac}/clusterroles`, { metadata: { name: "author" }, rules })
  await api.create(`${rbac}/clusterrolebindings`, {
    metadata: { name: "author" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "author" },
    subjects: [{ kind: "ServiceAccount", namespace: "default", name: "author" }],
  })
  const { status } = await api.create(`${accounts}/author/token`, { spec: { expirationSeconds: 3600 } })
  const as = { access: { ...access, token: status.token } }
  const another = { ...serviceImage, metadata: { name: "other" } }
  await until("the author to be refused for the right that is missing", async () => {
    const { body } = await ask("POST", `${collection}?dryRun=All`, another, as)
    return body.message?.includes("you may not patch deployments.apps in all namespaces")
  })
})
