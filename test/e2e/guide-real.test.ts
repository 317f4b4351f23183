import { expect, onTestFinished, test } from "vitest"
import { installKinds } from "#test/support/fleet.ts"
import { floor, type Json } from "#test/support/floor.ts"
import { emptyHome, follow } from "#test/support/follow-guide.ts"

const fleet = "docs/guides/upgrade-a-fleet.md"
const minutes = 60_000

test("the guide, followed on a real cluster with aim in it", { timeout: 20 * minutes }, async () => {
  const { kubeconfig, pushImage } = floor()
  await installKinds()
  for (const tag of ["v1", "v2", "v3"]) await pushImage(`web:${tag}`)
  uninstallAtTheEnd({ serviceImage: "web", namespaces: ["shop", "lab"] })
  await follow(fleet, "real", kubeconfig, onTheFloor, emptyHome())
})

test("the README, typed on a real cluster that has nothing of ours", { timeout: 20 * minutes }, async () => {
  const { api, kubeconfig, kubectlRun, pushImage } = floor()
  const kinds = ["serviceimages.autoimagemanager.io", "alternateimagesources.autoimagemanager.io"]
  await kubectlRun("delete", "crd", ...kinds, "dicoms.services.example.com", "--ignore-not-found")
  const { reference } = await pushImage("dicom-service:v2")
  uninstallAtTheEnd({ serviceImage: "dicom-serviceimage-prod", namespaces: ["my-namespace"] })
  await follow("README.md", "real", kubeconfig, onTheFloor, emptyHome(), "On your own cluster")

  const { items } = await api.get("/apis/services.example.com/v1alpha1/namespaces/my-namespace/dicoms")
  expect(items.map(({ spec }: Json) => spec.image)).toEqual(Array(5).fill(reference))
  const { items: pods } = await api.get("/api/v1/namespaces/my-namespace/pods")
  // Those that were replaced may still be ending.
  const running = pods.filter(
    ({ status, metadata }: Json) =>
      !metadata.deletionTimestamp && status.containerStatuses?.every(({ ready }: Json) => ready),
  )
  expect(running).toHaveLength(9)
})

/**
 * The registry of the floor has another name than the pages', and no TLS; its container runtime has a socket of its own.
 * Its names replace theirs.
 */
const onTheFloor = (text: string) =>
  text
    .replaceAll(/registry\.example\.com(?!\|)/g, floor().registry)
    .replace(/ --push \S+/, "$& --plain-http")
    .replace(/ manifests all(?! --no-agent)/, `$& --cri-socket ${floor().containerdSocket}`)

function uninstallAtTheEnd({ serviceImage, namespaces }: { serviceImage: string; namespaces: string[] }): void {
  const { kubectlRun } = floor()
  onTestFinished(async () => {
    await kubectlRun("delete", `si/${serviceImage}`, "--ignore-not-found")
    await kubectlRun("delete", "namespace", ...namespaces, "aim-system", "aim-agents", "--ignore-not-found")
    const ours =
      "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,mutatingadmissionpolicy,mutatingadmissionpolicybinding"
    await kubectlRun("delete", ours, "--selector=app.kubernetes.io/part-of=autoimagemanager")
  })
}
