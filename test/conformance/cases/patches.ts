import { type Json, topic } from "../harness/script.ts"
import { configMap, container, deployment, dicom, idlePod, service } from "./objects.ts"

/** Two containers, so that merging by key shows. */
const pair = (name: string) =>
  deployment(name, {
    "spec.paused": true,
    "spec.template.spec.containers": [
      container("registry.test/app:1", {
        env: [
          { name: "A", value: "1" },
          { name: "B", value: "2" },
        ],
        args: ["one", "two"],
      }),
      { name: "side", image: "registry.test/side:1" },
    ],
    "spec.template.spec.volumes": [{ name: "cache", emptyDir: {} }],
    "spec.template.spec.tolerations": [{ key: "a", operator: "Exists" }],
  })

const templateOf = (object: Json) => object.spec?.template?.spec ?? object

export const patches = topic("patches", "schema", {
  "json patch, each operation": async on => {
    await on.quietly.create("configmaps", configMap("a", { one: "1", two: "2" }))
    await on.patch("configmaps", "a", "json", [{ op: "add", path: "/data/three", value: "3" }])
    await on.patch("configmaps", "a", "json", [{ op: "remove", path: "/data/one" }])
    await on.patch("configmaps", "a", "json", [{ op: "replace", path: "/data/two", value: "II" }])
    await on.patch("configmaps", "a", "json", [{ op: "move", from: "/data/two", path: "/data/four" }])
    await on.patch("configmaps", "a", "json", [{ op: "copy", from: "/data/four", path: "/data/five" }])
    await on.patch("configmaps", "a", "json", [
      { op: "test", path: "/data/five", value: "II" },
      { op: "add", path: "/data/a~1b~0c", value: "x" },
    ])
  },
  "json patch that does not fit": async on => {
    await on.quietly.create("configmaps", configMap("a", { one: "1" }))
    await on.patch("configmaps", "a", "json", [{ op: "remove", path: "/data/none" }])
    await on.patch("configmaps", "a", "json", [{ op: "test", path: "/data/one", value: "2" }])
    await on.patch("configmaps", "a", "json", [{ op: "replace", path: "/data/none", value: "1" }])
    await on.patch("configmaps", "a", "json", [{ op: "add", path: "/nowhere/deep", value: "1" }])
    await on.patch("configmaps", "a", "json", [{ op: "dance", path: "/data" }])
    await on.patch("configmaps", "a", "json", { not: "an array" })
  },
  "json patch of lists": async on => {
    await on.quietly.create("deployments", pair("a"))
    const step = async (patch: Json) =>
      on.note(JSON.stringify(patch), templateOf(await on.quietly.patch("deployments", "a", "json", patch)).containers)
    await step([{ op: "add", path: "/spec/template/spec/containers/-", value: { name: "third", image: "x:1" } }])
    await step([{ op: "add", path: "/spec/template/spec/containers/0", value: { name: "first", image: "x:1" } }])
    await step([{ op: "remove", path: "/spec/template/spec/containers/1" }])
    await on.patch("deployments", "a", "json", [{ op: "remove", path: "/spec/template/spec/containers/9" }])
  },
  "merge patch": async on => {
    await on.quietly.create("configmaps", configMap("a", { one: "1", two: "2" }, { labels: { x: "y", z: "w" } }))
    await on.patch("configmaps", "a", "merge", {
      data: { one: null, three: "3" },
      metadata: { labels: { x: "changed" } },
    })
    await on.patch("configmaps", "a", "merge", { data: null })
    await on.patch("configmaps", "a", "merge", {})
  },
  "merge patch replaces lists": {
    withStatus: false,
    run: async on => {
      await on.quietly.create("deployments", pair("a"))
      await on.patch("deployments", "a", "merge", {
        spec: { template: { spec: { containers: [{ name: "only", image: "x:1" }] } } },
      })
    },
  },
  "merge patch of a custom resource": async on => {
    await on.quietly.create("dicoms", dicom("a"))
    await on.patch("dicoms", "a", "merge", { spec: { image: "registry.test/dicom:2", replicas: 3 } })
    await on.patch("dicoms", "a", "merge", { spec: { image: null } })
    await on.patch("dicoms", "a", "merge", { spec: { replicas: "many" } })
    await on.patch("dicoms", "a", "merge", { status: { observedGeneration: 5 } })
  },
  "a patch with a version is conditional": async on => {
    const made = await on.quietly.create("configmaps", configMap("a", { one: "1" }))
    const metadata = { resourceVersion: made.metadata.resourceVersion }
    await on.patch("configmaps", "a", "merge", { metadata, data: { one: "2" } })
    await on.patch("configmaps", "a", "merge", { metadata, data: { one: "3" } })
    await on.patch("configmaps", "a", "merge", {
      metadata: { uid: "11111111-2222-3333-4444-555555555555" },
      data: { one: "3" },
    })
    await on.patch("configmaps", "a", "merge", { metadata: { name: "b" } })
  },
  "a patch of what is not there": async on => {
    await on.patch("configmaps", "none", "merge", { data: {} })
    await on.patch("configmaps", "none", "json", [])
    await on.patch("configmaps", "none", "strategic", {})
  },
  "a patch that is not one": async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.send("PATCH", on.path("configmaps", "a"), {
      text: "{",
      headers: { "content-type": "application/merge-patch+json" },
    })
    await on.send("PATCH", on.path("configmaps", "a"), {
      text: "[]",
      headers: { "content-type": "application/merge-patch+json" },
    })
    await on.send("PATCH", on.path("configmaps", "a"), { text: "{}", headers: { "content-type": "application/json" } })
    await on.patch("configmaps", "a", "merge", { data: { one: 1 } })
    await on.patch("configmaps", "a", "strategic", { data: "x" })
  },
  "strategic merge by key": async on => {
    await on.quietly.create("deployments", pair("a"))
    const step = async (spec: Json) =>
      on.note(
        JSON.stringify(spec),
        templateOf(await on.quietly.patch("deployments", "a", "strategic", { spec: { template: { spec } } })),
      )
    await step({ containers: [{ name: "app", image: "registry.test/app:2" }] })
    await step({
      containers: [
        {
          name: "app",
          env: [
            { name: "B", value: "changed" },
            { name: "C", value: "3" },
          ],
        },
      ],
    })
    await step({ containers: [{ name: "app", args: ["three"] }] })
    await step({ containers: [{ name: "new", image: "x:1" }] })
    await step({ tolerations: [{ key: "b", operator: "Exists" }] })
    await step({ volumes: [{ name: "more", emptyDir: {} }] })
  },
  "strategic merge's directives": {
    withStatus: false,
    run: async on => {
      await on.quietly.create("deployments", pair("a"))
      const step = async (spec: Json) =>
        on.note(
          JSON.stringify(spec),
          templateOf(await on.quietly.patch("deployments", "a", "strategic", { spec: { template: { spec } } })),
        )
      await step({ containers: [{ name: "side", $patch: "delete" }] })
      await step({ containers: [{ name: "app", env: [{ $patch: "replace" }, { name: "X", value: "1" }] }] })
      await step({
        $setElementOrder: undefined,
        "$setElementOrder/containers": [{ name: "z" }, { name: "app" }],
        containers: [{ name: "z", image: "x:1" }],
      })
      await step({ volumes: [{ $patch: "delete", name: "cache" }] })
      await step({ $retainKeys: ["containers"], containers: [{ name: "app" }] })
      await on.patch("deployments", "a", "strategic", {
        spec: { template: { spec: { containers: [{ image: "no:name" }] } } },
      })
      await on.patch("deployments", "a", "strategic", { spec: { template: { $patch: "dance" } } })
    },
  },
  "strategic merge of a strategy": {
    withStatus: false,
    run: async on => {
      await on.quietly.create("deployments", pair("a"))
      await on.patch("deployments", "a", "strategic", { spec: { strategy: { type: "Recreate" } } })
      await on.patch("deployments", "a", "strategic", {
        spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } },
      })
    },
  },
  "strategic merge of ports and finalizers": async on => {
    await on.quietly.create(
      "services",
      service("a", {
        "spec.ports": [
          { name: "http", port: 80 },
          { name: "admin", port: 90 },
        ],
      }),
    )
    const { spec } = await on.quietly.patch("services", "a", "strategic", {
      spec: { ports: [{ port: 80, targetPort: 8080 }] },
    })
    on.note("ports", spec.ports)
    await on.quietly.create("configmaps", configMap("b", {}, { finalizers: ["example.com/a", "example.com/b"] }))
    const { metadata } = await on.quietly.patch("configmaps", "b", "strategic", {
      metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/a"], finalizers: ["example.com/c"] },
    })
    on.note("finalizers", metadata.finalizers)
    await on.quietly.patch("configmaps", "b", "merge", { metadata: { finalizers: null } })
  },
  "strategic merge of a custom resource": async on => {
    await on.quietly.create("dicoms", dicom("a"))
    await on.patch("dicoms", "a", "strategic", { spec: { image: "x" } })
  },
  "a patch of the status": async on => {
    await on.quietly.create("pods", idlePod("a"))
    await on.patch("pods/status", "a", "strategic", {
      status: { conditions: [{ type: "example.com/ready", status: "True" }] },
      spec: { nodeName: "not-taken" },
    })
    await on.patch("pods/status", "a", "strategic", {
      status: {
        conditions: [
          { type: "example.com/ready", status: "False", reason: "R" },
          { type: "Other", status: "True" },
        ],
      },
    })
  },
  "quantities, ports and durations keep their form": async on => {
    await on.create(
      "pods",
      idlePod("a", {
        "spec.containers.0.resources": {
          requests: { cpu: "0.5", memory: "1024Mi" },
          limits: { cpu: "1000m", memory: "1.5Gi" },
        },
      }),
    )
    await on.create(
      "services",
      service("a", {
        "spec.ports": [
          { name: "a", port: 80, targetPort: "http" },
          { name: "b", port: 81, targetPort: 8080 },
        ],
      }),
    )
  },
  "null and empty values": {
    withStatus: false,
    run: async on => {
      await on.create(
        "deployments",
        deployment("a", {
          "spec.paused": true,
          "spec.strategy": null,
          "spec.template.spec.containers.0.env": [],
          "spec.template.spec.nodeSelector": {},
          "metadata.labels": null,
          "metadata.annotations": {},
        }),
      )
      await on.create("configmaps", { metadata: { name: "b" }, data: null })
      await on.create("configmaps", { metadata: { name: "c", labels: {}, finalizers: [] }, data: {} })
    },
  },
})

