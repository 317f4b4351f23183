import { createHash } from "node:crypto"
import type { OutgoingHttpHeaders } from "node:http"
import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { serve } from "#egress/test-servers.ts"
import { KubeError } from "#runtime/client/errors.ts"
import type { Client } from "#runtime/client/index.ts"
import type { Reply } from "#runtime/client/test-server.ts"
import { systemClock } from "#runtime/clock.ts"
import { storedWorld } from "../test-store.ts"
import { run } from "./verify.ts"

const index = (...architectures: string[]) =>
  Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      manifests: architectures.map(architecture => ({ platform: { os: "linux", architecture } })),
    }),
  )
const digestOf = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`
const [both, one] = [index("amd64", "arm64"), index("amd64")]

/** A registry that has these images and nothing else; with a password, if one is given. */
const having =
  (images: Record<string, Buffer>, password?: string): Reply =>
  ({ url, headers }, response) => {
    const wanted = password && `Basic ${Buffer.from(`me:${password}`).toString("base64")}`
    if (wanted && headers.authorization !== wanted)
      return response.writeHead(401, { "www-authenticate": "Basic" }).end()
    const body = images[/^\/v2\/(.*)\/manifests\//.exec(url)?.[1] ?? ""]
    if (!body) return response.writeHead(404).end()
    const told: OutgoingHttpHeaders = {
      "content-type": "application/vnd.oci.image.index.v1+json",
      "docker-content-digest": digestOf(body),
      "content-length": body.length,
    }
    return response.writeHead(200, told).end(body)
  }

const gone = "127.0.0.1:1"
const allowRegistry = [gone]
/** On loopback, and allowed. */
async function start(reply: Reply): Promise<string> {
  const place = `127.0.0.1:${(await serve(reply)).port}`
  allowRegistry.push(place)
  return place
}

const workload = (name: string, image: string, spec: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: "shop" },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { ...spec, containers: [{ name: "app", image }] } },
  },
})
const source = (equivalentRepositories: string[], more: Json = {}): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlternateImageSource",
  metadata: { name: "demo", namespace: "shop" },
  spec: { imageSourceReplacements: [{ equivalentRepositories }], ...more },
})
const shop = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } }
const secret = (name: string, auths: Json): Json => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "shop" },
  type: "kubernetes.io/dockerconfigjson",
  data: { ".dockerconfigjson": Buffer.from(JSON.stringify({ auths })).toString("base64") },
})

const ask = async (objects: Json[], options: Json = {}, change = (client: Client) => client) => {
  const { world, said, client } = await storedWorld(systemClock, shop, ...objects)
  const asked = { ...world, connect: async () => change(client) }
  const answer = await run(
    { arguments: ["ais/demo"], options: { namespace: "shop", allowRegistry, ...options } },
    asked,
  )
  return { ...answer, said }
}
const results = (text: string) =>
  JSON.parse(text).images.flatMap((image: Json) => image.repositories.map((each: Json) => each.result))

test("every answer a repository can give has its word", async () => {
  const here = await start(having({ app: both }))
  const same = await start(having({ "mirror/app": both }))
  const missing = await start(having({}))
  const moved = await start(having({ app: index("amd64", "arm64", "s390x") }))
  const fewer = await start(having({ app: one }))
  const closed = await start(having({ app: both }, "secret"))
  const down = await start((_, response) => response.writeHead(503).end())
  const repositories = [
    `${here}/app`,
    `${same}/mirror/app`,
    `${missing}/app`,
    `${moved}/app`,
    `${fewer}/app`,
    `${closed}/app`,
    `${down}/app`,
    `${gone}/app`,
    "gone.example.com/app",
  ]
  const objects = [
    source(repositories, { policy: { disabledRepositories: ["gone.example.com/app"] } }),
    workload("web", `${here}/app:1`),
    workload("other", "unrelated.example.com/app:1"),
  ]
  const { text, exitCode, next } = await ask(objects)
  expect(exitCode).toBe(1)
  expect(next).toBe("6 of 9 cannot replace the others.")
  const cells = text
    .trim()
    .split("\n")
    .map(line => line.split(/ {3,}/))
  expect(cells[0]).toEqual(["IMAGE", "REPOSITORY", "RESULT", "DETAIL"])
  expect(cells.slice(1).map(([image]) => image)).toEqual(Array(9).fill(`${here}/app:1`))
  expect(cells.slice(1).map(([, , result]) => result)).toEqual([
    "same",
    "same",
    "missing",
    "differs",
    "platforms missing",
    "denied",
    "unreachable",
    "unreachable",
    "disabled",
  ])
  expect(cells[5]![3]).toContain("no linux/arm64; sha256:")
})

test("a registry on a private address is asked where a flag allows it, whatever the spec says", async () => {
  const open = await serve(having({ app: both }))
  const place = `127.0.0.1:${open.port}`
  const objects = [source([`${place}/app`, "10.0.0.1/app"]), workload("web", `${place}/app:1`)]
  const { text, exitCode } = await ask(objects, { output: "json", allowRegistry: [] })
  expect([results(text), exitCode, open.seen]).toEqual([["Unreachable", "Unreachable"], 1, []])
  expect(text).toContain(`--allow-registry ${place}`)
  const allowed = await ask(objects.slice(1).concat(source([`${place}/app`])), {
    output: "json",
    allowRegistry: [place],
  })
  expect(results(allowed.text)).toEqual(["Same"])
})

test("with the credentials of the workload and of its service account, and no others", async () => {
  const closed = await start(having({ app: both }, "right"))
  const open = await start(having({ app: both }))
  const objects = (password: string, spec: Json) => [
    source([`${open}/app`, `${closed}/app`]),
    secret("pull", { [closed]: { username: "me", password } }),
    secret("unlisted", { [closed]: { username: "me", password: "right" } }),
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "a", namespace: "shop" },
      imagePullSecrets: [{ name: "pull" }],
    },
    workload("web", `${open}/app:1`, spec),
  ]
  const listed = { imagePullSecrets: [{ name: "pull" }] }
  const found = async (password: string, spec: Json, change?: (client: Client) => Client) => {
    const { text, exitCode, said } = await ask(objects(password, spec), { output: "json" }, change)
    return { results: results(text), exitCode, said }
  }
  expect(await found("right", listed)).toMatchObject({ results: ["Same", "Same"], exitCode: 0 })
  expect(await found("right", { serviceAccountName: "a" })).toMatchObject({ results: ["Same", "Same"], exitCode: 0 })
  expect(await found("wrong", listed)).toMatchObject({ results: ["Same", "Denied"], exitCode: 1 })
  expect(await found("right", {})).toMatchObject({ results: ["Same", "Denied"], exitCode: 1 })

  const without = (client: Client): Client => ({
    ...client,
    get: (resource, name) =>
      resource.plural === "secrets"
        ? Promise.reject(new KubeError("Forbidden", "no", { status: 403 }))
        : client.get(resource, name),
  })
  expect(await found("right", listed, without)).toMatchObject({
    results: ["Same", "Denied"],
    said: ["You may not read Secret pull; the registry was asked without it."],
  })
})

test("the running digest counts, even if the repositories agree on another one", async () => {
  const [here, there] = [await start(having({ app: both })), await start(having({ app: both }))]
  const running = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "one", namespace: "shop" },
    spec: { containers: [{ name: "app", image: `${here}/app:1` }] },
    status: {
      containerStatuses: [
        { name: "app", image: `${here}/app:1`, imageID: `${here}/app@${digestOf(one)}`, ready: true, restartCount: 0 },
      ],
    },
  }
  const { text } = await ask([source([`${here}/app`, `${there}/app`]), running], { output: "json" })
  expect(JSON.parse(text)).toMatchObject({ images: [{ digest: digestOf(one), workloads: ["pod/one"] }] })
  expect(results(text)).toEqual(["Differs", "Differs"])
})

test("nothing in use is said, and what is not there is named", async () => {
  const { text, exitCode, said } = await ask([source(["a.example.com/app", "b.example.com/app"])])
  expect([text, exitCode, said]).toEqual([
    "",
    0,
    ["No workload of namespace shop has an image that ais/demo is about."],
  ])
  const { world } = await storedWorld(systemClock, shop, source(["a.example.com/app"]))
  const missing = run({ arguments: ["ais/dem"], options: { namespace: "shop" } }, world)
  await expect(missing).rejects.toThrow("no AlternateImageSource dem in namespace shop; did you mean ais/demo?")
  const wrong = run({ arguments: ["ais/demo"], options: { namespace: "shop", allowRegistry: ["http://"] } }, world)
  await expect(wrong).rejects.toThrow("--allow-registry: http:// is not a registry")
  await expect(run({ arguments: ["si/demo"], options: {} }, world)).rejects.toThrow("not of kind AlternateImageSource")
})
