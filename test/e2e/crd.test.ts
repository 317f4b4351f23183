import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import type { Kind } from "#api/kind.ts"
import { kinds } from "#api/kinds.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { validate } from "#api/validate.ts"
import { type Answer, ask } from "../support/ask.ts"
import { installKind } from "../support/fleet.ts"
import { floor, type Json } from "../support/floor.ts"
import { alertProviderCases, canaryCases, metricTemplateCases } from "../support/manifests/canary.ts"
import { cases as requestCases } from "../support/manifests/containerrecreaterequest.ts"
import { largestStatus } from "../support/manifests/largest-status.ts"
import { imageListPullJobCases, imagePullJobCases, nodeImageCases } from "../support/manifests/pulls.ts"
import { type Case, cases } from "../support/manifests/serviceimage.ts"
import { scalars, scalarsManifest } from "../support/manifests/yaml.ts"

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
const resource = `/apis/${ServiceImage.apiVersion}/${ServiceImage.plural}`
const dryRun = "dryRun=All&fieldValidation=Warn"

beforeAll(async () => {
  for (const kind of kinds) await installKind(crdOf(kind))
})

test("the server keeps the definitions as they are written", async () => {
  for (const kind of kinds) {
    const written = crdOf(kind)
    const { spec, status } = await floor().api.get(`${crds}/${written.metadata.name}`)
    expect(spec).toEqual({ ...written.spec, conversion: { strategy: "None" } })
    // NonStructuralSchema, or names that are taken already, would be reported here.
    const said = status.conditions.map((condition: Json) => `${condition.type} ${condition.status}`)
    expect(said.sort()).toEqual(["Established True", "NamesAccepted True"])
  }
})

const tables: [Kind, Record<string, Case>][] = [
  [ServiceImage, cases],
  [ContainerRecreateRequest, requestCases],
  [ImagePullJob, imagePullJobCases],
  [ImageListPullJob, imageListPullJobCases],
  [NodeImage, nodeImageCases],
  [Canary, canaryCases],
  [MetricTemplate, metricTemplateCases],
  [AlertProvider, alertProviderCases],
]

for (const [kind, table] of tables)
  for (const [name, { manifest, old, refused, warned }] of Object.entries(table))
    test(kind === ServiceImage ? name : `${kind.kind}: ${name}`, async () => {
      const answer = old
        ? await update(kind, old, manifest)
        : await ask("POST", `${pathOf(kind)}?${dryRun}`, placed(kind, manifest))
      if (refused) {
        expect(answer).toMatchObject({ status: expect.toSatisfy((status: number) => status >= 400 && status < 500) })
        const { serverPath = refused.path, serverWords = refused.words } = refused
        const where = answer.causes.filter(({ field }) => field === serverPath)
        expect(where.map(({ message }) => message).join("\n"), JSON.stringify(answer.body)).toContain(serverWords)
      } else {
        expect(answer.body.message).toBeUndefined()
        expect(answer.body.spec).toEqual(validate(kind, manifest).object?.spec)
      }
      // What the server says beside a refusal does not matter: nothing is dropped, as nothing is stored.
      if (!refused)
        expect(answer.warnings).toBe(warned && !warned.serverIsSilent ? `299 - "unknown field "${warned.path}""` : "")
    })

test("the largest status is stored whole", async () => {
  const name = await stored(cases["the smallest manifest"]!.manifest)
  const path = `${resource}/${name}`
  const status = largestStatus()
  await floor().api.replace(`${path}/status`, { ...(await floor().api.get(path)), status })
  expect((await floor().api.get(path)).status).toEqual(status)
})

