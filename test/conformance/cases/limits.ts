import { onKwok } from "../../support/floor.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { change, configMap, deployment, dicom, idlePod, job, service } from "./objects.ts"

const range = (...limits: Json[]): Json => ({ metadata: { name: "r" }, spec: { limits } })
const quota = (hard: Json, fields: Json = {}): Json => change({ metadata: { name: "q" }, spec: { hard } }, fields)
const asking = (requests?: Json, limits?: Json, name = "a"): Json =>
  idlePod(name, { "spec.containers.0.resources": { ...(requests && { requests }), ...(limits && { limits }) } })
const claim = (name: string, storage: string): Json => ({
  metadata: { name },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
})

/** Limit ranges reach the plugin through a cache: a dry run shows when it has one. */
async function inForce(on: Script, object: Json) {
  await on.quietly.create("limitranges", object)
  await on.until("the limit range is in force", async () => {
    const probe = { query: { dryRun: "All" }, body: idlePod("probe", probing(object)) }
    const { status, body } = await on.unrecorded("POST", on.path("pods"), probe)
    return status === 403 || body.metadata.annotations?.["kubernetes.io/limit-ranger"] !== undefined
  })
}

/** A pod that breaks whatever the first limit asks for. */
const probing = ({ spec }: Json): Json => {
  const { max, min, maxLimitRequestRatio } = spec.limits[0]
  if (maxLimitRequestRatio) return {}
  return max || min ? { "spec.containers.0.resources": { requests: { cpu: "1n" }, limits: { cpu: "999" } } } : {}
}

async function created(on: Script, object: Json) {
  const answer = await on.unrecorded("POST", on.path("pods"), { body: object })
  const { status, body } = answer
  on.note("pod", {
    status,
    message: body.message,
    details: body.details,
    limits: body.metadata?.annotations?.["kubernetes.io/limit-ranger"],
    resources: [...(body.spec?.containers ?? []), ...(body.spec?.initContainers ?? [])].map(
      ({ name, resources }: Json) => ({ name, resources }),
    ),
    qosClass: body.status?.qosClass,
  })
}

const ranged =
  (limit: Json, ...given: Json[]) =>
  async (on: Script) => {
    await inForce(on, range({ type: "Container", ...limit }))
    for (const pod of given) await created(on, pod)
  }

const second = (resources: Json) => ({ name: "second", image: "registry.test/app:1", resources })

