import { type Json, topic } from "../harness/script.ts"
import { configMap, deployment, dicom, idlePod } from "./objects.ts"

const strategic = { "content-type": "application/strategic-merge-patch+json" }

export const verbs = topic("verbs", "registry", {
  "create answers with what is stored": async on => {
    await on.create("configmaps", configMap("a", { key: "value" }))
    await on.get("configmaps", "a")
  },
  "create takes a body without apiVersion and kind": async on => {
    await on.create("configmaps", { metadata: { name: "a" } })
  },
  "create with generateName": async on => {
    await on.create("configmaps", { metadata: { generateName: "made-" }, data: { a: "b" } })
  },
  "create of a name that exists": async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.create("configmaps", configMap("a"))
  },
  "create without a name": async on => {
    await on.create("configmaps", { metadata: {} })
  },
  "create with a resourceVersion": async on => {
    await on.create("configmaps", configMap("a", {}, { resourceVersion: "1" }))
  },
  "create ignores what the server sets": async on => {
    await on.create(
      "configmaps",
      configMap(
        "a",
        {},
        {
          uid: "abc",
          creationTimestamp: "2020-01-01T00:00:00Z",
          generation: 7,
          deletionTimestamp: "2020-01-01T00:00:00Z",
          selfLink: "/x",
        },
      ),
    )
  },
  "create in a namespace that does not exist": async on => {
    await on.send("POST", `/api/v1/namespaces/${on.id}-none/configmaps`, { body: configMap("a") })
  },
  "create with another namespace in the body": async on => {
    await on.create("configmaps", configMap("a", {}, { namespace: "other" }))
  },
  "create of another kind than the path's": async on => {
    await on.create("configmaps", { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } })
  },
  "create of another group than the path's": async on => {
    await on.create("deployments", { ...deployment("a"), apiVersion: "apps/v2" })
  },
  "create at an object's path": async on => {
    await on.send("POST", on.path("configmaps", "a"), { body: configMap("a") })
  },
  "get of what is not there": async on => {
    await on.get("configmaps", "none")
    await on.get("deployments", "none")
    await on.get("dicoms", "none")
  },
  "get in a namespace that does not exist": async on => {
    await on.send("GET", `/api/v1/namespaces/${on.id}-none/pods`)
    await on.send("GET", `/api/v1/namespaces/${on.id}-none/pods/a`)
  },
  "unknown paths": async on => {
    await on.send("GET", "/nowhere")
    await on.send("GET", "/api/v2")
    await on.send("GET", "/apis/nowhere/v1")
    await on.send("GET", "/apis/apps/v1/nowheres")
    await on.send("GET", `/apis/apps/v1/namespaces/${on.namespace}/nowheres/a`)
    await on.send("GET", `${on.path("configmaps", "a")}/nowhere`)
  },
  "verbs a path does not have": async on => {
    await on.send("PUT", on.path("configmaps"), { body: configMap("a") })
    await on.send("PATCH", on.path("configmaps"), { body: {} })
    await on.send("POST", on.path("namespaces", on.namespace), { body: {} })
    await on.send("DELETE", "/api/v1/namespaces")
  },
  "update replaces the whole object": async on => {
    const made = await on.quietly.create("configmaps", configMap("a", { one: "1", two: "2" }, { labels: { x: "y" } }))
    await on.replace("configmaps", { ...made, data: { one: "changed" } })
  },
  "update of an old version": async on => {
    const made = await on.quietly.create("configmaps", configMap("a", { one: "1" }))
    await on.quietly.replace("configmaps", { ...made, data: { one: "2" } })
    await on.replace("configmaps", { ...made, data: { one: "3" } })
  },
  "update without a version": async on => {
    await on.quietly.create("configmaps", configMap("a", { one: "1" }))
    await on.replace("configmaps", configMap("a", { one: "2" }))
  },
  "update of a custom resource without a version": async on => {
    await on.quietly.create("dicoms", dicom("a"))
    await on.replace("dicoms", dicom("a"))
  },
  "update of what is not there": async on => {
    await on.replace("configmaps", configMap("none"))
    await on.replace("dicoms", dicom("none", { "metadata.resourceVersion": "1" }))
  },
  "update that creates": async on => {
    await on.replace("leases", {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "made" },
      spec: { holderIdentity: "me", leaseDurationSeconds: 15 },
    })
  },
  "update with another uid": async on => {
    const made = await on.quietly.create("configmaps", configMap("a"))
    await on.replace("configmaps", {
      ...made,
      metadata: { ...made.metadata, uid: "11111111-2222-3333-4444-555555555555" },
    })
  },
  "update with another name": async on => {
    const made = await on.quietly.create("configmaps", configMap("a"))
    await on.send("PUT", on.path("configmaps", "a"), { body: { ...made, metadata: { ...made.metadata, name: "b" } } })
  },
  "update that changes nothing keeps the version": async on => {
    const made = await on.create("configmaps", configMap("a", { one: "1" }))
    await on.replace("configmaps", made)
  },
  "update of the main resource leaves the status": async on => {
    const made = await on.quietly.create("dicoms", dicom("a"))
    await on.replace("dicoms", { ...made, status: { observedGeneration: 3 } })
  },
  "update of the status leaves the rest": async on => {
    const made = await on.quietly.create("dicoms", dicom("a"))
    await on.replace("dicoms/status", {
      ...made,
      metadata: { ...made.metadata, labels: { not: "taken" }, annotations: { not: "taken" } },
      spec: { image: "not/taken" },
      status: { observedGeneration: 3 },
    })
  },
  "generation moves with the spec alone": {
    withStatus: false,
    run: async on => {
      const made = await on.quietly.create("deployments", deployment("a", { "spec.paused": true }))
      on.note("created", made.metadata.generation)
      await on.patch("deployments", "a", "merge", { metadata: { labels: { x: "y" } } })
      await on.patch("deployments", "a", "merge", { spec: { minReadySeconds: 5 } })
    },
  },
  "delete answers with a status": async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.remove("configmaps", "a")
    await on.remove("configmaps", "a")
  },
  "delete of a pod that runs nowhere": async on => {
    await on.quietly.create("pods", idlePod("a"))
    await on.remove("pods", "a")
    await on.get("pods", "a")
  },
  "delete with preconditions": async on => {
    const made = await on.quietly.create("configmaps", configMap("a"))
    await on.remove("configmaps", "a", { preconditions: { uid: "11111111-2222-3333-4444-555555555555" } })
    await on.remove("configmaps", "a", { preconditions: { resourceVersion: "1" } })
    await on.remove("configmaps", "a", {
      preconditions: { uid: made.metadata.uid, resourceVersion: made.metadata.resourceVersion },
    })
  },
  "delete with options of the wrong kind": async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.remove("configmaps", "a", { apiVersion: "v1", kind: "Nonsense" })
    await on.remove("configmaps", "a", { propagationPolicy: "Sideways" })
    await on.remove("configmaps", "a", { propagationPolicy: "Background", orphanDependents: true })
  },
  "delete of a collection": async on => {
    for (const name of ["a", "b", "c"])
      await on.quietly.create("configmaps", configMap(name, {}, { labels: { keep: name === "b" ? "yes" : "no" } }))
    await on.send("DELETE", on.path("configmaps"), { query: { labelSelector: "keep=no" } })
    const { items } = await on.quietly.list("configmaps")
    on.note(
      "left",
      items.map((item: { metadata: { name: string } }) => item.metadata.name),
    )
  },
  "dry-run of each write": async on => {
    await on.create("configmaps", configMap("a"), { dryRun: "All" })
    await on.get("configmaps", "a")
    const made = await on.quietly.create("configmaps", configMap("b", { one: "1" }))
    await on.replace("configmaps", { ...made, data: { one: "2" } }, { dryRun: "All" })
    await on.patch("configmaps", "b", "merge", { data: { one: "3" } }, { dryRun: "All" })
    await on.remove("configmaps", "b", { dryRun: ["All"] })
    await on.get("configmaps", "b")
    await on.create("configmaps", configMap("c"), { dryRun: "Some" })
  },
  "dry-run still refuses": async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.create("configmaps", configMap("a"), { dryRun: "All" })
    await on.create("configmaps", configMap("Bad_Name"), { dryRun: "All" })
  },
  "two that create the same": async on => {
    const answers = await Promise.all(
      [1, 2, 3].map(() =>
        on.quietly.send("POST", on.path("configmaps"), { body: configMap("a") }).then(
          ({ status }) => status,
          () => 409,
        ),
      ),
    )
    on.note("answers", answers.sort())
  },
  "the body may be YAML": async on => {
    await on.send("POST", on.path("configmaps"), {
      text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'y'}\n",
      headers: { "content-type": "application/yaml" },
    })
  },
  "a body that is not JSON": async on => {
    await on.send("POST", on.path("configmaps"), { text: "{not json" })
    await on.send("POST", on.path("configmaps"), { text: "" })
    await on.send("POST", on.path("configmaps"), { text: "[]" })
    await on.send("POST", on.path("configmaps"), { text: "{}", headers: { "content-type": "text/plain" } })
  },
  "an answer in a format that is not served": async on => {
    await on.send("GET", on.path("configmaps"), { headers: { accept: "text/html" } })
  },
  pretty: async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.get("configmaps", "a", { pretty: true })
  },
  "what there is at the root": async on => {
    await on.send("GET", "/healthz")
    await on.send("GET", "/readyz")
    await on.send("GET", "/livez")
    const { body } = await on.quietly.send("GET", "/version")
    on.note("version", { major: body.major, minor: body.minor, fields: Object.keys(body).sort() })
  },
  "scale is read and written": {
    withStatus: false,
    run: async on => {
      await on.quietly.create("deployments", deployment("a", { "spec.paused": true }))
      await on.untilObject(
        "deployments",
        "a",
        ({ status }) => status.observedGeneration === 1 && status.conditions?.length === 2,
      )
      const scale = await on.get("deployments/scale", "a")
      await on.replace("deployments/scale", { ...scale, spec: { replicas: 0 } })
      await on.patch("deployments/scale", "a", "merge", { spec: { replicas: -1 } })
      await on.replace("deployments/scale", {
        ...scale,
        metadata: { ...scale.metadata, resourceVersion: "1" },
        spec: { replicas: 0 },
      })
      await on.get("deployments/scale", "none")
    },
  },
  "a service account's token": async on => {
    await on.send("POST", `${on.path("serviceaccounts", "none")}/token`, {
      body: { spec: { expirationSeconds: 3600 } },
    })
    const { status, body } = await on.quietly.send("POST", `${on.path("serviceaccounts", "default")}/token`, {
      body: { spec: { expirationSeconds: 3600 } },
    })
    on.note("answer", {
      status,
      kind: body.kind,
      name: body.metadata.name,
      seconds: body.spec.expirationSeconds,
      fields: Object.keys(body.status).sort(),
    })
  },
  eviction: async on => {
    await on.quietly.create("pods", idlePod("a"))
    await on.create("pods/eviction", { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "a" } })
    await on.get("pods", "a")
    await on.create("pods/eviction", { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "none" } })
  },
  "a service account may only do what is allowed": async on => {
    await on.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { namespace: on.namespace, verb: "get", resource: "pods" } },
      },
    })
  },
})

