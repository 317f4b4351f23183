import { onKwok, onRealNode } from "../../support/floor.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { container, idlePod, service } from "./objects.ts"

const ready = (name: string, fields: Json = {}): Json =>
  idlePod(name, {
    "metadata.labels": { app: "web" },
    "spec.schedulerName": undefined,
    "spec.nodeSelector": onKwok.nodeSelector,
    "spec.tolerations": onKwok.tolerations,
    "spec.automountServiceAccountToken": false,
    ...fields,
  })

const isReady = (object: Json) =>
  object?.status?.conditions?.some(({ type, status }: Json) => type === "Ready" && status === "True")

async function run(on: Script, ...pods: Json[]) {
  for (const pod of pods) await on.quietly.create("pods", pod)
  for (const { metadata } of pods) await on.untilObject("pods", metadata.name, isReady)
}

type Endpoint = { targetRef?: { name: string } }
const byName = (a: Endpoint, b: Endpoint) => ((a.targetRef?.name ?? "") < (b.targetRef?.name ?? "") ? -1 : 1)

/** Slices as they are, but for the order of their endpoints and the time of the change, which are chance. */
const shown = ({ metadata, ...slice }: Json) => {
  const { name, labels, ownerReferences, generateName } = metadata
  return {
    ...slice,
    metadata: { name, generateName, labels, ownerReferences },
    endpoints: slice.endpoints?.toSorted(byName) ?? null,
  }
}

/** Waits until the slices of the case are as wanted, and notes them. */
async function slices(on: Script, wanted: (slices: Json[]) => unknown): Promise<Json[]> {
  const found = await on.until("slices are as wanted", async () => {
    const { items } = await on.quietly.list("endpointslices")
    return wanted(items) ? items : undefined
  })
  const sorted = found
    .map(shown)
    .toSorted((a: Json, b: Json) => (JSON.stringify(a.ports) < JSON.stringify(b.ports) ? -1 : 1))
  on.note("slices", sorted)
  return found
}

const endpointsIn = (found: Json[]) => found.flatMap(({ endpoints }) => endpoints ?? [])
const has =
  (count: number, isRight: (endpoint: Json) => unknown = ({ conditions }) => conditions.ready) =>
  (found: Json[]) =>
    found.length > 0 && endpointsIn(found).length === count && endpointsIn(found).every(isRight)

const web = (fields: Json = {}) => service("web", fields)
const ports = (...list: Json[]) => ({ "spec.containers.0": container(undefined, { ports: list }) })

