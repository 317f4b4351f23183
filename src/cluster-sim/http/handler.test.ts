import { describe, expect, test } from "vitest"
import type { Json } from "../object.ts"
import { testCluster } from "../test-cluster.ts"

const maps = "/api/v1/namespaces/default/configmaps"
const pods = "/api/v1/namespaces/default/pods"
const sets = "/apis/apps/v1/namespaces/default/replicasets"
const zero = "00000000-0000-0000-0000-000000000000"
const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" }

const map = (name: string, more: Json = {}) => ({ metadata: { name, ...more } })
const pod = (name: string, labels = { app: "x" }) => ({
  metadata: { name, labels },
  spec: { containers: [{ name: "c", image: "i:1" }] },
})
const replicaSet = (name: string, replicas: number) => ({
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: pod("").spec },
  },
})

async function world() {
  const w = testCluster()
  await w.send("POST", maps, map("a"))
  return w
}

/** Each was first sent to kube-apiserver v1.36.3. */
describe("refusals in the server's words", () => {
  type Sent = Parameters<ReturnType<typeof testCluster>["send"]>
  const cases: Record<string, { send: Sent; code: number; message: string; reason?: string }> = {
    "a map that is too large": {
      send: ["POST", maps, { ...map("b"), data: { big: "x".repeat(1_100_000) } }],
      code: 422,
      reason: "Invalid",
      message: 'ConfigMap "b" is invalid: []: Too long: may not be more than 1048576 bytes',
    },
    "a name that is taken": {
      send: ["POST", maps, map("a")],
      code: 409,
      reason: "AlreadyExists",
      message: 'configmaps "a" already exists',
    },
    "a namespace that is not there": {
      send: ["POST", "/api/v1/namespaces/no/configmaps", map("a")],
      code: 404,
      reason: "NotFound",
      message: 'namespaces "no" not found',
    },
    "a resourceVersion on something new": {
      send: ["POST", maps, map("b", { resourceVersion: "1" })],
      code: 500,
      message: "resourceVersion should not be set on objects to be created",
    },
    "another namespace than that of the path": {
      send: ["POST", maps, map("b", { namespace: "other" })],
      code: 400,
      reason: "BadRequest",
      message: "the namespace of the provided object does not match the namespace sent on the request",
    },
    "another name than that of the path": {
      send: ["PUT", `${maps}/a`, map("b")],
      code: 400,
      reason: "BadRequest",
      message: "the name of the object (b) does not match the name on the URL (a)",
    },
    "no name": {
      send: ["PUT", `${maps}/a`, map("")],
      code: 400,
      reason: "BadRequest",
      message: "the name of the object (a based on URL) was undeterminable: name must be provided",
    },
    "an update of what is not there": {
      send: ["PUT", `${maps}/b`, map("b")],
      code: 404,
      reason: "NotFound",
      message: 'configmaps "b" not found',
    },
    "an unknown dry run": {
      send: ["POST", `${maps}?dryRun=Some`, map("b")],
      code: 422,
      reason: "Invalid",
      message: 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    },
    "an apply without a field manager": {
      send: ["PATCH", `${maps}/a`, map("a"), { "content-type": "application/apply-patch+yaml" }],
      code: 422,
      reason: "Invalid",
      message: 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    },
    "force in a request that is no apply": {
      send: ["PATCH", `${maps}/a?force=true`, {}],
      code: 422,
      reason: "Invalid",
      message: 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    },
    "a patch of an unknown kind": {
      send: ["PATCH", `${maps}/a`, {}, { "content-type": "application/x" }],
      code: 415,
      reason: "UnsupportedMediaType",
      message: "415: Unsupported Media Type",
    },
    "an unknown method": {
      send: ["POST", `${maps}/a`, map("a")],
      code: 405,
      reason: "MethodNotAllowed",
      message: "the server does not allow this method on the requested resource",
    },
    "an unknown form": {
      send: ["GET", `${maps}/a`, undefined, { accept: "text/html" }],
      code: 406,
      reason: "NotAcceptable",
      message:
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    },
    "an unknown resource": {
      send: ["GET", "/api/v1/nothings"],
      code: 404,
      reason: "NotFound",
      message: "the server could not find the requested resource",
    },
    "a uid that is another": {
      send: ["DELETE", `${maps}/a`, { preconditions: { resourceVersion: "1" } }],
      code: 409,
      reason: "Conflict",
      message:
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (N). The object might have been modified',
    },
    "a namespace that stays": {
      send: ["DELETE", "/api/v1/namespaces/default"],
      code: 403,
      reason: "Forbidden",
      message: 'namespaces "default" is forbidden: this namespace may not be deleted',
    },
    "a number that is none": {
      send: ["GET", `${maps}?limit=x`],
      code: 400,
      reason: "BadRequest",
      message: 'strconv.ParseInt: parsing "x": invalid syntax',
    },
    "a revision in the future": {
      send: ["GET", `${maps}?resourceVersion=99`],
      code: 504,
      reason: "Timeout",
      message: "Timeout: Too large resource version: 99, current: N",
    },
    "a match of nothing": {
      send: ["GET", `${maps}?resourceVersionMatch=Exact`],
      code: 422,
      reason: "Invalid",
      message:
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    },
    "a scale below nothing": {
      send: ["PATCH", `${sets}/r/scale`, { spec: { replicas: -1 } }],
      code: 422,
      reason: "Invalid",
      message: 'Scale.autoscaling "r" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    },
    "a container that is not there": {
      send: ["GET", `${pods}/p/log?container=z`],
      code: 400,
      reason: "BadRequest",
      message: "container z is not valid for pod p",
    },
  }
  for (const [name, { send, code, reason, message }] of Object.entries(cases))
    test(name, async () => {
      const w = await world()
      const created = w.cluster.store.revision
      await w.send("POST", pods, pod("p"))
      await w.send("POST", sets, replicaSet("r", 1))
      const before = w.cluster.store.revision
      const answer = await w.send(...send)
      const expected = message.replace("current: N", `current: ${before}`).replace("(N)", `(${created})`)
      expect({ status: answer.status, ...answer.body }).toMatchObject({
        kind: "Status",
        code,
        message: expected,
        ...(reason && { reason }),
      })
      expect(answer.status).toBe(code)
      expect(w.cluster.store.revision).toBe(before)
    })

  test("an unknown path is not answered with a Status", async () => {
    const { send } = await world()
    expect(await send("GET", "/apis/none.example.com/v1/things")).toMatchObject({
      status: 404,
      body: "404 page not found\n",
    })
  })

  test("an update lists its causes as often as the server validates", async () => {
    const { send } = await world()
    const { body } = await send("PATCH", `${maps}/a`, { metadata: { uid: zero } })
    expect(body.details.causes).toEqual(
      Array(2).fill({
        reason: "FieldValueInvalid",
        field: "metadata.uid",
        message: `Invalid value: "${zero}": field is immutable`,
      }),
    )
    expect(body.message).toBe(`ConfigMap "a" is invalid: metadata.uid: Invalid value: "${zero}": field is immutable`)
  })

  test("a PUT for another uid is a conflict, with the server's long message", async () => {
    const { send } = await world()
    const { body } = await send("PUT", `${maps}/a`, map("a", { uid: zero }))
    expect(body.message).toMatch(
      /^Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: \/registry\/configmaps\/default\/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 0/,
    )
  })
})

describe("forms", () => {
  test("a table, as kubectl prints it", async () => {
    const { send } = await world()
    const { body } = await send("GET", maps, undefined, table)
    expect(body).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1" })
    expect(body.columnDefinitions.map((column: Json) => column.name)).toEqual(["Name", "Data", "Age"])
    expect(body.rows).toMatchObject([
      { cells: ["a", 0, "0s"], object: { kind: "PartialObjectMetadata", metadata: { name: "a" } } },
    ])
  })

  test("items of a list have no apiVersion and kind; an object does", async () => {
    const { send } = await world()
    const list = await send("GET", maps)
    expect(Object.keys(list.body.items[0])).toEqual(["metadata"])
    expect((await send("GET", `${maps}/a`)).body).toMatchObject({ kind: "ConfigMap", apiVersion: "v1" })
  })

  test("a long list is the same list", async () => {
    const { send } = await world()
    for (let index = 0; index < 1200; index++) await send("POST", maps, map(`m-${index}`))
    const { body } = await send("GET", maps)
    expect(new Set(body.items.map((item: Json) => item.metadata.name)).size).toBe(1201)
  })

  test("unknown fields are reported in a header", async () => {
    const { send } = await world()
    const { status, headers } = await send("POST", maps, { ...map("b"), foo: 1 })
    expect([status, headers.warning]).toEqual([201, '299 - "unknown field \\"foo\\""'])
  })
})

describe("subresources", () => {
  test("a pod is bound once", async () => {
    const { send } = await world()
    await send("POST", pods, pod("p"))
    const bind = (name: string) =>
      send("POST", `${pods}/p/binding`, { metadata: { name: "p" }, target: { kind: "Node", name } })
    expect(await bind("n1")).toMatchObject({ status: 201, body: { status: "Success" } })
    expect((await bind("n2")).body.message).toBe(
      'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )
    const { body } = await send("GET", `${pods}/p`)
    expect(body.spec.nodeName).toBe("n1")
    expect(body.status.conditions).toMatchObject([{ type: "PodScheduled", status: "True" }])
  })

  test("an eviction spends the budget, and is refused when it is spent", async () => {
    const { send, cluster } = await world()
    const budgets = cluster.storage.kind("policy/v1", "PodDisruptionBudget")
    if (!budgets) throw new Error("no budgets")
    for (const name of ["p", "q"]) {
      await send("POST", pods, pod(name))
      const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] }
      await send("PATCH", `${pods}/${name}/status`, { status })
    }
    const budget = cluster.storage.create(budgets, {
      metadata: { name: "b", namespace: "default" },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "x" } } },
    })
    cluster.storage.update(
      budgets,
      {
        ...budget,
        status: {
          ...budget.status,
          disruptionsAllowed: 1,
          currentHealthy: 1,
          desiredHealthy: 1,
          expectedPods: 2,
          observedGeneration: 1,
        },
      },
      { subresource: "status" },
    )
    const evict = (name: string, query = "") =>
      send("POST", `${pods}/${name}/eviction${query}`, {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name },
      })
    const state = async () => [await send("GET", `${pods}/p`), cluster.storage.get(budgets, budget.metadata)]
    const before = await state()
    expect((await evict("p", "?dryRun=All")).status).toBe(201)
    expect(await state()).toEqual(before)
    expect((await evict("p")).status).toBe(201)
    expect((await evict("q", "?dryRun=All")).status).toBe(429)
    const refused = await evict("q")
    expect(refused).toMatchObject({
      status: 429,
      body: { reason: "TooManyRequests", message: "Cannot evict pod as it would violate the pod's disruption budget." },
    })
    expect(refused.body.details.causes[0].message).toBe(
      "The disruption budget b needs 1 healthy pods and has 1 currently",
    )
  })

  test("a scale is read and written where the kind has it", async () => {
    const { send } = await world()
    await send("POST", sets, replicaSet("r", 1))
    expect((await send("PATCH", `${sets}/r/scale`, { spec: { replicas: 3 } })).body).toMatchObject({
      kind: "Scale",
      spec: { replicas: 3 },
      status: { selector: "app=r" },
    })
    expect((await send("GET", `${sets}/r`)).body).toMatchObject({ spec: { replicas: 3 }, metadata: { generation: 2 } })
  })

  test("subresources that need a real container are refused with that reason", async () => {
    const { send } = await world()
    await send("POST", pods, pod("p"))
    expect((await send("POST", `${pods}/p/exec?command=ls`)).body.message).toMatch(
      /^cluster-sim: exec needs a real container/,
    )
    expect((await send("GET", `${pods}/p/log`)).body).toMatch(/is simulated; it writes no logs/)
  })
})