test("a status is merged tier by tier, also the one without a name", async () => {
  const name = await stored(cases["the smallest manifest"]!.manifest)
  const { api } = floor()
  const apply = (status: object) =>
    api.apply(`${resource}/${name}/status`, {
      apiVersion: ServiceImage.apiVersion,
      kind: ServiceImage.kind,
      metadata: { name },
      status,
    })
  const operation = {
    id: "g1",
    startedAt: "2026-01-31T12:00:00Z",
    phase: "InProgress",
    images: { "": "app:v1", early: "app:v2" },
  }
  await apply({
    operation,
    tierStatus: [
      { upgradeTier: "", total: 1 },
      { upgradeTier: "early", total: 2 },
    ],
  })
  await apply({ operation, tierStatus: [{ upgradeTier: "", total: 3 }] })

  const { status } = await api.get(`${resource}/${name}`)
  expect(status.operation).toEqual({ ...operation, total: 0, upToDate: 0, failed: 0 })
  expect(status.tierStatus).toMatchObject([{ upgradeTier: "", total: 3, upToDate: 0 }])
})

test("kubectl prints the columns, and waits for Complete of this generation only", async () => {
  const { api, kubectlRun } = floor()
  const name = await stored(cases["the smallest manifest"]!.manifest)
  const condition = (type: string, observedGeneration: number) => ({
    type,
    status: "True",
    observedGeneration,
    lastTransitionTime: "2026-01-31T12:00:00Z",
    reason: "AllUpToDate",
    message: "",
  })
  const setStatus = async (generation: number) => {
    const conditions = [condition("Complete", generation), condition("Ready", generation)]
    const told = {
      progress: "412/1000",
      currentPriority: 7,
      state: "Complete",
      image: "registry.example.com/web:v2 +1",
    }
    const status = { observedGeneration: generation, ...told, conditions }
    await api.patch(`${resource}/${name}/status`, { status })
  }
  await setStatus(1)
  const [header = "", row = ""] = (await kubectlRun("get", "si", name)).split("\n")
  const columns = ["NAME", "READY", "STATE", "PROGRESS", "PRIORITY", "IMAGE", "AGE"]
  expect(header.split(/\s+/).filter(Boolean)).toEqual(columns)
  expect(row).toMatch(/^\S+ +True +Complete +412\/1000 +7 +registry.example.com\/web:v2 [+]1 /)
  expect(await kubectlRun("get", "aim", "-o", "name")).toContain(`serviceimage.autoimagemanager.io/${name}`)

  const wait = (timeout: string) => kubectlRun("wait", "--for=condition=Complete", `si/${name}`, `--timeout=${timeout}`)
  await wait("60s")
  await api.patch(`${resource}/${name}`, { spec: { paused: true } })
  await expect(wait("2s")).rejects.toThrow(/timed out/)
  await setStatus(2)
  await wait("60s")
})

test("kubectl reads scalars as the table says", async () => {
  const folder = mkdtempSync(join(tmpdir(), "aim-yaml-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, "scalars.yaml")
  writeFileSync(file, scalarsManifest)
  const printed = await floor().kubectlRun("annotate", "--local", "--filename", file, "read=true", "--output", "json")
  expect(JSON.parse(printed).values).toEqual(Object.values(scalars))
})

const pathOf = ({ apiVersion, plural, scope }: Kind) =>
  `/apis/${apiVersion}/${scope === "Namespaced" ? "namespaces/default/" : ""}${plural}`

/** In the namespace of the path, if its kind lives in one. */
function placed({ scope }: Kind, manifest: unknown): Json {
  const { metadata, ...rest } = (manifest ?? {}) as Json
  if (scope !== "Namespaced" || !metadata) return manifest
  return { ...rest, metadata: { ...metadata, namespace: "default" } }
}

/** Asks for a change of a stored object without making it. */
async function update(kind: Kind, old: unknown, manifest: unknown): Promise<Answer> {
  const path = `${pathOf(kind)}/${await stored(old, kind)}`
  const { metadata } = await floor().api.get(path)
  return ask("PUT", `${path}?${dryRun}`, { ...(manifest as object), metadata })
}

/** Stores an object under a name of its own, for the test that runs. */
async function stored(manifest: unknown, kind: Kind = ServiceImage): Promise<string> {
  const name = `crd-${randomBytes(4).toString("hex")}`
  await floor().api.create(pathOf(kind), { ...(manifest as object), metadata: { name } })
  onTestFinished(() => floor().api.remove(`${pathOf(kind)}/${name}`))
  return name
}
