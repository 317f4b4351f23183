import { type Json, type Script, topic } from "../harness/script.ts"
import { configMap, deployment } from "./objects.ts"

const ownerOf = (object: Json, more: Json = {}) => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  name: object.metadata.name,
  uid: object.metadata.uid,
  ...more,
})

const gone = (object: Json) => object === undefined

/**
 * The collector must know a child before its owner goes. It takes what it watches of a kind in order: when it has removed
 * an object whose owner never was, it knows all that came before it.
 */
export async function collectorKnows(on: Script, kind: "secrets" | "replicasets"): Promise<void> {
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "none", uid: "11111111-2222-3333-4444-555555555555" }
  const name = `${on.id}-marker`
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "registry.test/app:1" }] } }
  await on.quietly.create(kind, {
    metadata: { name, ownerReferences: [owner] },
    ...(kind === "replicasets" && { spec: { replicas: 0, selector: { matchLabels: labels }, template } }),
  })
  await on.untilObject(kind, name, gone)
}

/** A parent and a child that it owns, both plain. */
async function family(on: Script, more: Json = {}) {
  const parent = await on.quietly.create("configmaps", configMap("parent"))
  await on.quietly.create("secrets", { metadata: { name: "child", ownerReferences: [ownerOf(parent, more)] } })
  await collectorKnows(on, "secrets")
  return parent
}

export const garbage = topic(
  "garbage",
  "controllers",
  {
    "background: the owner goes first": async on => {
      await family(on)
      await on.remove("configmaps", "parent", { propagationPolicy: "Background" })
      await on.get("configmaps", "parent")
      await on.untilObject("secrets", "child", gone)
      await on.get("secrets", "child")
    },
    "background is what happens by default": async on => {
      await family(on)
      await on.remove("configmaps", "parent")
      await on.untilObject("secrets", "child", gone)
    },
    "orphan: the child loses its owner": async on => {
      await family(on)
      await on.remove("configmaps", "parent", { propagationPolicy: "Orphan" })
      await on.untilObject("configmaps", "parent", gone)
      await on.pause(500)
      await on.get("secrets", "child")
    },
    "foreground: the child goes first": async on => {
      await family(on, { blockOwnerDeletion: true })
      const watch = await on.watch("configmaps", { fieldSelector: "metadata.name=parent" })
      await on.remove("configmaps", "parent", { propagationPolicy: "Foreground" })
      await on.untilObject("configmaps", "parent", gone)
      await on.get("secrets", "child")
      await watch.next(3)
    },
    "foreground waits for a child that is held": async on => {
      await family(on, { blockOwnerDeletion: true })
      await on.quietly.patch("secrets", "child", "merge", { metadata: { finalizers: ["example.com/hold"] } })
      await on.quietly.remove("configmaps", "parent", { propagationPolicy: "Foreground" })
      const held = await on.untilObject("secrets", "child", object => object?.metadata.deletionTimestamp)
      on.note("child", held.metadata.finalizers)
      const { metadata } = await on.quietly.get("configmaps", "parent")
      on.note("parent", metadata.finalizers)
      await on.quietly.patch("secrets", "child", "merge", { metadata: { finalizers: null } })
      await on.untilObject("configmaps", "parent", gone)
    },
    "a child that does not block": async on => {
      await family(on)
      await on.quietly.patch("secrets", "child", "merge", { metadata: { finalizers: ["example.com/hold"] } })
      await on.quietly.remove("configmaps", "parent", { propagationPolicy: "Foreground" })
      await on.untilObject("configmaps", "parent", gone)
      const held = await on.untilObject("secrets", "child", object => object?.metadata.deletionTimestamp)
      on.note("child", held.metadata.finalizers)
      await on.quietly.patch("secrets", "child", "merge", { metadata: { finalizers: null } })
    },
    "an owner that never was": async on => {
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: "none", uid: "11111111-2222-3333-4444-555555555555" }
      await on.quietly.create("secrets", { metadata: { name: "child", ownerReferences: [owner] } })
      await on.untilObject("secrets", "child", gone)
    },
    "an owner of the same name and another uid": async on => {
      const parent = await on.quietly.create("configmaps", configMap("parent"))
      await on.quietly.create("secrets", {
        metadata: {
          name: "child",
          ownerReferences: [ownerOf(parent, { uid: "11111111-2222-3333-4444-555555555555" })],
        },
      })
      await on.untilObject("secrets", "child", gone)
    },
    "two owners: the child stays with the other": async on => {
      const one = await on.quietly.create("configmaps", configMap("one"))
      const two = await on.quietly.create("configmaps", configMap("two"))
      await on.quietly.create("secrets", { metadata: { name: "child", ownerReferences: [ownerOf(one), ownerOf(two)] } })
      await collectorKnows(on, "secrets")
      await on.quietly.remove("configmaps", "one")
      const left = await on.untilObject("secrets", "child", object => object?.metadata.ownerReferences.length === 1)
      on.note("owner", left.metadata.ownerReferences[0].name)
    },
    "three generations": async on => {
      const first = await on.quietly.create("configmaps", configMap("first"))
      const second = await on.quietly.create(
        "configmaps",
        configMap("second", {}, { ownerReferences: [ownerOf(first)] }),
      )
      await on.quietly.create("secrets", { metadata: { name: "third", ownerReferences: [ownerOf(second)] } })
      await collectorKnows(on, "secrets")
      await on.quietly.remove("configmaps", "first")
      await on.untilObject("secrets", "third", gone)
      await on.get("configmaps", "second")
    },
    "a deployment takes its replica sets along": async on => {
      await on.quietly.create("deployments", deployment("a"))
      await on.until("its replica set is there", async () => (await on.quietly.list("replicasets")).items[0])
      await on.quietly.remove("deployments", "a")
      await on.until("it is gone", async () => (await on.quietly.list("replicasets")).items.length === 0)
    },
    "a deployment leaves its replica sets": async on => {
      await on.quietly.create("deployments", deployment("a"))
      await on.until("its replica set is there", async () => (await on.quietly.list("replicasets")).items[0])
      await collectorKnows(on, "replicasets")
      await on.quietly.remove("deployments", "a", { propagationPolicy: "Orphan" })
      await on.untilObject("deployments", "a", gone)
      const [left] = (await on.quietly.list("replicasets")).items
      on.note("left", { owners: left.metadata.ownerReferences ?? "none", labels: left.metadata.labels })
    },
  },
  { withManagedFields: false },
)

