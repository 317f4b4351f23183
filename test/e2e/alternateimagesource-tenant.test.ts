import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest"
import { decisionAnnotation } from "#core/image/record.ts"
import {
  created,
  createSource,
  failing,
  imagesOf,
  installSources,
  podOf,
  podsPath,
  removePolicies,
  source,
  sourcesPath,
  switched,
  working,
  writeStatus,
} from "#test/support/alternate-sources.ts"
import { ask } from "#test/support/ask.ts"
import { startController } from "#test/support/fleet.ts"
import { floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import {
  app,
  appsPath,
  evil,
  forRepository,
  forTarget,
  refusalOf,
  refused,
  tenantsWorld,
  type World,
  whatIsNotTheirs,
} from "#test/support/tenant.ts"

/** What a tenant tries beyond its rights is refused or comes to nothing, and what belongs to others stays as it was. */

let world: World

beforeAll(installSources)
afterAll(removePolicies)
beforeEach(async () => {
  world = await tenantsWorld(floor(), await uniqueNamespace(), await uniqueNamespace())
  // What controllers make of a new workload, such as a ReplicaSet, must be there before anything is compared.
  const made = [world.mine, world.theirs].flatMap(namespace =>
    ["deployments", "statefulsets"].map(kind => `${appsPath(namespace, kind)}/web`),
  )
  for (const path of made)
    await until(`${path} to be seen`, async () => {
      const { status, metadata } = await floor().api.get(path)
      return status.observedGeneration === metadata.generation
    })
  await createSource(world.theirs, source("theirs"))
  await createSource(world.mine, source("mine"))
  await until("role and policy to be in force", async () => {
    const { mine, tenant } = world
    const path = `${sourcesPath(mine)}?dryRun=All`
    const allowed = await ask("POST", path, source("web"), { access: tenant })
    const refused = await ask("POST", path, source("web", forTarget({ kind: "statefulset" })), { access: tenant })
    return allowed.status === 201 && refused.status === 403
  })
})

test("what is not the tenant's is refused, and nothing has changed", async () => {
  const before = await whatIsNotTheirs(world)
  for (const [name, [refusal, attempt]] of Object.entries(refused)) {
    const answer = await attempt(world, { access: world.tenant })
    expect({ [name]: refusalOf(answer) }).toEqual({ [name]: refusal })
  }
  expect(await whatIsNotTheirs(world)).toEqual(before)
  const { items } = await floor().api.get(sourcesPath(world.mine))
  expect(items.map(({ metadata, spec }: Json) => [metadata.name, spec.imageSourceReplacements])).toEqual([
    ["mine", source("mine").spec.imageSourceReplacements],
  ])
})

describe("what is accepted comes to nothing beyond the namespace", () => {
  /** Pods as they would be created here and there. */
  const pulled = async (metadata: Json = {}) => {
    const of = async (namespace: string) =>
      imagesOf(await created(namespace, podOf([app], metadata), { dryRun: true })).app
    return [await of(world.mine), await of(world.theirs)]
  }

  test("a status that comes with the object", async () => {
    const { mine, tenant } = world
    const object = {
      ...source("web", forRepository(evil)),
      status: { targetsAvailable: [switched("app", { working: evil })] },
    }
    const { status, body } = await ask("POST", sourcesPath(mine), object, { access: tenant })
    expect([status, body.status]).toEqual([201, undefined])
    await writeStatus(mine, "mine", [])
    expect(await pulled()).toEqual([app.image, app.image])
  })

  test("a namespace that a client does not know to be no field", async () => {
    const { mine, theirs, tenant } = world
    const spec = forTarget({ kind: "pod" }, { name: "web", namespace: theirs })
    const { status, body } = await ask("POST", sourcesPath(mine), source("web", { ...spec, namespace: theirs }), {
      access: tenant,
    })
    expect(status).toBe(201)
    expect(JSON.stringify(body.spec)).not.toContain(theirs)
  })

  test("an incident of its own, with the labels and images of others", async () => {
    await writeStatus(world.mine, "mine", [switched("app")])
    expect(await pulled()).toEqual([`${working}:v1`, app.image])
  })

  test("labels, annotations and owners that speak of others", async () => {
    const { mine, theirs, tenant } = world
    const { metadata: owner } = await floor().api.get(`${appsPath(theirs, "deployments")}/web`)
    const before = await whatIsNotTheirs(world)
    const metadata = {
      name: "web",
      labels: { namespace: theirs, "kubernetes.io/metadata.name": theirs },
      annotations: { namespace: theirs },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: owner.uid }],
    }
    const { status } = await ask("POST", sourcesPath(mine), { ...source("web"), metadata }, { access: tenant })
    expect(status).toBe(201)
    await writeStatus(mine, "mine", [switched("app")])
    expect((await pulled())[1]).toBe(app.image)
    expect(await whatIsNotTheirs(world)).toEqual(before)
  })

  test("a role too wide: a status alone sends no pod where the spec does not", async () => {
    // As an account that may write any status.
    await writeStatus(world.mine, "mine", [switched("app", { working: evil })])
    expect(await pulled()).toEqual([app.image, app.image])
  })

  test("a decision that a pod brings along", async () => {
    const decision = JSON.stringify({
      from: app.image,
      to: `${evil}:v1`,
      by: "alternateimagesource/mine",
      was: { app: evil },
    })
    await writeStatus(world.mine, "mine", [])
    expect(await pulled({ annotations: { [decisionAnnotation]: decision } })).toEqual([app.image, app.image])
  })
})