export const errors = topic("errors", "registry", {
  "names that are not allowed": async on => {
    for (const name of ["Bad", "bad_name", "-bad", "bad-", "a..b", "x".repeat(254)])
      await on.create("configmaps", configMap(name))
    await on.create("services", { metadata: { name: "1-not-a-label" }, spec: { ports: [{ port: 80 }] } })
    await on.create("namespaces", { metadata: { name: "a.b" } })
    await on.create("configmaps", { metadata: { generateName: "Bad_" } })
  },
  "labels and annotations that are not allowed": async on => {
    // One at a time: a server names the faults of a map in the order of its own chance.
    const labels = [
      { "a b": "c" },
      { ok: "has space" },
      { ["x".repeat(64)]: "v" },
      { "UPPER.example.com/x": "v" },
      { "a/b/c": "v" },
    ]
    for (const each of labels) await on.create("configmaps", configMap("a", {}, { labels: each }))
    await on.create("configmaps", configMap("a", {}, { annotations: { "a b": "c" } }))
    await on.create("configmaps", configMap("a", {}, { annotations: { big: "x".repeat(300_000) } }))
  },
  "finalizers and owners that are not allowed": async on => {
    await on.create("configmaps", configMap("a", {}, { finalizers: ["nodomain"] }))
    await on.create("configmaps", configMap("b", {}, { finalizers: ["a b/c"] }))
    await on.create(
      "configmaps",
      configMap("c", {}, { ownerReferences: [{ apiVersion: "", kind: "", name: "", uid: "" }] }),
    )
    const owner = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "x",
      uid: "11111111-2222-3333-4444-555555555555",
      controller: true,
    }
    await on.create("configmaps", configMap("d", {}, { ownerReferences: [owner, { ...owner, name: "y" }] }))
  },
  "wrong types in the metadata": async on => {
    await on.create("configmaps", configMap("a", {}, { labels: { a: 1 } }))
    await on.create("configmaps", configMap("a", {}, { labels: [] }))
    await on.create("configmaps", configMap("a", {}, { finalizers: "x" }))
    await on.create("configmaps", { metadata: "a" })
    await on.create("configmaps", configMap("a", {}, { creationTimestamp: "yesterday" }))
  },
  "wrong types in the spec": async on => {
    await on.create("deployments", deployment("a", { "spec.replicas": "three" }))
    await on.create("deployments", deployment("a", { "spec.replicas": 1.5 }))
    await on.create("deployments", deployment("a", { "spec.template.spec.containers": {} }))
    await on.create("deployments", deployment("a", { "spec.template.spec.containers": ["app"] }))
    await on.create("configmaps", configMap("a", { number: 1 }))
    await on.create("pods", idlePod("a", { "spec.containers.0.resources": { limits: { cpu: "lots" } } }))
  },
  "unknown fields with each fieldValidation": {
    withStatus: false,
    run: async on => {
      for (const fieldValidation of ["Strict", "Warn", "Ignore", "Nonsense"])
        await on.create(
          "deployments",
          deployment(`a-${fieldValidation.toLowerCase()}`, {
            "spec.replcas": 3,
            "spec.template.spec.containers.0.imagge": "x",
          }),
          { fieldValidation },
        )
      await on.create("deployments", deployment("by-default", { "spec.replcas": 3 }))
    },
  },
  "unknown fields in a custom resource with each fieldValidation": async on => {
    for (const fieldValidation of ["Strict", "Warn", "Ignore"])
      await on.create(
        "dicoms",
        dicom(`a-${fieldValidation.toLowerCase()}`, { "spec.imagge": "x", "spec.placement": { nope: 1 }, extra: true }),
        { fieldValidation },
      )
  },
  "unknown fields in patches": async on => {
    await on.quietly.create("pods", idlePod("a"))
    for (const type of ["merge", "strategic"] as const) {
      await on.patch("pods", "a", type, { spec: { nope: 1 } }, { fieldValidation: "Strict" })
      await on.patch("pods", "a", type, { spec: { nope: 1 } }, { fieldValidation: "Warn" })
    }
    await on.patch("pods", "a", "json", [{ op: "add", path: "/spec/nope", value: 1 }], { fieldValidation: "Strict" })
    await on.apply("pods", idlePod("a", { "spec.nope": 1 }))
  },
  "the same key twice": async on => {
    const text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"a"},"data":{"k":"1","k":"2"}}'
    for (const fieldValidation of ["Strict", "Warn", "Ignore"])
      await on.send("POST", on.path("configmaps"), { text, query: { fieldValidation, dryRun: "All" } })
  },
  "a secret's and a configmap's keys": async on => {
    await on.create("configmaps", configMap("a", { "bad key": "x" }))
    await on.create("secrets", { metadata: { name: "a" }, data: { k: "not base64!" } })
    await on.create("secrets", { metadata: { name: "a" }, stringData: { k: "v" }, type: "kubernetes.io/tls" })
    await on.create("configmaps", { ...configMap("b", { both: "x" }), binaryData: { both: "eA==" } })
  },
  "what is immutable stays": async on => {
    const made = await on.quietly.create("configmaps", { ...configMap("a", { k: "1" }), immutable: true })
    await on.replace("configmaps", { ...made, data: { k: "2" } })
    await on.replace("configmaps", { ...made, immutable: false })
    await on.quietly.create("secrets", { metadata: { name: "s" }, type: "Opaque" })
    await on.patch("secrets", "s", "merge", { type: "other" })
  },
  "a pod's spec hardly changes": async on => {
    await on.quietly.create("pods", idlePod("a"))
    // After its first line the message goes on with a diff: see the next case.
    const refused = async (body: Json) => {
      const { status, body: said } = await on.unrecorded("PATCH", on.path("pods", "a"), { body, headers: strategic })
      const [cause] = said.details?.causes ?? [said]
      on.note("refused", {
        status,
        reason: said.reason,
        cause: cause.reason,
        field: cause.field,
        said: cause.message?.split("\n")[0],
      })
    }
    await refused({ spec: { containers: [{ name: "app", env: [{ name: "A", value: "1" }] }] } })
    await on.patch("pods", "a", "strategic", { spec: { containers: [{ name: "second", image: "x" }] } })
    await refused({ spec: { restartPolicy: "Never" } })
    await refused({ spec: { nodeName: "elsewhere" } })
    await on.patch("pods", "a", "strategic", { spec: { containers: [{ name: "app", image: "registry.test/app:2" }] } })
  },
  "how a refused change of a pod is shown": async on => {
    await on.quietly.create("pods", idlePod("a"))
    await on.patch("pods", "a", "merge", { spec: { restartPolicy: "Never" } })
  },
  "a workload's selector does not change": {
    withStatus: false,
    run: async on => {
      await on.quietly.create("deployments", deployment("a", { "spec.paused": true }))
      await on.patch("deployments", "a", "merge", {
        spec: { selector: { matchLabels: { app: "b" } }, template: { metadata: { labels: { app: "b" } } } },
      })
      await on.patch("deployments", "a", "merge", { spec: { template: { metadata: { labels: { app: "b" } } } } })
    },
  },
  "many causes at once": async on => {
    await on.create("pods", {
      metadata: { name: "a" },
      spec: {
        restartPolicy: "Sometimes",
        containers: [{ name: "Bad_Name" }, { name: "b", image: " x ", ports: [{ containerPort: 0 }] }],
      },
    })
  },
  "requests that are too large": async on => {
    await on.create("configmaps", configMap("a", { big: "x".repeat(1_100_000) }))
  },
  "metadata that may not change": async on => {
    const made = await on.quietly.create("configmaps", configMap("a"))
    await on.replace("configmaps", {
      ...made,
      metadata: { ...made.metadata, creationTimestamp: "2020-01-01T00:00:00Z" },
    })
    await on.replace("configmaps", {
      ...made,
      metadata: { ...made.metadata, deletionTimestamp: "2020-01-01T00:00:00Z" },
    })
    await on.replace("configmaps", { ...made, metadata: { ...made.metadata, generation: 9 } })
  },
})
