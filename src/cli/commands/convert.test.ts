import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import { kinds } from "#api/kinds.ts"
import { validate } from "#api/validate.ts"
import { repository } from "#tools/kube/folders.ts"
import { testCluster, testWorld } from "../test-world.ts"
import { run } from "./convert.ts"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "aim-convert-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const convert = async (text: string, options: Record<string, unknown> = {}) => {
  const file = join(folder, "in.yaml")
  writeFileSync(file, text)
  const { world, said } = testWorld(testCluster())
  const answer = await run({ arguments: [], options: { file, ...options } }, world)
  const objects = parseAllDocuments(answer.text).map(document => document.toJS())
  for (const object of objects) {
    const kind = kinds.find(each => each.kind === object.kind)!
    expect(validate(kind, object)).toMatchObject({ errors: [], warnings: [] })
  }
  return { objects, said: said.map(line => line.replace(`${folder}/`, "")), exitCode: answer.exitCode }
}

const kuiper = `apiVersion: kuiper.fairwinds.com/v1alpha1
kind: AlternateImageSource
metadata:
  name: demo
  namespace: shop
  uid: 233ac88f-c125-4125-8788-e95f8531a181
  resourceVersion: "12"
  labels: {team: web}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    example.com/note: kept
spec:
  imageSourceReplacements:
    - equivalentRepositories: [quay.io/fairwinds/docker-demo, ehazlett/docker-demo]
      targets:
        - type: {group: apps/v1, kind: deployment}
          name: demo3-basic-demo
          uid: 42
        - type: {group: apps, kind: deployment}
          name: demo2-basic-demo
          container: basic-demo
status:
  observedGeneration: 1
  targetsAvailable: []
`

test("the first shape, with targets", async () => {
  const { objects, said, exitCode } = await convert(kuiper)
  expect(exitCode).toBe(0)
  expect(objects).toEqual([
    {
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "AlternateImageSource",
      metadata: {
        name: "demo",
        namespace: "shop",
        labels: { team: "web" },
        annotations: { "example.com/note": "kept" },
      },
      spec: {
        imageSourceReplacements: [
          {
            equivalentRepositories: ["quay.io/fairwinds/docker-demo", "ehazlett/docker-demo"],
            targets: [
              { type: { group: "apps", kind: "deployment" }, name: "demo3-basic-demo" },
              { type: { group: "apps", kind: "deployment" }, name: "demo2-basic-demo", container: "basic-demo" },
            ],
          },
        ],
      },
    },
  ])
  expect(said.map(line => line.split(": ").slice(0, 2).join(": "))).toEqual([
    "in.yaml:13: spec",
    "in.yaml:18: spec.imageSourceReplacements[0].targets[0].uid",
    "in.yaml:16: spec.imageSourceReplacements[0].targets[0].type.group",
    "in.yaml:6: metadata.uid",
    "in.yaml:7: metadata.resourceVersion",
    "in.yaml:10: metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
    "in.yaml:23: status",
  ])
})

const saffire = `apiVersion: saffire.fairwinds.com/v1alpha1
kind: AlternateImageSource
metadata: {name: everything}
spec:
  imageSourceReplacements:
    - equivalentRepositories: [quay.io/team/app, team/app]
  interval: 5m
status:
  observedGeneration: 1
  switches:
    - {time: "2021-02-06T00:00:00Z", oldImage: a:1, newImage: b:1, target: {name: x}}
`
const serviceImage = `apiVersion: services.azurehealthcareapis.com/v1alpha1
kind: ServiceImage
metadata: {name: dicom-prod, namespace: default, generation: 2, labels: {service: dicom}}
spec:
  tiers:
    - {upgradeTier: "", image: "ouracr.azurecr.io/dicom-service:v2", priority: 0}
    - {upgradeTier: earlyAccess, image: "ouracr.azurecr.io/dicom-service:v3", priority: 1}
`

test("the later shape and a ServiceImage, in one stream; unknown fields are dropped and reported", async () => {
  const { objects, said } = await convert(`${saffire}---\n${serviceImage}`)
  expect(objects).toMatchObject([
    {
      metadata: { name: "everything" },
      spec: { imageSourceReplacements: [{ equivalentRepositories: { length: 2 } }] },
    },
    {
      kind: "ServiceImage",
      metadata: { name: "dicom-prod", labels: { service: "dicom" } },
      spec: {
        target: { apiVersion: "services.azurehealthcareapis.com/v1alpha1", kind: "Dicom" },
        tiers: [{ upgradeTier: "" }, { upgradeTier: "earlyAccess", priority: 1 }],
      },
    },
  ])
  expect(Object.keys(objects[0].spec)).toEqual(["imageSourceReplacements"])
  expect(Object.keys(objects[1].metadata)).toEqual(["name", "labels"])
  const told = said.join("\n")
  expect(told).toContain("in.yaml:7: spec.interval: dropped")
  expect(told).toContain(
    "spec.target: guessed from the label service: Dicom of services.azurehealthcareapis.com/v1alpha1",
  )
  expect(told).toContain("metadata.namespace: dropped: this kind has no namespace")
})

