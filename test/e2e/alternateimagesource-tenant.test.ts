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
  policyPaths,
  removePolicies,
  source,
  sourcesPath,
  switched,
  working,
  writeStatus,
} from "#test/support/alternate-sources.ts"
import { type Answer, ask } from "#test/support/ask.ts"
import { startController } from "#test/support/fleet.ts"
import { type Access, floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"

/**
 * A tenant may manage AlternateImageSources and some workloads in a namespace. What a tenant tries beyond that is refused, or
 * comes to nothing, and what belongs to others is afterwards what it was before.
 */

const evil = "evil.example.com/team/app"
const app = { name: "app", image: `${failing}:v1` }

type World = { mine: string; theirs: string; tenant: Access }
let world: World

beforeAll(installSources)
afterAll(removePolicies)
beforeEach(async () => {
  const [mine, theirs] = [await uniqueNamespace(), await uniqueNamespace()]
  for (const namespace of [mine, theirs]) {
    await floor().api.create(`/api/v1/namespaces/${namespace}/secrets`, secret)
    for (const kind of ["deployments", "statefulsets"]) await floor().api.create(appsPath(namespace, kind), workload)
  }
  await createSource(theirs, source("theirs"))
  await createSource(mine, source("mine"))
  world = { mine, theirs, tenant: await tenantOf(mine) }
  await until("role and policy to be in force", async () => {
    const { mine, tenant } = world
    const path = `${sourcesPath(mine)}?dryRun=All`
    const allowed = await ask("POST", path, source("web"), { access: tenant })
    const refused = await ask("POST", path, source("web", forTarget({ kind: "statefulset" })), { access: tenant })
    return allowed.status === 201 && refused.status === 403
  })
})

const secret = { metadata: { name: "account" }, stringData: { password: "not for tenants" } }
const workload = {
  metadata: { name: "web" },
  spec: {
    replicas: 0,
    serviceName: "web",
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: podOf([app]).spec },
  },
}
const appsPath = (namespace: string, kind: string) => `/apis/apps/v1/namespaces/${namespace}/${kind}`
const rbac = "/apis/rbac.authorization.k8s.io/v1"

const forTarget = (type: Json, target: Json = { name: "web" }): Json => ({
  imageSourceReplacements: [{ equivalentRepositories: [failing, evil], targets: [{ type, ...target }] }],
})
const forRepository = (repository: string): Json => ({
  imageSourceReplacements: [{ equivalentRepositories: [failing, repository] }],
})

/** Like the role `edit`, with AlternateImageSources and without Secrets and StatefulSets. */
async function tenantOf(namespace: string): Promise<Access> {
  const { api, access } = floor()
  const verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
  const rules = [
    { apiGroups: ["autoimagemanager.io"], resources: ["alternateimagesources"], verbs },
    { apiGroups: ["apps"], resources: ["deployments"], verbs },
    { apiGroups: [""], resources: ["pods", "configmaps"], verbs },
  ]
  const metadata = { name: "tenant" }
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await api.create(accounts, { metadata })
  await api.create(`${rbac}/namespaces/${namespace}/roles`, { metadata, rules })
  await api.create(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "tenant" },
    subjects: [{ kind: "ServiceAccount", namespace, name: "tenant" }],
  })
  const { status } = await api.create(`${accounts}/tenant/token`, { spec: { expirationSeconds: 3600 } })
  return { ...access, token: status.token }
}

/** Everything that is not the tenant's to change, by version. */
async function whatIsNotTheirs({ mine, theirs }: World): Promise<Json> {
  const { api } = floor()
  const lists = [
    sourcesPath(theirs),
    podsPath(theirs),
    ...["deployments", "statefulsets", "replicasets"].map(kind => appsPath(theirs, kind)),
    appsPath(mine, "statefulsets"),
    ...[mine, theirs].flatMap(namespace => [
      `/api/v1/namespaces/${namespace}/secrets`,
      `${rbac}/namespaces/${namespace}/roles`,
      `${rbac}/namespaces/${namespace}/rolebindings`,
    ]),
  ]
  const versions: Json = {}
  for (const list of lists)
    for (const { metadata } of (await api.get(list)).items) versions[`${list}/${metadata.name}`] = versionOf(metadata)
  for (const path of policyPaths) versions[path] = versionOf((await api.get(path)).metadata)
  return versions
}