export const limitRanges = topic("limit ranges", "registry", {
  "defaults for what a container leaves out": ranged(
    { default: { cpu: "500m", memory: "256Mi" }, defaultRequest: { cpu: "100m", memory: "64Mi" } },
    idlePod("a"),
  ),
  "defaults beside what a container says": ranged(
    { default: { cpu: "500m", memory: "256Mi" }, defaultRequest: { cpu: "100m", memory: "64Mi" } },
    asking({ cpu: "200m" }, undefined, "request"),
    asking(undefined, { cpu: "300m" }, "limit"),
    asking({ cpu: "50m", memory: "1Gi" }, { memory: "2Gi", cpu: "1" }, "both"),
  ),
  "defaults of two containers, and of one that comes before": ranged(
    { default: { cpu: "500m" }, defaultRequest: { cpu: "100m" } },
    idlePod("a", {
      "spec.containers.1": second({ requests: { cpu: "1" } }),
      "spec.initContainers": [{ name: "first", image: "registry.test/app:1" }],
    }),
  ),
  "a default limit becomes the default request": ranged({ default: { cpu: "500m" } }, idlePod("a")),
  "only requests have defaults": ranged({ defaultRequest: { cpu: "250m" } }, idlePod("a")),
  "a default request above a container's own limit": ranged(
    { default: { cpu: "2" }, defaultRequest: { cpu: "1" } },
    asking(undefined, { cpu: "500m" }),
  ),
  "less than the minimum": ranged(
    { min: { cpu: "200m" } },
    asking({ cpu: "100m" }, undefined, "less"),
    asking({ cpu: "200m" }, undefined, "enough"),
    idlePod("none"),
  ),
  "a limit below the minimum": ranged({ min: { cpu: "200m" } }, asking({ cpu: "100m" }, { cpu: "150m" })),
  "more than the maximum": ranged(
    { max: { cpu: "1" } },
    asking(undefined, { cpu: "1500m" }, "more"),
    asking(undefined, { cpu: "1" }, "as-much"),
    asking({ cpu: "100m" }, undefined, "default"),
  ),
  "memory beyond the maximum": ranged({ max: { memory: "1Gi", cpu: "2" } }, asking(undefined, { memory: "1025Mi" })),
  "a limit too far above the request": ranged(
    { maxLimitRequestRatio: { cpu: "2" }, default: { memory: "1Gi" } },
    asking({ cpu: "100m" }, { cpu: "300m" }, "thrice"),
    asking({ cpu: "100m" }, { cpu: "200m" }, "twice"),
    asking({ memory: "1Gi" }, undefined, "nothing"),
    asking({ cpu: "100m" }, undefined, "no-limit"),
  ),
  "the whole pod beyond the maximum": async on => {
    await inForce(on, range({ type: "Pod", max: { cpu: "1" } }))
    const two = (cpu: string) =>
      idlePod(`two-${cpu}`, {
        "spec.containers.0.resources": { limits: { cpu } },
        "spec.containers.1": second({ limits: { cpu } }),
      })
    await created(on, two("500m"))
    await created(on, two("600m"))
    await created(on, idlePod("none"))
  },
  "the whole pod below the minimum": async on => {
    await inForce(on, range({ type: "Pod", min: { cpu: "1" } }))
    await created(on, asking({ cpu: "500m" }))
    await created(on, asking({ cpu: "1" }, undefined, "b"))
  },
  // Ranges are taken in any order (a map of Go): two that both set a value would make the result a matter of chance.
  "a second range judges what the first one set": async on => {
    await inForce(on, range({ type: "Container", default: { cpu: "500m" }, defaultRequest: { cpu: "100m" } }))
    const ratio = range({ type: "Container", maxLimitRequestRatio: { cpu: "2" } })
    await on.quietly.create("limitranges", change(ratio, { "metadata.name": "s" }))
    await on.until("the second is in force", async () => {
      const probe = { query: { dryRun: "All" }, body: idlePod("probe") }
      return (await on.unrecorded("POST", on.path("pods"), probe)).status === 403
    })
    await created(on, asking({ cpu: "100m" }, { cpu: "200m" }))
    await created(on, idlePod("b"))
  },
  "claims of storage": async on => {
    const limit = { type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "5Gi" } }
    await on.quietly.create("limitranges", range(limit))
    await on.until("it is in force", async () => {
      const { status } = await on.unrecorded("POST", on.path("persistentvolumeclaims"), {
        query: { dryRun: "All" },
        body: claim("probe", "9Gi"),
      })
      return status === 403
    })
    for (const [name, size] of Object.entries({ small: "500Mi", large: "6Gi", right: "5Gi" })) {
      const { status, body } = await on.unrecorded("POST", on.path("persistentvolumeclaims"), {
        body: claim(name, size),
      })
      on.note(name, { status, message: body.message, details: body.details })
    }
  },
  "a pod that exists is left alone": async on => {
    await on.quietly.create("pods", idlePod("a"))
    await inForce(on, range({ type: "Container", max: { cpu: "1" }, default: { cpu: "500m" } }))
    await on.quietly.patch("pods", "a", "merge", { metadata: { labels: { x: "y" } } })
    const { spec, metadata } = await on.quietly.get("pods", "a")
    on.note("pod", { resources: spec.containers[0].resources, annotations: metadata.annotations })
  },
})

/** A quota that its controller has counted, in force. */
export async function counted(on: Script, object: Json): Promise<void> {
  await on.quietly.create("resourcequotas", object)
  await on.untilObject("resourcequotas", object.metadata.name, ({ status }) => status?.hard)
  await quotasAreKnown(on, object.metadata.name)
}

/**
 * The plugin of the server reads quotas from a cache, in the order in which they were written: it knows all that came before
 * one of another namespace when it refuses by that.
 */