const openKruise = `apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: restart-web, namespace: shop}
spec:
  podName: web-0
  containers:
    - name: app
      statusContext: {containerID: containerd://1, restartCount: 0}
---
apiVersion: apps.kruise.io/v1beta1
kind: NodeImage
metadata: {name: node-1}
spec:
  images:
    registry.example.com/app:
      tags:
        - tag: v2
          ownerReferences: [{kind: ImagePullJob, namespace: shop, name: pre}]
`

test("OpenKruise's kinds: what is not needed is reported and left out", async () => {
  const { objects, said } = await convert(openKruise)
  expect(objects).toEqual([
    {
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "ContainerRecreateRequest",
      metadata: { name: "restart-web", namespace: "shop" },
      spec: { podName: "web-0", containers: [{ name: "app" }] },
    },
  ])
  expect(said).toEqual([
    "in.yaml:8: spec.containers[0].statusContext: dropped: status.containerRecreateStates records the container",
    "in.yaml:15: spec.images: 1 image not converted: brought by ImagePullJob shop/pre; convert the jobs instead",
  ])
  const complete = openKruise.split("---")[0]!.concat("status: {phase: Completed}\n")
  expect(await convert(complete)).toMatchObject({
    objects: [],
    said: [expect.stringContaining("in.yaml:9: status.phase")],
  })
  const refused = `${complete}---\n${openKruise.replace("podName: web-0", "podName: 7")}`
  await expect(convert(refused)).rejects.toThrow("in.yaml:15: spec.podName: is 7, not a text")
})

test("--target names the kind that a ServiceImage stamps", async () => {
  const { objects, said } = await convert(serviceImage, { target: "services.example.com/v1/Fhir" })
  expect(objects[0].spec.target).toEqual({ apiVersion: "services.example.com/v1", kind: "Fhir" })
  expect(said.join()).not.toContain("guessed")
  const unlabelled = serviceImage.replace(", labels: {service: dicom}", "")
  await expect(convert(unlabelled)).rejects.toThrow("in.yaml:5: spec.target: the kind to stamp is missing")
  await expect(convert(serviceImage, { target: "Dicom" })).rejects.toThrow("--target: Dicom is not GROUP/VERSION/KIND")
})

const refused: Record<string, { text: string; says: string }> = {
  "another kind": {
    text: "apiVersion: v1\nkind: ConfigMap\n",
    says: "in.yaml:1: ConfigMap of v1 cannot be converted; these can: AlternateImageSource of kuiper.fairwinds.com",
  },
  "a foreign kind": {
    text: kuiper.replace("kuiper.fairwinds.com", "example.com"),
    says: "AlternateImageSource of example.com/v1alpha1 cannot be converted",
  },
  "one of many": { text: `${kuiper}---\nkind: Pod\n`, says: "Pod of no apiVersion cannot be converted" },
  "no object": { text: "- 1\n", says: "no object cannot be converted" },
  "what the server would refuse": {
    text: kuiper.replace("ehazlett/docker-demo", "ehazlett/docker-demo:1"),
    says: "in.yaml:14: spec.imageSourceReplacements[0].equivalentRepositories[1]: ",
  },
  "what is no YAML": { text: "a: [", says: "in.yaml:1:" },
  nothing: { text: "", says: "has no manifest" },
}
for (const [name, { text, says }] of Object.entries(refused))
  test(`${name} is refused, whole`, async () => {
    await expect(convert(text)).rejects.toThrow(says)
  })

test("ours stays ours", async () => {
  const { objects, said } = await convert(
    kuiper.replace("kuiper.fairwinds.com", "autoimagemanager.io").replace("uid: 42", ""),
  )
  expect(objects[0].spec.imageSourceReplacements[0].targets).toHaveLength(2)
  expect(said.map(line => line.split(": ")[1])).toContain("status")
})

test("from stdin, as a program", () => {
  const { status, stdout, stderr } = spawnSync(join(repository, "bin/aim"), ["convert", "-f", "-"], {
    input: saffire,
    encoding: "utf8",
  })
  expect([status, stderr.split("\n")[0]]).toEqual([0, expect.stringContaining("stdin:5: spec: ")])
  expect(stdout).toContain("apiVersion: autoimagemanager.io/v1alpha1")
})