/** As an administrator, so that what holds it back is not a missing right. */
describe("a controller that may do everything", () => {
  type Seen = { path: string; authorization: string | undefined }
  let seen: Seen[]
  let connections: number
  let host: string

  /** A registry of the tenant: `open/…` has every image, the rest asks for an account. */
  beforeEach(async () => {
    ;[seen, connections] = [[], 0]
    const server = createServer(({ url = "", headers }, response) => {
      seen.push({ path: url, authorization: headers.authorization })
      const isOpen = url.startsWith("/v2/open/")
      response
        .writeHead(isOpen ? 200 : 401, isOpen ? manifestHeaders : { "www-authenticate": 'Basic realm="tenant"' })
        .end()
    })
    server.on("connection", () => connections++)
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
  })
  const manifestHeaders = {
    "content-type": "application/vnd.oci.image.manifest.v1+json",
    "docker-content-digest": `sha256:${"0".repeat(64)}`,
    "content-length": "7",
  }

  const start = (...args: string[]) =>
    startController(floor().kubeconfig, "--no-leader-elect", "--kinds", "AlternateImageSource", ...args)
  const atOnce = { policy: { confirmSeconds: 0, cooldownSeconds: 0 } }
  const between = (repository: string) => ({ ...forRepository(repository), ...atOnce })

  /** A pod whose image cannot be pulled, as a kubelet would say. */
  async function failingPod(namespace: string, name: string, spec: Json = {}): Promise<string> {
    const { metadata } = podOf([app])
    const pod = { metadata: { name, labels: metadata.labels }, spec: podOf([app], {}, spec).spec }
    const path = podsPath(namespace, name)
    await floor().api.create(podsPath(namespace), pod)
    const waiting = {
      reason: "ImagePullBackOff",
      message: `Back-off pulling image "${app.image}": ErrImagePull: failed to pull and unpack image "${app.image}": failed to do request: dial tcp 192.0.2.1:443: connect: connection refused`,
    }
    const status = { ...app, imageID: "", ready: false, restartCount: 0, state: { waiting } }
    await floor().api.patch(`${path}/status`, { status: { phase: "Pending", containerStatuses: [status] } })
    return path
  }

  const judged = (namespace: string) =>
    until("the failure to be judged", async () => {
      const { status } = await floor().api.get(sourcesPath(namespace, "web"))
      const entry = status?.targetsAvailable.find(({ incident }: Json) => incident)
      return entry && !["Probing", "Confirming"].includes(entry.incident.reason)
    })

  const imageOf = async (path: string) => (await floor().api.get(path)).spec.containers[0].image
  const repaired = (path: string) =>
    until(`${path} to be repaired`, async () => {
      const image = await imageOf(path)
      return image !== app.image && image
    })

  test("repairs what fails in the namespace, and nothing that fails alike elsewhere, whatever the names of targets", async () => {
    const { mine, theirs, tenant } = world
    const paths = [`${theirs}/web`, `../${theirs}/web`, `../../${theirs}/pods/web`, `..%2f${theirs}%2fweb`]
    const targets = paths.map(name => ({ type: { kind: "pod" }, name }))
    const equivalentRepositories = [failing, `${host}/open/app`]
    const sneaky = source("sneaky", { imageSourceReplacements: [{ equivalentRepositories, targets }], ...atOnce })
    const honest = source("web", between(`${host}/open/app`))
    await floor().api.remove(sourcesPath(theirs, "theirs"))
    await floor().api.remove(sourcesPath(mine, "mine"))
    for (const object of [sneaky, honest]) await ask("POST", sourcesPath(mine), object, { access: tenant })
    await failingPod(theirs, "web")
    const before = await whatIsNotTheirs(world)
    start("--allow-registry", host)

    const own = await failingPod(mine, "web")
    expect(await repaired(own)).toBe(`${host}/open/app:v1`)
    const later = await failingPod(mine, "later")
    await repaired(later)
    expect(await whatIsNotTheirs(world)).toEqual(before)
  })

  test("goes on where a workload owns itself, and looks after it and the others", async () => {
    const { mine, theirs, tenant } = world
    const path = `${appsPath(mine, "deployments")}/web`
    const { metadata } = await floor().api.get(path)
    const own = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: metadata.uid, controller: true }
    const ownedByItself = { metadata: { ownerReferences: [own] } }
    expect((await ask("PATCH", path, ownedByItself, { access: tenant })).status).toBe(200)
    for (const [namespace, name] of [
      [mine, "mine"],
      [theirs, "theirs"],
    ] as const)
      await floor().api.patch(sourcesPath(namespace, name), { spec: between(`${host}/open/app`) })
    const pod = await failingPod(mine, "web")
    await floor().api.patch(pod, ownedByItself)
    start("--allow-registry", host)
    expect(await repaired(pod)).toBe(`${host}/open/app:v1`)
    expect(await repaired(await failingPod(theirs, "web"))).toBe(`${host}/open/app:v1`)
  })

  test("takes no Secret of another namespace or another pod, and none to another host", async () => {
    const { mine, theirs, tenant } = world
    await secretFor(theirs, "others", host, "others:password")
    await secretFor(mine, "unlisted", host, "unlisted:password")
    await secretFor(mine, "elsewhere", "registry.example.com", "elsewhere:password")
    await secretFor(mine, "own", host, "own:password")
    await floor().api.remove(sourcesPath(mine, "mine"))
    await ask("POST", sourcesPath(mine), source("web", between(`${host}/closed/app`)), { access: tenant })
    start("--allow-registry", host)

    const paths = [`../../${theirs}/secrets/others`, `..%2f..%2f${theirs}%2fsecrets%2fothers`, `${theirs}/others`]
    await failingPod(mine, "thief", { imagePullSecrets: paths.map(name => ({ name })) })
    await judged(mine)
    await floor().api.remove(podsPath(mine, "thief"))
    await failingPod(mine, "stranger", { imagePullSecrets: [{ name: "elsewhere" }] })
    await until("the registry to be asked", async () => seen.length > 0)
    await judged(mine)
    await floor().api.remove(podsPath(mine, "stranger"))
    expect(seen.filter(({ authorization }) => authorization)).toEqual([])
    await failingPod(mine, "owner", { imagePullSecrets: [{ name: "own" }] })
    await until("the account of the pod to be used", async () => seen.some(({ authorization }) => authorization))
    const sent = new Set(seen.flatMap(({ authorization }) => authorization ?? []))
    expect([...sent]).toEqual([`Basic ${btoa("own:password")}`])
  })

  test("asks no registry on an address that is not allowed", async () => {
    const { mine, tenant } = world
    const port = host.split(":")[1]
    const repositories = [
      `${host}/open/app`,
      `localhost:${port}/open/app`,
      "169.254.169.254/latest/meta-data",
      "10.96.0.1/api/v1",
    ]
    const imageSourceReplacements = [{ equivalentRepositories: [failing, ...repositories] }]
    await floor().api.remove(sourcesPath(mine, "mine"))
    const answer = await ask("POST", sourcesPath(mine), source("web", { imageSourceReplacements, ...atOnce }), {
      access: tenant,
    })
    expect(answer.status).toBe(201)
    start()
    await failingPod(mine, "web")
    await judged(mine)
    expect(connections).toBe(0)
  })

  async function secretFor(namespace: string, name: string, registry: string, account: string): Promise<void> {
    const config = JSON.stringify({ auths: { [registry]: { auth: btoa(account) } } })
    const type = "kubernetes.io/dockerconfigjson"
    const object = { metadata: { name }, type, stringData: { ".dockerconfigjson": config } }
    await floor().api.create(`/api/v1/namespaces/${namespace}/secrets`, object)
  }
})