/** What moves with each change but those that the controllers of Kubernetes make to the status of what they look after. */
const versionOf = ({ uid, generation, resourceVersion, annotations }: Json) =>
  [uid, generation ?? resourceVersion, annotations?.[decisionAnnotation]].join(" ")

type Attempt = (world: World, as: { access: Access }) => Promise<Answer>
const strict = "?fieldValidation=Strict"

type Refusal = "rights" | "policy" | "schema" | "malformed"

/** What refuses it, and how the tenant tries. */
const refused: Record<string, [Refusal, Attempt]> = {
  "an AlternateImageSource in another namespace": [
    "rights",
    ({ theirs }, as) => ask("POST", sourcesPath(theirs), source("web"), as),
  ],
  "one that says it is in another namespace": [
    "malformed",
    ({ mine, theirs }, as) => {
      const object = source("web")
      return ask("POST", sourcesPath(mine), { ...object, metadata: { name: "web", namespace: theirs } }, as)
    },
  ],
  "a path out of the own namespace": [
    "rights",
    ({ mine, theirs }, as) => ask("POST", sourcesPath(`${mine}/../${theirs}`), source("web"), as),
  ],
  "an encoded path out of the own namespace": [
    "rights",
    ({ mine, theirs }, as) => ask("POST", sourcesPath(`${mine}%2f..%2f${theirs}`), source("web"), as),
  ],
  "changing what others have": [
    "rights",
    ({ theirs }, as) => ask("PATCH", sourcesPath(theirs, "theirs"), { spec: forRepository(evil) }, as),
  ],
  "deleting what others have": [
    "rights",
    ({ theirs }, as) => ask("DELETE", sourcesPath(theirs, "theirs"), undefined, as),
  ],
  "listing those of all namespaces": [
    "rights",
    (_, as) => ask("GET", "/apis/autoimagemanager.io/v1alpha1/alternateimagesources", undefined, as),
  ],
  "a pod in another namespace": ["rights", ({ theirs }, as) => ask("POST", podsPath(theirs), podOf([app]), as)],
  "a field for a namespace in a target": [
    "malformed",
    ({ mine, theirs }, as) =>
      ask(
        "POST",
        sourcesPath(mine) + strict,
        source("web", forTarget({ kind: "pod" }, { name: "web", namespace: theirs })),
        as,
      ),
  ],
  "a field for a Secret": [
    "malformed",
    ({ mine }, as) => ask("POST", sourcesPath(mine) + strict, source("web", { pullSecret: "account" }), as),
  ],
  "a kind that the tenant may not patch": [
    "policy",
    ({ mine }, as) =>
      ask("POST", sourcesPath(mine), source("web", forTarget({ group: "apps", kind: "StatefulSet" })), as),
  ],
  "the same without its group and in other letters": [
    "policy",
    ({ mine }, as) => ask("POST", sourcesPath(mine), source("web", forTarget({ kind: "sTATEFULsETS" })), as),
  ],
  "the same by labels": [
    "policy",
    ({ mine }, as) =>
      ask("POST", sourcesPath(mine), source("web", forTarget({ kind: "statefulset" }, { labelSelector: {} })), as),
  ],
  "the same among 63 that the tenant may patch": [
    "policy",
    ({ mine }, as) => {
      const targets = Array.from({ length: 64 }, (_, i) => ({
        type: { kind: i === 40 ? "statefulset" : "deployment" },
        name: `web-${i}`,
      }))
      const imageSourceReplacements = [{ equivalentRepositories: [failing, evil], targets }]
      return ask("POST", sourcesPath(mine), source("web", { imageSourceReplacements }), as)
    },
  ],
  "the same as a change afterwards": [
    "policy",
    ({ mine }, as) => ask("PATCH", sourcesPath(mine, "mine"), { spec: forTarget({ kind: "statefulset" }) }, as),
  ],
  "the same by server-side apply": [
    "policy",
    ({ mine }, as) =>
      ask(
        "PATCH",
        `${sourcesPath(mine, "mine")}?fieldManager=tenant&force=true`,
        source("mine", forTarget({ kind: "statefulset" })),
        {
          ...as,
          headers: { "content-type": "application/apply-patch+yaml" },
        },
      ),
  ],
  "every template of the namespace": [
    "policy",
    ({ mine }, as) => ask("POST", sourcesPath(mine), source("web", { policy: { apply: "Template" } }), as),
  ],
  "the status, to send pods elsewhere": [
    "rights",
    ({ mine }, as) =>
      ask("PATCH", `${sourcesPath(mine, "mine")}/status`, { status: { targetsAvailable: [switched("app")] } }, as),
  ],
  "a repository with an account in it": ["schema", ({ mine }, as) => create(mine, `user:password@${evil}`, as)],
  "a repository with a scheme": ["schema", ({ mine }, as) => create(mine, `http://${evil}`, as)],
  "a repository with a way up": ["schema", ({ mine }, as) => create(mine, `${failing}/../../other/app`, as)],
  "a repository with a query": ["schema", ({ mine }, as) => create(mine, `${evil}?x=`, as)],
  "a repository with a fragment": ["schema", ({ mine }, as) => create(mine, `${evil}#x`, as)],
  "a repository with an encoded slash": ["schema", ({ mine }, as) => create(mine, `${evil}%2f..`, as)],
  "a repository with a line break": ["schema", ({ mine }, as) => create(mine, `${evil}\nHost: x`, as)],
  "a repository with a tag of its own": ["schema", ({ mine }, as) => create(mine, `${evil}:v1`, as)],
  "a repository with a digest of its own": [
    "schema",
    ({ mine }, as) => create(mine, `${evil}@sha256:${"0".repeat(64)}`, as),
  ],
  "a Secret of the namespace that the tenant may not read": [
    "rights",
    ({ mine }, as) => ask("GET", `/api/v1/namespaces/${mine}/secrets/account`, undefined, as),
  ],
  "a Secret of another namespace": [
    "rights",
    ({ theirs }, as) => ask("GET", `/api/v1/namespaces/${theirs}/secrets/account`, undefined, as),
  ],
  "a token of another account": [
    "rights",
    ({ mine }, as) => ask("POST", `/api/v1/namespaces/${mine}/serviceaccounts/default/token`, { spec: {} }, as),
  ],
  "to impersonate another account": [
    "rights",
    ({ theirs }, as) =>
      ask("POST", sourcesPath(theirs), source("web"), { ...as, headers: { "impersonate-user": "system:admin" } }),
  ],
  "a grant for the controllers": [
    "rights",
    ({ mine }, as) => ask("POST", `${rbac}/namespaces/${mine}/rolebindings`, grant, as),
  ],
  "a policy less": ["rights", (_, as) => ask("DELETE", policyPaths[0]!, undefined, as)],
  "a binding less": ["rights", (_, as) => ask("DELETE", policyPaths[1]!, undefined, as)],
  "a binding that takes its parameters from elsewhere": [
    "rights",
    ({ theirs }, as) => ask("PATCH", policyPaths.at(-1)!, { spec: { paramRef: { namespace: theirs } } }, as),
  ],
}

function refusalOf({ status, body }: Answer): string {
  const { message } = body
  const isOurs = message?.includes("ValidatingAdmissionPolicy 'aim-alternateimagesource-author'")
  if (status === 403 && isOurs) return "policy" satisfies Refusal
  if (status === 403 && /forbidden: User "[^"]*" cannot /.test(message)) return "rights" satisfies Refusal
  if (status === 422 && message.includes("spec.imageSourceReplacements[0]")) return "schema" satisfies Refusal
  return status === 400 ? ("malformed" satisfies Refusal) : `${status}: ${message}`
}

const create = (namespace: string, repository: string, as: { access: Access }) =>
  ask("POST", sourcesPath(namespace), source("web", forRepository(repository)), as)
const grant = {
  metadata: { name: "grant" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "aim-target" },
  subjects: [{ kind: "ServiceAccount", namespace: "default", name: "default" }],
}

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

  test("an incident of the tenant's own, with the labels and images of others", async () => {
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
    // With an account that may write any status.
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