export const finalizers = topic("finalizers", "registry", {
  "hold an object": async on => {
    await on.quietly.create("configmaps", configMap("a", {}, { finalizers: ["example.com/hold"] }))
    await on.remove("configmaps", "a")
    await on.get("configmaps", "a")
    await on.remove("configmaps", "a")
    await on.patch("configmaps", "a", "merge", { metadata: { finalizers: [] } })
    await on.get("configmaps", "a")
  },
  "none can be added to what is going": async on => {
    await on.quietly.create("configmaps", configMap("a", {}, { finalizers: ["example.com/hold"] }))
    await on.quietly.remove("configmaps", "a")
    await on.patch("configmaps", "a", "merge", { metadata: { finalizers: ["example.com/hold", "example.com/more"] } })
    await on.patch("configmaps", "a", "merge", { data: { still: "writable" } })
    await on.patch("configmaps", "a", "merge", { metadata: { finalizers: null } })
  },
  "what is going cannot be made again": async on => {
    await on.quietly.create("configmaps", configMap("a", {}, { finalizers: ["example.com/hold"] }))
    await on.quietly.remove("configmaps", "a")
    await on.create("configmaps", configMap("a"))
    await on.quietly.patch("configmaps", "a", "merge", { metadata: { finalizers: null } })
  },
  "a collection with a held one": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a", finalizers: ["example.com/hold"] } })
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    await on.quietly.send("DELETE", on.path("secrets"))
    const { items } = await on.quietly.list("secrets")
    on.note(
      "left",
      items.map((item: Json) => [item.metadata.name, item.metadata.finalizers]),
    )
    await on.quietly.patch("secrets", "a", "merge", { metadata: { finalizers: null } })
  },
  "generation moves when it is marked": async on => {
    const made = await on.quietly.create(
      "deployments",
      deployment("a", { "spec.paused": true, "metadata.finalizers": ["example.com/hold"] }),
    )
    const going = await on.quietly.remove("deployments", "a")
    on.note("generations", [made.metadata.generation, going.metadata.generation])
    on.note("grace", going.metadata.deletionGracePeriodSeconds)
    await on.quietly.patch("deployments", "a", "merge", { metadata: { finalizers: null } })
  },
})

export const namespaces = topic(
  "namespaces",
  "registry",
  {
    "a new one": async on => {
      const name = `${on.id}-made`
      await on.create("namespaces", { metadata: { name, labels: { mine: "yes" } } })
      await on.untilObject("serviceaccounts", "default", object => object)
      await on.get("namespaces", name)
      await on.quietly.remove("namespaces", name)
    },
    "what it is born with": async on => {
      const root = await on.quietly.get("configmaps", "kube-root-ca.crt")
      on.note("the certificate's map", { ...root, data: Object.keys(root.data) })
      await on.list("serviceaccounts")
    },
    "its end takes everything along": async on => {
      const name = `${on.id}-ends`
      await on.quietly.create("namespaces", { metadata: { name } })
      const inside = (path: string) => `/api/v1/namespaces/${name}/${path}`
      await on.until(
        "its account is there",
        async () => (await on.quietly.send("GET", inside("serviceaccounts"))).body.items[0],
      )
      await on.quietly.create(inside("secrets"), { metadata: { name: "a" } })
      await on.remove("namespaces", name)
      await on.untilObject("namespaces", name, object => object === undefined)
      await on.send("GET", inside("secrets"))
    },
    "nothing is made in one that ends": async on => {
      const name = `${on.id}-ends`
      await on.quietly.create("namespaces", { metadata: { name } })
      const inside = (path: string) => `/api/v1/namespaces/${name}/${path}`
      await on.quietly.create(inside("secrets"), { metadata: { name: "a", finalizers: ["example.com/hold"] } })
      await on.quietly.remove("namespaces", name)
      const { status } = await on.untilObject("namespaces", name, ({ status }) =>
        status.conditions?.some((each: Json) => each.type === "NamespaceFinalizersRemaining" && each.status === "True"),
      )
      on.note("status", status)
      await on.send("POST", inside("secrets"), { body: { metadata: { name: "b" } } })
      await on.send("PATCH", inside("secrets/a"), {
        body: { metadata: { finalizers: null } },
        headers: { "content-type": "application/merge-patch+json" },
      })
      await on.untilObject("namespaces", name, object => object === undefined)
    },
    "the first ones stay": async on => {
      await on.remove("namespaces", "default")
      await on.remove("namespaces", "kube-system")
    },
    "its finalizers are its own": async on => {
      const name = `${on.id}-holds`
      const made = await on.quietly.create("namespaces", { metadata: { name } })
      on.note("spec", made.spec)
      await on.patch("namespaces", name, "merge", { spec: { finalizers: [] } })
      await on.quietly.remove("namespaces", name)
    },
  },
  { withManagedFields: false },
)