describe("deleting", () => {
  test("a pod on a node waits for its grace period, which is only ever shortened", async () => {
    const { send } = await world()
    await send("POST", pods, pod("p"))
    await send("POST", `${pods}/p/binding`, { target: { name: "n1" } })
    const metadata = async (query: string) => {
      const {
        deletionGracePeriodSeconds: seconds,
        deletionTimestamp: at,
        generation,
      } = (await send("DELETE", `${pods}/p${query}`)).body.metadata
      return { seconds, at, generation }
    }
    expect(await metadata("")).toEqual({ seconds: 30, at: "2026-01-01T00:00:30Z", generation: 2 })
    expect(await metadata("?gracePeriodSeconds=60")).toEqual({ seconds: 30, at: "2026-01-01T00:00:30Z", generation: 2 })
    expect(await metadata("?gracePeriodSeconds=5")).toEqual({ seconds: 5, at: "2026-01-01T00:00:05Z", generation: 2 })
    await metadata("?gracePeriodSeconds=0")
    expect((await send("GET", `${pods}/p`)).status).toBe(404)
  })

  test("a pod on no node is gone at once", async () => {
    const { send } = await world()
    await send("POST", pods, pod("p"))
    expect((await send("DELETE", `${pods}/p`)).body.kind).toBe("Pod")
    expect((await send("GET", `${pods}/p`)).status).toBe(404)
  })

  test("the propagation policy becomes a finalizer for the garbage collector", async () => {
    const { send } = await world()
    const jobs = "/apis/batch/v1/namespaces/default/jobs"
    const finalizers = async (path: string) => (await send("DELETE", path)).body.metadata.finalizers
    for (const name of ["o", "f", "b"]) await send("POST", sets, replicaSet(name, 0))
    expect(await finalizers(`${sets}/o?propagationPolicy=Orphan`)).toEqual(["orphan"])
    expect(await finalizers(`${sets}/f?propagationPolicy=Foreground`)).toEqual(["foregroundDeletion"])
    expect((await send("DELETE", `${sets}/b`)).body).toMatchObject({
      kind: "Status",
      status: "Success",
      details: { name: "b", group: "apps", kind: "replicasets" },
    })
    await send("POST", jobs, {
      metadata: { name: "j" },
      spec: { template: { spec: { ...pod("").spec, restartPolicy: "Never" } } },
    })
    expect(await finalizers(`${jobs}/j`)).toEqual(["orphan"])
  })

  test("a dry run changes nothing", async () => {
    const { send, cluster } = await world()
    const before = cluster.store.revision
    await send("DELETE", `${maps}/a?dryRun=All`)
    await send("PATCH", `${maps}/a?dryRun=All`, { data: { x: "1" } })
    expect((await send("POST", `${maps}?dryRun=All`, map("b"))).body.metadata.resourceVersion).toBeUndefined()
    expect(cluster.store.revision).toBe(before)
  })

  test("a deletecollection deletes what its selectors match", async () => {
    const { send } = await world()
    await send("POST", maps, map("b", { labels: { k: "v" } }))
    const { body } = await send("DELETE", `${maps}?labelSelector=k=v`)
    expect([body.kind, body.items.length]).toEqual(["ConfigMapList", 1])
    expect((await send("GET", maps)).body.items.map((item: Json) => item.metadata.name)).toEqual(["a"])
  })

  test("a namespace is gone when its last finalizer is", async () => {
    const { send, cluster } = await world()
    await send("POST", "/api/v1/namespaces", { metadata: { name: "team" } })
    expect((await send("DELETE", "/api/v1/namespaces/team")).body).toMatchObject({
      status: { phase: "Terminating" },
      spec: { finalizers: ["kubernetes"] },
    })
    const kind = cluster.storage.kind("v1", "Namespace")
    if (!kind) throw new Error("no namespaces")
    const team = cluster.storage.get(kind, { name: "team" })
    cluster.storage.update(kind, { ...team, spec: { finalizers: [] } })
    expect(cluster.storage.get(kind, { name: "team" }).spec.finalizers).toEqual(["kubernetes"])
    cluster.storage.update(kind, { ...team, spec: { finalizers: [] } }, { subresource: "finalize" })
    expect(cluster.storage.find(kind, { name: "team" })).toBeUndefined()
  })
})

describe("discovery", () => {
  test("what is served, in one answer and in parts", async () => {
    const { send } = await world()
    const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    const { body, headers } = await send("GET", "/apis", undefined, { accept })
    expect(headers["content-type"]).toBe(accept)
    const apps = body.items.find((group: Json) => group.metadata.name === "apps")
    const deployments = apps.versions[0].resources.find((each: Json) => each.resource === "deployments")
    expect(deployments).toMatchObject({
      shortNames: ["deploy"],
      scope: "Namespaced",
      responseKind: { kind: "Deployment" },
    })
    expect(deployments.subresources.map((each: Json) => each.subresource)).toEqual(["scale", "status"])
    const parts = await send("GET", "/apis/apps/v1")
    expect(parts.body.resources.map((each: Json) => each.name)).toContain("deployments/scale")
  })
})