async function quotasAreKnown(on: Script, since: string): Promise<void> {
  const name = `${on.id}-after-${since}`
  const inside = (plural: string) => `/api/v1/namespaces/${name}/${plural}`
  await on.quietly.create("namespaces", { metadata: { name } })
  await on.quietly.create(inside("resourcequotas"), quota({ secrets: "0" }))
  await on.until("quotas are known", async () => {
    const sent = { query: { dryRun: "All" }, body: { metadata: { name: "probe" } } }
    const { status, body } = await on.unrecorded("POST", inside("secrets"), sent)
    return status === 403 && body.message.includes("exceeded quota")
  })
  await on.quietly.remove("namespaces", name)
}

const used = async (on: Script, name = "q") => {
  const { status } = await on.quietly.get("resourcequotas", name)
  on.note("status", status)
}

const untilUsed = (on: Script, name: string, value: string) =>
  on.untilObject("resourcequotas", "q", ({ status }) => status.used?.[name] === value)

async function tried(on: Script, resource: string, object: Json) {
  const { status, body } = await on.unrecorded("POST", on.path(resource), { body: object })
  on.note(`${resource} ${object.metadata.name}`, {
    status,
    reason: body.reason,
    message: body.message,
    details: body.details,
  })
}

export const quotas = topic("quotas", "registry", {
  "what is there is counted": async on => {
    for (const name of ["a", "b"]) await on.quietly.create("pods", asking({ cpu: "100m" }, { memory: "1Gi" }, name))
    await on.quietly.create("configmaps", configMap("c"))
    await on.quietly.create(
      "resourcequotas",
      quota({ pods: "5", configmaps: "9", "requests.cpu": "1", "limits.memory": "4Gi", "requests.memory": "4Gi" }),
    )
    await on.untilObject("resourcequotas", "q", ({ status }) => status?.used?.pods === "2")
    await used(on)
  },
  "one pod too many": async on => {
    await counted(on, quota({ pods: "1" }))
    await tried(on, "pods", idlePod("a"))
    await used(on)
    await tried(on, "pods", idlePod("b"))
  },
  "too much cpu": async on => {
    await counted(on, quota({ "requests.cpu": "1" }))
    await tried(on, "pods", asking({ cpu: "700m" }))
    await tried(on, "pods", asking({ cpu: "400m" }, undefined, "b"))
    await tried(on, "pods", asking({ cpu: "300m" }, undefined, "c"))
    await used(on)
  },
  "cpu is the same as requests.cpu": async on => {
    await counted(on, quota({ cpu: "1", memory: "1Gi" }))
    await tried(on, "pods", asking({ cpu: "2", memory: "2Gi" }))
    await tried(on, "pods", asking({ cpu: "1", memory: "512Mi" }, undefined, "b"))
    await used(on)
  },
  "what a container has to name": async on => {
    await counted(on, quota({ "requests.cpu": "1", "limits.memory": "1Gi" }))
    await tried(on, "pods", idlePod("none"))
    await tried(on, "pods", asking({ cpu: "100m" }, undefined, "half"))
    await tried(on, "pods", asking(undefined, { cpu: "100m", memory: "1Mi" }, "both"))
  },
  "what two containers have to name": async on => {
    await counted(on, quota({ "limits.cpu": "1" }))
    await tried(on, "pods", idlePod("a", { "spec.containers.1": second({}) }))
    await tried(on, "pods", idlePod("b", { "spec.containers.1": second({ limits: { cpu: "1" } }) }))
  },
  "several limits at once": async on => {
    await counted(on, quota({ pods: "5", "limits.cpu": "1", "limits.memory": "1Gi", "requests.memory": "1Gi" }))
    await tried(on, "pods", asking({ memory: "2Gi" }, { cpu: "2", memory: "2Gi" }))
    await tried(on, "pods", asking({ memory: "512Mi" }, { cpu: "500m", memory: "1Gi" }, "b"))
    await tried(on, "pods", asking({ memory: "600Mi" }, { cpu: "500m", memory: "1Gi" }, "c"))
    await used(on)
  },
  "defaults of a limit range are charged": async on => {
    await counted(on, quota({ "limits.cpu": "1" }))
    await on.quietly.create("limitranges", range({ type: "Container", default: { cpu: "600m" } }))
    await on.until("it is in force", async () => {
      const { status } = await on.unrecorded("POST", on.path("pods"), {
        query: { dryRun: "All" },
        body: idlePod("probe"),
      })
      return status === 201
    })
    await tried(on, "pods", idlePod("a"))
    await tried(on, "pods", idlePod("b"))
    await used(on)
  },
  "a dry run costs nothing": async on => {
    await counted(on, quota({ pods: "1" }))
    const { status } = await on.unrecorded("POST", on.path("pods"), { query: { dryRun: "All" }, body: idlePod("a") })
    on.note("dry run", status)
    await used(on)
    await tried(on, "pods", idlePod("b"))
    const again = await on.unrecorded("POST", on.path("pods"), { query: { dryRun: "All" }, body: idlePod("c") })
    on.note("dry run beyond it", { status: again.status, message: again.body.message })
  },
  "a name that is taken": async on => {
    await counted(on, quota({ configmaps: "2" }))
    await tried(on, "configmaps", configMap("a"))
    await tried(on, "configmaps", configMap("a"))
  },
  "objects by their bare names": async on => {
    await counted(on, quota({ configmaps: "2", secrets: "1", services: "1", resourcequotas: "1" }))
    await tried(on, "configmaps", configMap("a"))
    await tried(on, "configmaps", configMap("b"))
    await tried(on, "secrets", { metadata: { name: "a" } })
    await tried(on, "secrets", { metadata: { name: "b" } })
    await tried(on, "services", service("a"))
    await tried(on, "services", service("b"))
    await tried(on, "resourcequotas", quota({ pods: "1" }, { "metadata.name": "another" }))
    await used(on)
  },
  "objects by count/": async on => {
    await counted(on, quota({ "count/deployments.apps": "1", "count/configmaps": "2", "count/jobs.batch": "0" }))
    await tried(on, "deployments", deployment("a"))
    await tried(on, "deployments", deployment("b"))
    await tried(on, "configmaps", configMap("a"))
    await tried(on, "configmaps", configMap("b"))
    await tried(on, "jobs", job("a", { "spec.suspend": true }))
    await used(on)
  },
  "custom objects by count/": async on => {
    await counted(on, quota({ "count/dicoms.services.example.com": "1" }))
    await tried(on, "dicoms", dicom("a"))
    await tried(on, "dicoms", dicom("b"))
    await used(on)
  },
  "ports of nodes and balancers": async on => {
    await counted(on, quota({ "services.nodeports": "2", "services.loadbalancers": "0" }))
    const ports = (...numbers: number[]) => numbers.map(port => ({ port, name: `p${port}` }))
    await tried(on, "services", service("a", { "spec.type": "NodePort", "spec.ports": ports(80, 81) }))
    await tried(on, "services", service("b", { "spec.type": "NodePort", "spec.ports": ports(80) }))
    await tried(on, "services", service("c", { "spec.type": "LoadBalancer" }))
    await tried(on, "services", service("d"))
    await used(on)
  },
  "a service that grows": async on => {
    await counted(on, quota({ "services.nodeports": "1" }))
    await on.quietly.create("services", service("a"))
    const grow = async (spec: Json) => {
      const { status, body } = await on.unrecorded("PATCH", on.path("services", "a"), {
        headers: { "content-type": "application/merge-patch+json" },
        body: { spec },
      })
      on.note("patched", { status, message: body.message })
    }
    await grow({ type: "NodePort" })
    await untilUsed(on, "services.nodeports", "1")
    await grow({
      ports: [
        { port: 80, name: "a" },
        { port: 81, name: "b" },
      ],
    })
    await used(on)
  },
  "claims of storage are added up": async on => {
    await counted(on, quota({ "requests.storage": "10Gi", persistentvolumeclaims: "3" }))
    await tried(on, "persistentvolumeclaims", claim("a", "6Gi"))
    await tried(on, "persistentvolumeclaims", claim("b", "5Gi"))
    await tried(on, "persistentvolumeclaims", claim("c", "4Gi"))
    await used(on)
  },
  "what is deleted is free again": async on => {
    await counted(on, quota({ pods: "1", configmaps: "1" }))
    await on.quietly.create("pods", idlePod("a"))
    await on.quietly.remove("pods", "a")
    await untilUsed(on, "pods", "0")
    await quotasAreKnown(on, "deletion")
    await tried(on, "pods", idlePod("b"))
    await used(on)
  },
  "a limit that is lowered": async on => {
    await counted(on, quota({ configmaps: "5" }))
    for (const name of ["a", "b"]) await on.quietly.create("configmaps", configMap(name))
    await on.quietly.patch("resourcequotas", "q", "merge", { spec: { hard: { configmaps: "1" } } })
    await on.untilObject("resourcequotas", "q", ({ status }) => status.hard.configmaps === "1")
    await used(on)
  },
  "only pods without requests": async on => {
    await counted(on, quota({ pods: "1" }, { "spec.scopes": ["BestEffort"] }))
    await tried(on, "pods", asking({ cpu: "100m" }, undefined, "burstable"))
    await tried(on, "pods", idlePod("a"))
    await tried(on, "pods", idlePod("b"))
    await used(on)
  },
  "only pods that end by themselves": async on => {
    await counted(on, quota({ pods: "0" }, { "spec.scopes": ["Terminating"] }))
    await tried(on, "pods", idlePod("a"))
    await tried(on, "pods", idlePod("b", { "spec.activeDeadlineSeconds": 60 }))
  },
  "only pods of a priority": async on => {
    const matchExpressions = [{ scopeName: "PriorityClass", operator: "In", values: ["system-cluster-critical"] }]
    await counted(on, quota({ pods: "0" }, { "spec.scopeSelector": { matchExpressions } }))
    await tried(on, "pods", idlePod("a"))
    await tried(on, "pods", idlePod("b", { "spec.priorityClassName": "system-cluster-critical" }))
  },
  "two quotas": async on => {
    await counted(on, quota({ pods: "3" }))
    await counted(on, quota({ pods: "1" }, { "metadata.name": "tight" }))
    await tried(on, "pods", idlePod("a"))
    await tried(on, "pods", idlePod("b"))
    await on.until("both agree", async () => {
      const { status } = await on.quietly.get("resourcequotas", "q")
      return status.used.pods === "1"
    })
    await used(on)
    await used(on, "tight")
  },
  "kubectl shows them": async on => {
    await counted(on, quota({ pods: "3", "limits.cpu": "2" }))
    await on.quietly.create("pods", asking(undefined, { cpu: "500m" }))
    await untilUsed(on, "pods", "1")
    await on.kubectl(["get", "resourcequota"])
    await on.kubectl(["describe", "resourcequota", "q"])
  },
})

export const quotasOfWorkloads = topic(
  "quotas of workloads",
  "controllers",
  {
    "a replica set says what it is refused": async on => {
      await counted(on, quota({ pods: "0" }))
      await on.quietly.create(
        "deployments",
        deployment("web", {
          "spec.replicas": 1,
          "spec.template.spec.nodeSelector": onKwok.nodeSelector,
          "spec.template.spec.tolerations": onKwok.tolerations,
        }),
      )
      const { status } = await on.untilObject("deployments", "web", object =>
        object.status?.conditions?.some(({ type }: Json) => type === "ReplicaFailure"),
      )
      const failure = status.conditions.find(({ type }: Json) => type === "ReplicaFailure")
      on.note("failure", [failure.status, failure.reason, failure.message])
    },
    "a pod that has ended costs nothing": async on => {
      await counted(on, quota({ pods: "2", "count/pods": "5" }))
      await on.quietly.create("pods", idlePod("a"))
      await on.quietly.patch("pods/status", "a", "merge", { status: { phase: "Succeeded" } })
      await untilUsed(on, "pods", "0")
      await used(on)
    },
  },
  { withManagedFields: false, runsPods: true },
)
