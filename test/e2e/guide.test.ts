import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { installKinds } from "#test/support/fleet.ts"
import { floor, type Json, until } from "#test/support/floor.ts"
import { isRefusal, missingFrom, openTerminal, readGuide } from "#test/support/guide.ts"
import { cacheFolder, repository } from "#tools/kube/folders.ts"

const fleet = "docs/guides/upgrade-a-fleet.md"
const outage = "docs/guides/when-a-registry-fails.md"
const dicom = "examples/dicom/README.md"
const minutes = 60_000

/** Types a page into a terminal, from its first command to its last, and holds what is printed against it. */
async function follow(
  page: string,
  on: "up" | "real",
  kubeconfig: string,
  here: (text: string) => string,
  home: string,
  section?: string,
) {
  const env = { HOME: home, KUBECONFIG: kubeconfig, AIM_CACHE: cacheFolder(), PATH: pathWithKubectl() }
  const terminal = openTerminal(env, repository)
  onTestFinished(terminal.close)
  const others: { terminal: ReturnType<typeof openTerminal>; prints: string[]; command: string }[] = []
  const text = readFileSync(join(repository, page), "utf8")
  for (const { command, prints, line, isBackground, on: where } of readGuide(text, section)) {
    if (where && where !== on) continue
    const wanted = prints.map(here)
    if (isBackground) {
      const other = openTerminal({ ...env, PATH: `${join(repository, "bin")}:${env.PATH}` }, repository)
      onTestFinished(other.close)
      other.type(here(command))
      others.push({ terminal: other, prints: wanted, command })
      await until(`${command} to begin`, async () => missingFrom(other.output, wanted.slice(0, 1)).length === 0)
      continue
    }
    const { output, code } = await terminal.run(here(command))
    const said = `${page}:${line}\n$ ${command}\n${output}`
    expect(missingFrom(output, wanted), said).toEqual([])
    expect(code === 0, `exit code ${code}\n${said}`).toBe(!prints.some(isRefusal))
  }
  for (const { terminal, prints, command } of others)
    expect(missingFrom(terminal.output, prints), `${command}\n${terminal.output}`).toEqual([])
}

const pathWithKubectl = () => `${dirname(floor().kubectl)}:${process.env.PATH}`

function emptyHome(): string {
  const home = mkdtempSync(join(tmpdir(), "aim-guide-"))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  return home
}

test("the guide, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(fleet, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the guide about a registry that fails, followed on aim up", { timeout: 5 * minutes }, async () => {
  const home = emptyHome()
  await follow(outage, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the example of a kind of one's own, followed on aim up", { timeout: 5 * minutes }, async () => {
  const home = emptyHome()
  await follow(dicom, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the same guide, followed on a real cluster with aim in it", { timeout: 20 * minutes }, async () => {
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
  const running = pods.filter(({ status }: Json) => status.containerStatuses?.every(({ ready }: Json) => ready))
  expect(running).toHaveLength(9)
})

/** The registry of the floor has another name than the pages', and no TLS. Its name replaces theirs. */
const onTheFloor = (text: string) =>
  text.replaceAll(/registry\.example\.com(?!\|)/g, floor().registry).replace(/ --push \S+/, "$& --plain-http")

function uninstallAtTheEnd({ serviceImage, namespaces }: { serviceImage: string; namespaces: string[] }): void {
  const { kubectlRun } = floor()
  onTestFinished(async () => {
    await kubectlRun("delete", `si/${serviceImage}`, "--ignore-not-found")
    await kubectlRun("delete", "namespace", ...namespaces, "aim-system", "--ignore-not-found")
    const ours =
      "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,mutatingadmissionpolicy,mutatingadmissionpolicybinding"
    await kubectlRun("delete", ours, "--selector=app.kubernetes.io/part-of=autoimagemanager")
  })
}