const owned = (name: string, data: Json, metadata: Json = {}) => configMap(name, data, metadata)

export const applies = topic("apply", "schema", {
  "apply creates": async on => {
    await on.apply("configmaps", owned("a", { one: "1" }))
  },
  "apply again with the same changes nothing": async on => {
    await on.quietly.apply("configmaps", owned("a", { one: "1" }))
    await on.apply("configmaps", owned("a", { one: "1" }))
  },
  "apply takes back what it no longer says": async on => {
    await on.quietly.apply("configmaps", owned("a", { one: "1", two: "2" }, { labels: { x: "y" } }))
    await on.apply("configmaps", owned("a", { one: "1" }))
  },
  "two appliers share": async on => {
    await on.quietly.apply("configmaps", owned("a", { one: "1" }), { fieldManager: "first" })
    await on.apply("configmaps", owned("a", { two: "2" }), { fieldManager: "second" })
    await on.apply("configmaps", owned("a", { one: "1", two: "2" }), { fieldManager: "second" })
    await on.apply("configmaps", owned("a", {}), { fieldManager: "first" })
  },
  "two appliers fight": async on => {
    await on.quietly.apply("configmaps", owned("a", { one: "1", two: "2" }), { fieldManager: "first" })
    await on.apply("configmaps", owned("a", { one: "I" }), { fieldManager: "second" })
    await on.apply("configmaps", owned("a", { one: "I", two: "II" }), { fieldManager: "second" })
    await on.apply("configmaps", owned("a", { one: "I" }), { fieldManager: "second", force: true })
  },
  "an update takes fields over": async on => {
    await on.quietly.apply("configmaps", owned("a", { one: "1" }), { fieldManager: "first" })
    await on.patch("configmaps", "a", "merge", { data: { one: "I" } }, { fieldManager: "updater" })
    await on.apply("configmaps", owned("a", { one: "1" }), { fieldManager: "first" })
  },
  "apply merges lists by their keys": async on => {
    await on.quietly.apply("deployments", { ...pair("a") }, { fieldManager: "first" })
    await on.quietly.apply(
      "deployments",
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "a" },
        spec: {
          template: {
            spec: {
              containers: [
                { name: "more", image: "x:1" },
                { name: "app", env: [{ name: "C", value: "3" }] },
              ],
            },
          },
        },
      },
      { fieldManager: "second" },
    )
    on.note("containers", templateOf(await on.quietly.get("deployments", "a")).containers)
    await on.quietly.apply(
      "deployments",
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "a" },
        spec: { template: { spec: { containers: [{ name: "app", env: [{ name: "C", value: "3" }] }] } } },
      },
      { fieldManager: "second" },
    )
    on.note("containers after less", templateOf(await on.quietly.get("deployments", "a")).containers)
  },
  "conflicts in a list are named by their keys": async on => {
    await on.quietly.apply("pods", idlePod("a"), { fieldManager: "first" })
    await on.apply(
      "pods",
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "a" },
        spec: { containers: [{ name: "app", image: "registry.test/app:2" }] },
      },
      { fieldManager: "second" },
    )
    await on.apply(
      "pods",
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "a" },
        spec: { containers: [{ name: "app", image: "registry.test/app:2" }] },
      },
      { fieldManager: "second", force: true },
    )
  },
  "apply wants a manager, a kind and a name": async on => {
    const path = on.path("configmaps", "a")
    const headers = { "content-type": "application/apply-patch+yaml" }
    await on.send("PATCH", path, { body: owned("a", {}), headers })
    await on.send("PATCH", path, { body: { metadata: { name: "a" } }, headers, query: { fieldManager: "f" } })
    await on.send("PATCH", path, { body: owned("b", {}), headers, query: { fieldManager: "f" } })
    await on.send("PATCH", path, { body: { ...owned("a", {}), kind: "Secret" }, headers, query: { fieldManager: "f" } })
    await on.send("PATCH", path, { body: owned("a", {}, { managedFields: [] }), headers, query: { fieldManager: "f" } })
    await on.send("PATCH", path, {
      body: owned(
        "a",
        {},
        {
          managedFields: [{ manager: "x", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {} }],
        },
      ),
      headers,
      query: { fieldManager: "f" },
    })
    await on.send("PATCH", path, { text: "a: b: c", headers, query: { fieldManager: "f" } })
    await on.send("PATCH", path, {
      body: owned("a", {}),
      headers: { "content-type": "application/merge-patch+json" },
      query: { force: true },
    })
  },
  "apply takes YAML": async on => {
    await on.send("PATCH", on.path("configmaps", "a"), {
      text: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  one: '1'\n",
      headers: { "content-type": "application/apply-patch+yaml" },
      query: { fieldManager: "f" },
    })
  },
  "apply with a version or a uid": async on => {
    const made = await on.quietly.apply("configmaps", owned("a", { one: "1" }))
    await on.apply("configmaps", owned("a", { one: "2" }, { resourceVersion: made.metadata.resourceVersion }))
    await on.apply("configmaps", owned("a", { one: "3" }, { resourceVersion: made.metadata.resourceVersion }))
    await on.apply("configmaps", owned("a", { one: "3" }, { uid: "11111111-2222-3333-4444-555555555555" }))
    await on.apply("configmaps", owned("new", { one: "3" }, { uid: "11111111-2222-3333-4444-555555555555" }))
  },
  "dry-run of apply": async on => {
    await on.apply("configmaps", owned("a", { one: "1" }), { dryRun: "All" })
    await on.get("configmaps", "a")
  },
  "apply of a custom resource": async on => {
    await on.apply("dicoms", dicom("a"), { fieldManager: "aim" })
    await on.apply("dicoms", dicom("a", { "spec.image": undefined, "spec.replicas": 3 }), { fieldManager: "person" })
    await on.apply("dicoms", dicom("a", { "spec.image": "other" }), { fieldManager: "person" })
    await on.apply("dicoms", dicom("a", { "spec.image": undefined }), { fieldManager: "aim" })
  },
  "apply of a status, by type of condition": async on => {
    await on.quietly.create("dicoms", dicom("a"))
    const status = (type: string, value: string) => ({
      apiVersion: "services.example.com/v1alpha1",
      kind: "Dicom",
      metadata: { name: "a" },
      status: {
        conditions: [{ type, status: value, reason: "R", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" }],
      },
    })
    await on.apply("dicoms/status", status("UpToDate", "True"), { fieldManager: "first" })
    await on.apply("dicoms/status", status("Deployed", "True"), { fieldManager: "second" })
    await on.apply("dicoms/status", status("UpToDate", "False"), { fieldManager: "second" })
    await on.apply("dicoms/status", status("UpToDate", "False"), { fieldManager: "first" })
  },
  "apply of a scale": {
    withStatus: false,
    run: async on => {
      await on.quietly.apply("deployments", deployment("a", { "spec.paused": true }), { fieldManager: "first" })
      await on.send("PATCH", on.path("deployments/scale", "a"), {
        body: {
          apiVersion: "autoscaling/v1",
          kind: "Scale",
          metadata: { name: "a", namespace: on.namespace },
          spec: { replicas: 0 },
        },
        headers: { "content-type": "application/apply-patch+yaml" },
        query: { fieldManager: "scaler", force: true },
      })
    },
  },
  "an update by another manager is another entry": async on => {
    await on.quietly.create("configmaps", configMap("a", { one: "1" }), { fieldManager: "creator" })
    await on.patch("configmaps", "a", "merge", { data: { two: "2" } }, { fieldManager: "patcher" })
    await on.patch("configmaps", "a", "merge", { data: { one: null } }, { fieldManager: "patcher" })
    await on.patch("configmaps", "a", "merge", { metadata: { labels: { x: "y" } } }, { fieldManager: "labeller" })
    await on.patch("configmaps", "a", "merge", { metadata: { managedFields: [{}] } })
    await on.create("configmaps", configMap("b"), { fieldManager: "x".repeat(129) })
  },
  "managed fields of a pod": async on => {
    await on.create(
      "pods",
      idlePod("a", {
        "spec.containers.0.ports": [{ containerPort: 80, name: "http" }],
        "spec.containers.0.env": [{ name: "A", value: "1" }],
        "spec.tolerations": [{ key: "x", operator: "Exists" }],
      }),
    )
  },
  "managed fields of a service": async on => {
    await on.create("services", service("a", { "spec.ports": [{ name: "http", port: 80, targetPort: 8080 }] }))
  },
  "apply keeps atomic parts whole": async on => {
    await on.quietly.apply("pods", idlePod("a", { "spec.nodeSelector": { a: "1" } }), { fieldManager: "first" })
    await on.quietly.apply("services", service("a", { "spec.selector": { app: "a", x: "y" } }), {
      fieldManager: "first",
    })
    await on.apply(
      "services",
      { apiVersion: "v1", kind: "Service", metadata: { name: "a" }, spec: { selector: { app: "b" } } },
      { fieldManager: "second" },
    )
    await on.apply(
      "services",
      { apiVersion: "v1", kind: "Service", metadata: { name: "a" }, spec: { selector: { app: "b" } } },
      { fieldManager: "second", force: true },
    )
  },
  "apply of ownerReferences and finalizers": async on => {
    const owner = (name: string) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      name,
      uid: `11111111-2222-3333-4444-55555555555${name}`,
    })
    await on.quietly.create("secrets", { metadata: { name: "x" } })
    await on.apply(
      "secrets",
      { apiVersion: "v1", kind: "Secret", metadata: { name: "x", finalizers: ["example.com/a"] } },
      { fieldManager: "first" },
    )
    await on.apply(
      "secrets",
      { apiVersion: "v1", kind: "Secret", metadata: { name: "x", finalizers: ["example.com/b"] } },
      { fieldManager: "second" },
    )
    await on.apply("secrets", { apiVersion: "v1", kind: "Secret", metadata: { name: "x" } }, { fieldManager: "first" })
    on.note("an owner", owner("1").uid.length)
    await on.quietly.patch("secrets", "x", "merge", { metadata: { finalizers: null } })
  },
})
