import { beforeAll, expect, onTestFinished, test } from "vitest"
import {
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isTrue,
  serviceImagePath,
  startDicomController,
} from "#test/support/fleet.ts"
import { floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import { aim, applyManifests, buildImage, uninstall } from "#test/support/installation.ts"

const tiers = ["early", "", "late"]
beforeAll(installKinds)

test("the same journey inside the cluster, with exactly the roles it prints", async () => {
  const { api, kubectlRun, pushImage, kubeconfig } = floor()
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const [v1, v2] = await Promise.all(["v1", "v2"].map(async tag => (await pushImage(`dicom-service:${tag}`)).reference))
  const image = await buildImage()
  const manifests = await aim(
    "manifests",
    "all",
    "--no-agent",
    "--image",
    image,
    "--for",
    "dicoms.services.example.com",
  )
  await applyManifests(manifests)
  onTestFinished(uninstall)
  await kubectlRun("-n", "aim-system", "rollout", "status", "deployment/aim-controller", "--timeout=180s")

  for (const tier of tiers)
    for (let index = 0; index < 4; index++)
      await api.create(dicomsPath(namespace), dicom(`${tier || "default"}-${index}`, tier, {}, { fleet }))
  startDicomController(kubeconfig)
  await createServiceImage(fleet, {
    defaultImage: v1,
    tiers: tiers.map((upgradeTier, index) => ({ upgradeTier, priority: -index, progressDeadlineSeconds: 300 })),
  })

  // There is no grant yet: objects are counted and named, and none is changed.
  const failures: Json[] = await until("the refusals to be counted", async () => {
    const { status } = await api.get(serviceImagePath(fleet))
    const found = (status?.tierStatus ?? []).flatMap((tier: Json) => tier.failures)
    return found.reduce((sum: number, failure: Json) => sum + failure.count, 0) === 12 && found
  })
  expect(failures.every(failure => failure.reason === "Forbidden")).toBe(true)
  const images = async () => (await api.get(dicomsPath(namespace))).items.map((each: Json) => each.spec.image ?? "")
  expect(new Set(await images())).toEqual(new Set([""]))

  await aim("grant", namespace)
  await aim("wait", `si/${fleet}`, "--timeout", "4m")
  expect(new Set(await images())).toEqual(new Set([v1]))

  await api.patch(serviceImagePath(fleet), { spec: { defaultImage: v2 } })
  await kubectlRun("wait", "--for=condition=complete", `si/${fleet}`, "--timeout=240s")
  expect(new Set(await images())).toEqual(new Set([v2]))

  // What it may do is what it was seen to need, and nothing that would let it do more.
  const account = "--as=system:serviceaccount:aim-system:aim-controller"
  const may = async (...args: string[]) =>
    (await kubectlRun("auth", "can-i", ...args, account).catch(() => "no")).trim()
  expect(await may("patch", "dicoms.services.example.com", "-n", namespace)).toBe("yes")
  expect(await may("patch", "dicoms.services.example.com", "-n", "default")).toBe("no")
  for (const [verb, resource] of [
    ["get", "secrets"],
    ["create", "pods"],
    ["create", "pods/exec"],
    ["delete", "dicoms.services.example.com"],
    ["patch", "serviceimages.autoimagemanager.io"],
    ["create", "clusterrolebindings.rbac.authorization.k8s.io"],
    ["impersonate", "users"],
    ["patch", "nodes"],
  ])
    expect(await may(verb!, resource!, "-A"), `${verb} ${resource}`).toBe("no")

  // The pod is what Pod Security "restricted" lets through, and it stayed up.
  const [pod] = (await api.get("/api/v1/namespaces/aim-system/pods")).items
  expect(isTrue(pod, "Ready")).toBe(true)
  expect(pod.status.containerStatuses[0].restartCount).toBe(0)
})