export const endpointSlices = topic(
  "endpoints",
  "controllers",
  {
    "no pod": async on => {
      await on.quietly.create("services", web())
      await slices(on, found => found.length === 1)
    },
    "one pod": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      await slices(on, has(1))
    },
    "pods that come and go": async on => {
      await on.quietly.create("services", web())
      await run(on, ready("a"), ready("b"))
      await slices(on, has(2))
      await on.quietly.remove("pods", "a")
      await slices(on, has(1))
      await on.quietly.remove("pods", "b")
      await slices(on, has(0))
    },
    "a port with a name": async on => {
      await run(on, ready("a", ports({ name: "http", containerPort: 8080 })))
      await on.quietly.create("services", web({ "spec.ports": [{ name: "web", port: 80, targetPort: "http" }] }))
      await slices(on, has(1))
    },
    "pods that mean different ports by one name": async on => {
      await run(
        on,
        ready("a", ports({ name: "http", containerPort: 8080 })),
        ready("b", ports({ name: "http", containerPort: 9090 })),
      )
      await on.quietly.create("services", web({ "spec.ports": [{ port: 80, targetPort: "http" }] }))
      await slices(on, found => has(2)(found) && found.length === 2)
    },
    "a name that no container has": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web({ "spec.ports": [{ port: 80, targetPort: "none" }] }))
      await slices(on, has(1))
    },
    "several ports and protocols": async on => {
      await run(on, ready("a"))
      const list = [
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "web", port: 80, targetPort: 8080, appProtocol: "kubernetes.io/h2c" },
      ]
      await on.quietly.create("services", web({ "spec.ports": list }))
      await slices(on, has(1))
    },
    "a headless service": async on => {
      await run(on, ready("a", { "spec.hostname": "first", "spec.subdomain": "web" }))
      await on.quietly.create("services", web({ "spec.clusterIP": "None" }))
      await slices(on, has(1))
    },
    "a headless service without ports": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web({ "spec.clusterIP": "None", "spec.ports": undefined }))
      await slices(on, has(1))
    },
    "labels of the service": async on => {
      await on.quietly.create("services", web({ "metadata.labels": { team: "a" } }))
      await slices(on, found => found.length === 1)
      await on.quietly.patch("services", "web", "merge", { metadata: { labels: { team: "b", more: "c" } } })
      await slices(on, found => found[0]?.metadata.labels.more === "c")
    },
    "a service without a selector, and one that is elsewhere": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", service("none", { "spec.selector": undefined }))
      await on.quietly.create(
        "services",
        service("away", { "spec.type": "ExternalName", "spec.externalName": "example.com", "spec.ports": undefined }),
      )
      await on.quietly.create("services", web())
      await slices(on, has(1))
    },
    "a selector that changes": async on => {
      await run(on, ready("a"), ready("b", { "metadata.labels": { app: "other" } }))
      await on.quietly.create("services", web())
      await slices(
        on,
        has(1, ({ targetRef }) => targetRef.name === "a"),
      )
      await on.quietly.patch("services", "web", "merge", { spec: { selector: { app: "other" } } })
      await slices(
        on,
        has(1, ({ targetRef }) => targetRef.name === "b"),
      )
    },
    "a selector that gets narrower, goes to the others, and gets wide again": async on => {
      const of = (rev: string) => ({ "metadata.labels": { app: "web", rev } })
      await run(on, ready("a", of("1")), ready("b", of("2")))
      await on.quietly.create("services", web())
      await slices(on, has(2))
      const only = (name: string) => has(1, ({ targetRef }) => targetRef.name === name)
      await on.quietly.patch("services", "web", "merge", { spec: { selector: { rev: "1" } } })
      await slices(on, only("a"))
      await on.quietly.patch("services", "web", "merge", { spec: { selector: { rev: "2" } } })
      await slices(on, only("b"))
      await on.quietly.patch("services", "web", "merge", { spec: { selector: { rev: null } } })
      await slices(on, has(2))
    },
    "a selector that finds nothing any more": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      await slices(on, has(1))
      await on.quietly.patch("services", "web", "merge", { spec: { selector: { rev: "none" } } })
      await slices(on, has(0))
    },
    "a pod whose owner changes": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      await slices(on, has(1))
      const owner = await on.quietly.create("configmaps", { metadata: { name: "owner" } })
      const reference = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata.uid }
      await on.quietly.patch("pods", "a", "merge", { metadata: { ownerReferences: [reference] } })
      await slices(on, has(1))
    },
    "a pod whose labels change": async on => {
      await run(on, ready("a"), ready("b"))
      await on.quietly.create("services", web())
      await slices(on, has(2))
      await on.quietly.patch("pods", "b", "merge", { metadata: { labels: { app: "other" } } })
      await slices(on, has(1))
    },
    "a port that changes": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      await slices(on, has(1))
      await on.quietly.patch("services", "web", "merge", { spec: { ports: [{ port: 80, targetPort: 8080 }] } })
      await slices(on, found => found[0]?.ports?.[0]?.port === 8080)
    },
    "a slice that another writer deletes": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      const [slice] = await slices(on, has(1))
      await on.quietly.remove("endpointslices", slice.metadata.name)
      await slices(on, found => has(1)(found) && found[0]?.metadata.uid !== slice.metadata.uid)
    },
    "a slice that another writer changes": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      const [slice] = await slices(on, has(1))
      await on.quietly.patch("endpointslices", slice.metadata.name, "merge", { endpoints: [] })
      await slices(on, has(1))
    },
    "the service goes, and its slices with it": async on => {
      await on.quietly.create("services", web())
      await slices(on, found => found.length === 1)
      await on.quietly.remove("services", "web")
      await slices(on, found => found.length === 0)
    },
    "a pod that is not ready": async on => {
      const image = `${on.registry}/deaf:1`
      const probe = { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 }
      await on.quietly.create(
        "pods",
        ready("a", {
          "spec.nodeSelector": onRealNode.nodeSelector,
          "spec.containers.0": container(image, { readinessProbe: probe }),
        }),
      )
      await on.quietly.create("services", web())
      await slices(
        on,
        has(1, ({ conditions }) => conditions.ready === false),
      )
      await on.quietly.create(
        "services",
        service("all", { "spec.selector": { app: "web" }, "spec.publishNotReadyAddresses": true }),
      )
      await slices(on, found => endpointsIn(found).filter(({ conditions }) => conditions.ready).length === 1)
    },
    "a pod that is about to end": async on => {
      const image = `${on.registry}/stubborn:1`
      await run(
        on,
        ready("a", {
          "spec.nodeSelector": onRealNode.nodeSelector,
          // Long enough to be seen while it ends.
          "spec.terminationGracePeriodSeconds": 20,
          "spec.containers.0": container(image),
        }),
      )
      await on.quietly.create("services", web())
      await slices(on, has(1))
      await on.quietly.remove("pods", "a")
      await slices(
        on,
        has(1, ({ conditions }) => conditions.terminating),
      )
      await slices(on, has(0))
    },
    "kubectl shows them": async on => {
      await run(on, ready("a"))
      await on.quietly.create("services", web())
      await on.until("there is one", async () => has(1)((await on.quietly.list("endpointslices")).items))
      await on.kubectl(["get", "endpointslices"])
      await on.kubectl(["describe", "service", "web"])
    },
  },
  { withManagedFields: false, runsPods: true },
)
