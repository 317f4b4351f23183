import { onKwok } from "../../support/floor.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { counted } from "./limits.ts"
import { container, cronJob, deployment, job } from "./objects.ts"
import { atLeast, eventsOf, pods, replicaSets, workload } from "./views.ts"
import {
  agents,
  agentsDone,
  done,
  nowhere,
  set,
  setDone,
  setImage,
  setRolled,
  tell,
  tellSet,
  web,
} from "./workload-steps.ts"

const scalings = async (on: Script, count: number) =>
  on.note("events", await eventsOf(on, "Deployment", "web", atLeast(count)))

export const deployments = topic(
  "deployments",
  "controllers",
  {
    "the first rollout": async on => {
      await on.quietly.create("deployments", web())
      await tell(on)
      await scalings(on, 1)
      on.note("events of the replica set", (await eventsOf(on, "ReplicaSet", undefined, atLeast(1))).slice(0, 1))
    },
    "hashes of templates": {
      withHashes: true,
      run: async on => {
        const templates: Json[] = [
          {},
          { "spec.template.spec.containers.0.image": "registry.test/app:2" },
          {
            "spec.template.spec.containers.0.env": [
              { name: "A", value: "1" },
              { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            ],
          },
          {
            "spec.template.spec.containers.0.resources": {
              requests: { cpu: "100m", memory: "1Gi" },
              limits: { cpu: "1" },
            },
          },
          {
            "spec.template.spec.containers.0.ports": [{ containerPort: 80 }],
            "spec.template.spec.containers.0.readinessProbe": { httpGet: { path: "/", port: 80 } },
          },
          {
            "spec.template.spec.volumes": [
              { name: "v", configMap: { name: "c" } },
              { name: "e", emptyDir: {} },
            ],
            "spec.template.metadata.annotations": { "example.com/x": "y" },
          },
          {
            "spec.template.spec.securityContext": { runAsUser: 65532, runAsNonRoot: true },
            "spec.template.spec.tolerations": onKwok.tolerations,
          },
        ]
        for (const [index, fields] of templates.entries())
          await on.quietly.create("deployments", deployment(`d-${index}`, fields))
        for (const index of templates.keys()) {
          const found = await on.until("its replica set is there", async () =>
            (await on.quietly.list("replicasets")).items.find(
              (set: Json) => set.metadata.ownerReferences?.[0].name === `d-${index}`,
            ),
          )
          on.note(`d-${index}`, [found.metadata.name, found.metadata.labels["pod-template-hash"]])
        }
      },
    },
    "a new image": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      await tell(on)
    },
    "a new image, one pod at a time": async on => {
      await on.quietly.create(
        "deployments",
        web({ "spec.strategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }),
      )
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      await tell(on)
      await scalings(on, 7)
    },
    "a new image, none too many": async on => {
      await on.quietly.create(
        "deployments",
        web({ "spec.strategy": { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }),
      )
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      await tell(on)
    },
    "a new image, all at once": async on => {
      await on.quietly.create(
        "deployments",
        web({ "spec.strategy": { rollingUpdate: { maxSurge: "100%", maxUnavailable: 0 } } }),
      )
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      await tell(on)
    },
    recreate: async on => {
      await on.quietly.create("deployments", web({ "spec.strategy": { type: "Recreate" } }))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      await tell(on)
      await scalings(on, 3)
    },
    "paused, nothing rolls": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      await on.quietly.patch("deployments", "web", "merge", { spec: { paused: true } })
      const { metadata } = await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      const paused = await on.untilObject(
        "deployments",
        "web",
        ({ status }) => status.observedGeneration === metadata.generation,
      )
      on.note("paused", workload(paused))
      on.note("replica sets", (await replicaSets(on)).length)
      await on.quietly.patch("deployments", "web", "merge", { spec: { paused: false } })
      await tell(on)
    },
    "paused, it still scales": async on => {
      await on.quietly.create("deployments", web({ "spec.paused": false }))
      await done(on)
      await on.quietly.patch("deployments", "web", "merge", { spec: { paused: true, replicas: 5 } })
      const scaled = await on.untilObject("deployments", "web", ({ status }) => status.availableReplicas === 5)
      on.note("counts", { replicas: scaled.status.replicas, updated: scaled.status.updatedReplicas })
    },
    "paused from the start": async on => {
      await on.quietly.create("deployments", web({ "spec.paused": true }))
      const paused = await on.untilObject(
        "deployments",
        "web",
        ({ status }) => status.observedGeneration === 1 && status.conditions?.length === 2,
      )
      on.note("deployment", workload(paused))
      on.note("replica sets", await replicaSets(on))
    },
    "up and down": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await done(on)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 4 } })
      await tell(on)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 0 } })
      await tell(on)
      await scalings(on, 3)
    },
    "back to the image before": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:2"))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage("registry.test/app:1"))
      await tell(on)
    },
    "no more history than wanted": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1, "spec.revisionHistoryLimit": 1 }))
      for (const tag of ["2", "3", "4"]) {
        await done(on)
        await on.quietly.patch("deployments", "web", "strategic", setImage(`registry.test/app:${tag}`))
      }
      await done(on)
      await on.until("history is short", async () => (await replicaSets(on)).length === 2)
      await tell(on)
    },
    "stuck: counts and conditions": async on => {
      await on.quietly.create(
        "deployments",
        web({ "spec.replicas": 4, "spec.strategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } }),
      )
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", { spec: { template: { spec: nowhere } } })
      const stuck = await on.untilObject(
        "deployments",
        "web",
        ({ status }) =>
          status.updatedReplicas === 2 &&
          status.availableReplicas === 3 &&
          !status.terminatingReplicas &&
          status.replicas === 5,
      )
      on.note("stuck", workload(stuck))
      on.note("replica sets", await replicaSets(on))
      on.note("pods", await pods(on))
    },
    "stuck, then scaled in proportion": async on => {
      await on.quietly.create(
        "deployments",
        web({ "spec.replicas": 4, "spec.strategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } }),
      )
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", { spec: { template: { spec: nowhere } } })
      await on.untilObject(
        "deployments",
        "web",
        ({ status }) =>
          status.updatedReplicas === 2 &&
          status.availableReplicas === 3 &&
          !status.terminatingReplicas &&
          status.replicas === 5,
      )
      await on.quietly.patch("deployments", "web", "merge", { spec: { replicas: 8 } })
      const scaled = await on.untilObject(
        "deployments",
        "web",
        ({ status, metadata }) =>
          status.observedGeneration === metadata.generation &&
          status.replicas === 9 &&
          status.availableReplicas === status.replicas - status.updatedReplicas,
      )
      on.note("scaled", workload(scaled))
      on.note(
        "replica sets",
        (await replicaSets(on)).map(({ wanted }: Json) => wanted),
      )
    },
    "stuck, then given up": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", { spec: { template: { spec: nowhere } } })
      await on.untilObject("deployments", "web", ({ status }) => status.updatedReplicas === 1)
      await on.quietly.patch("deployments", "web", "merge", {
        spec: { template: { spec: { nodeSelector: onKwok.nodeSelector } } },
      })
      await tell(on)
    },
    "the deadline passes": async on => {
      await on.quietly.create(
        "deployments",
        web({
          "spec.replicas": 1,
          "spec.progressDeadlineSeconds": 2,
          "spec.template.spec.nodeSelector": nowhere.nodeSelector,
        }),
      )
      const late = await on.untilObject("deployments", "web", ({ status }) =>
        status.conditions?.some(({ reason }: Json) => reason === "ProgressDeadlineExceeded"),
      )
      on.note("late", workload(late))
      await on.quietly.patch("deployments", "web", "merge", {
        spec: { template: { spec: { nodeSelector: onKwok.nodeSelector } } },
      })
      await tell(on)
    },
    "ready is not yet available": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1, "spec.minReadySeconds": 8 }))
      const ready = await on.untilObject("deployments", "web", ({ status }) => status.readyReplicas === 1)
      on.note("ready", {
        available: ready.status.availableReplicas ?? 0,
        unavailable: ready.status.unavailableReplicas ?? 0,
      })
      await tell(on)
    },
    "a deleted pod is replaced": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const [pod] = (await on.quietly.list("pods")).items
      await on.quietly.remove("pods", pod.metadata.name)
      await on.until("another is there", async () => {
        const { items } = await on.quietly.list("pods")
        return items.length === 2 && items.every(({ metadata }: Json) => metadata.uid !== pod.metadata.uid)
      })
      await tell(on)
    },
    "a pod that loses its label is let go": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await done(on)
      const [pod] = (await on.quietly.list("pods")).items
      await on.quietly.patch("pods", pod.metadata.name, "merge", { metadata: { labels: { app: "other" } } })
      await on.until("there are two", async () => (await on.quietly.list("pods")).items.length === 2)
      const freed = await on.untilObject("pods", pod.metadata.name, ({ metadata }) => !metadata.ownerReferences?.length)
      on.note("freed", { owners: freed.metadata.ownerReferences ?? [], labels: freed.metadata.labels })
    },
    "an orphaned replica set is adopted": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await done(on)
      const [before] = (await on.quietly.list("replicasets")).items
      await on.quietly.remove("deployments", "web", { propagationPolicy: "Orphan" })
      await on.untilObject("deployments", "web", object => object === undefined)
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await tell(on)
      const sets = (await on.quietly.list("replicasets")).items
      on.note("the same", sets.length === 1 && sets[0].metadata.uid === before.metadata.uid)
    },
    "a name that is taken counts as a collision": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 0 }))
      const set = await on.until(
        "its replica set is there",
        async () => (await on.quietly.list("replicasets")).items[0],
      )
      await on.quietly.remove("deployments", "web")
      await on.untilObject("replicasets", set.metadata.name, object => object === undefined)
      await on.quietly.create("replicasets", {
        ...deployment("other"),
        kind: "ReplicaSet",
        metadata: { name: set.metadata.name },
      })
      await on.quietly.create("deployments", web({ "spec.replicas": 0 }))
      const collided = await on.untilObject(
        "deployments",
        "web",
        ({ status }) => status.collisionCount && status.observedGeneration,
      )
      on.note("collisions", collided.status.collisionCount)
      on.note("replica sets", (await on.quietly.list("replicasets")).items.length)
    },
    "its annotations reach the replica set": async on => {
      await on.quietly.create(
        "deployments",
        web({
          "spec.replicas": 0,
          "metadata.annotations": { "example.com/a": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
          "metadata.labels": { team: "x" },
        }),
      )
      await done(on)
      on.note("first", (await replicaSets(on))[0])
      await on.quietly.patch("deployments", "web", "merge", {
        metadata: { annotations: { "example.com/a": "2", "example.com/b": "3" } },
      })
      await on.until("they are there", async () => (await replicaSets(on))[0].annotations["example.com/b"])
      on.note("then", (await replicaSets(on))[0])
    },
    "a budget and evictions": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await on.quietly.create("poddisruptionbudgets", {
        metadata: { name: "web" },
        spec: { minAvailable: 2, selector: { matchLabels: { app: "web" } } },
      })
      await done(on)
      const budget = await on.untilObject(
        "poddisruptionbudgets",
        "web",
        ({ status }) => status?.currentHealthy === 2 && status.observedGeneration === 1,
      )
      on.note("budget", {
        ...budget.status,
        conditions: budget.status.conditions.map(({ type, status, reason }: Json) => [type, status, reason]),
      })
      const [pod] = (await on.quietly.list("pods")).items
      await on.create("pods/eviction", {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name: pod.metadata.name },
      })
      await on.quietly.patch("poddisruptionbudgets", "web", "merge", { spec: { minAvailable: 1 } })
      await on.untilObject("poddisruptionbudgets", "web", ({ status }) => status.disruptionsAllowed === 1)
      await on.create("pods/eviction", {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name: pod.metadata.name },
      })
    },
    "a replica set alone": async on => {
      await on.quietly.create("replicasets", { ...web(), kind: "ReplicaSet" })
      const set = await on.untilObject("replicasets", "web", ({ status }) => status.availableReplicas === 3)
      on.note("status", set.status)
      on.note("pods", await pods(on))
      await on.quietly.patch("replicasets", "web", "merge", { spec: { replicas: 1 } })
      await on.until("one is left", async () => (await on.quietly.list("pods")).items.length === 1)
      const less = await on.untilObject(
        "replicasets",
        "web",
        ({ status }) => status.replicas === 1 && status.observedGeneration === 2 && !status.terminatingReplicas,
      )
      on.note("status", less.status)
    },
    "pods that a quota refuses": async on => {
      await counted(on, { metadata: { name: "q" }, spec: { hard: { pods: "1" } } })
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      const refused = await on.untilObject(
        "deployments",
        "web",
        ({ status }) =>
          status.conditions?.some(({ type }: Json) => type === "ReplicaFailure") && status.availableReplicas === 1,
      )
      on.note(
        "deployment",
        refused.status.conditions
          .filter(({ type }: Json) => type !== "Progressing")
          .map(({ type, status, reason }: Json) => [type, status, reason]),
      )
    },
  },
  { withManagedFields: false, runsPods: true },
)

export const statefulSets = topic(
  "statefulsets",
  "controllers",
  {
    "one after the other": async on => {
      const watch = await on.watch("pods")
      await on.quietly.create("statefulsets", set())
      await tellSet(on)
      on.note(
        "order",
        watch.events.filter(({ type }) => type === "ADDED").map(({ object }) => object.metadata.name),
      )
      on.note("events", await eventsOf(on, "StatefulSet", "db", atLeast(3)))
    },
    "hashes of revisions": {
      withHashes: true,
      run: async on => {
        await on.quietly.create("statefulsets", set({ "spec.replicas": 0 }))
        const { status } = await on.untilObject("statefulsets", "db", ({ status }) => status.updateRevision)
        on.note("revision", status.updateRevision)
      },
    },
    "a new image, from the last to the first": async on => {
      await on.quietly.create("statefulsets", set())
      await on.untilObject("statefulsets", "db", setRolled)
      const watch = await on.watch("pods", {
        resourceVersion: (await on.quietly.list("pods")).metadata.resourceVersion,
      })
      await on.quietly.patch("statefulsets", "db", "strategic", setImage("registry.test/app:2"))
      await tellSet(on)
      // A real controller may see its own update late and make the same pod twice.
      const made = watch.events.filter(({ type }) => type === "ADDED").map(({ object }) => object.metadata.name)
      on.note("order", [...new Set(made)])
    },
    "a partition": async on => {
      await on.quietly.create("statefulsets", set({ "spec.updateStrategy": { rollingUpdate: { partition: 2 } } }))
      await on.untilObject("statefulsets", "db", setRolled)
      await on.quietly.patch("statefulsets", "db", "strategic", setImage("registry.test/app:2"))
      await tellSet(on, object => setDone(object) && object.status.updatedReplicas === 1)
      await on.quietly.patch("statefulsets", "db", "merge", {
        spec: { updateStrategy: { rollingUpdate: { partition: 0 } } },
      })
      await tellSet(on)
    },
    "on delete": async on => {
      await on.quietly.create("statefulsets", set({ "spec.replicas": 2, "spec.updateStrategy": { type: "OnDelete" } }))
      await on.untilObject("statefulsets", "db", setRolled)
      await on.quietly.patch("statefulsets", "db", "strategic", setImage("registry.test/app:2"))
      await tellSet(on, object => setDone(object) && object.status.currentRevision !== object.status.updateRevision)
      await on.quietly.remove("pods", "db-0")
      await tellSet(on, object => setDone(object) && object.status.updatedReplicas === 1)
    },
    "in parallel": async on => {
      await on.quietly.create("statefulsets", set({ "spec.podManagementPolicy": "Parallel" }))
      await tellSet(on)
    },
    "down, the last first": async on => {
      await on.quietly.create("statefulsets", set())
      await on.untilObject("statefulsets", "db", setRolled)
      const watch = await on.watch("pods", {
        resourceVersion: (await on.quietly.list("pods")).metadata.resourceVersion,
      })
      await on.quietly.patch("statefulsets/scale", "db", "merge", { spec: { replicas: 1 } })
      await on.until("one is left", async () => (await on.quietly.list("pods")).items.length === 1)
      await tellSet(on)
      on.note(
        "order",
        watch.events.filter(({ type }) => type === "DELETED").map(({ object }) => object.metadata.name),
      )
    },
    "ordinals from elsewhere": async on => {
      await on.quietly.create("statefulsets", set({ "spec.replicas": 2, "spec.ordinals": { start: 5 } }))
      await tellSet(on)
    },
    claims: async on => {
      await on.quietly.create(
        "statefulsets",
        set({
          "spec.replicas": 1,
          "spec.volumeClaimTemplates": [
            {
              metadata: { name: "data" },
              spec: {
                storageClassName: "none",
                accessModes: ["ReadWriteOnce"],
                resources: { requests: { storage: "1Gi" } },
              },
            },
          ],
        }),
      )
      const claim = await on.untilObject("persistentvolumeclaims", "data-db-0", object => object)
      const { volumeName: _, ...spec } = claim.spec
      on.note("claim", { labels: claim.metadata.labels, spec })
      const pod = await on.untilObject("pods", "db-0", object => object)
      on.note(
        "volumes",
        pod.spec.volumes.filter(({ name }: Json) => name === "data"),
      )
    },
    "claims that cannot be met": async on => {
      const spec = {
        storageClassName: "none",
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
      }
      await on.quietly.create("persistentvolumeclaims", { metadata: { name: "data" }, spec })
      await on.pause(1000)
      on.note("status", (await on.quietly.get("persistentvolumeclaims", "data")).status)
    },
    "stuck at the first that fails": async on => {
      await on.quietly.create("statefulsets", set({ "spec.template.spec.nodeSelector": nowhere.nodeSelector }))
      const stuck = await on.untilObject("statefulsets", "db", ({ status }) => status.replicas === 1)
      on.note("status", stuck.status)
    },
  },
  { withManagedFields: false, runsPods: true },
)

export const daemonSets = topic(
  "daemonsets",
  "controllers",
  {
    "one on each node": async on => {
      await on.quietly.create("daemonsets", agents())
      const { status } = await on.untilObject(
        "daemonsets",
        "agent",
        object => agentsDone(object) && object.status.updatedNumberScheduled === 3,
      )
      on.note("status", status)
      on.note("pods", await pods(on))
      const [pod] = (await on.quietly.list("pods")).items
      on.note("affinity", Object.keys(pod.spec.affinity.nodeAffinity))
      on.note("tolerations", pod.spec.tolerations)
    },
    "only where it may": async on => {
      await on.quietly.create("daemonsets", agents({ "spec.template.spec.nodeSelector": nowhere.nodeSelector }))
      const { status } = await on.untilObject("daemonsets", "agent", ({ status }) => status.observedGeneration === 1)
      on.note("status", status)
    },
    "a new image": async on => {
      await on.quietly.create("daemonsets", agents())
      await on.untilObject("daemonsets", "agent", agentsDone)
      await on.quietly.patch("daemonsets", "agent", "strategic", setImage("registry.test/app:2"))
      const { status } = await on.untilObject(
        "daemonsets",
        "agent",
        object => agentsDone(object) && object.status.updatedNumberScheduled === 3,
      )
      on.note("status", status)
      await on.until("only new ones", async () => (await on.quietly.list("pods")).items.length === 3)
      on.note("pods", await pods(on))
    },
    "on delete": async on => {
      await on.quietly.create("daemonsets", agents({ "spec.updateStrategy": { type: "OnDelete" } }))
      await on.untilObject("daemonsets", "agent", agentsDone)
      await on.quietly.patch("daemonsets", "agent", "strategic", setImage("registry.test/app:2"))
      const { status } = await on.untilObject(
        "daemonsets",
        "agent",
        object => agentsDone(object) && !object.status.updatedNumberScheduled,
      )
      on.note("status", status)
      const [pod] = (await on.quietly.list("pods")).items
      await on.quietly.remove("pods", pod.metadata.name)
      const one = await on.untilObject(
        "daemonsets",
        "agent",
        object => agentsDone(object) && object.status.updatedNumberScheduled === 1,
      )
      on.note("status", one.status)
    },
    surging: async on => {
      await on.quietly.create(
        "daemonsets",
        agents({ "spec.updateStrategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }),
      )
      await on.untilObject("daemonsets", "agent", agentsDone)
      await on.quietly.patch("daemonsets", "agent", "strategic", setImage("registry.test/app:2"))
      await on.untilObject(
        "daemonsets",
        "agent",
        object => agentsDone(object) && object.status.updatedNumberScheduled === 3,
      )
      await on.until("only new ones", async () => (await on.quietly.list("pods")).items.length === 3)
      on.note("pods", await pods(on))
    },
    "hashes of revisions": {
      withHashes: true,
      run: async on => {
        await on.quietly.create("daemonsets", agents({ "spec.template.spec.nodeSelector": nowhere.nodeSelector }))
        const found = await on.until(
          "its revision is there",
          async () => (await on.quietly.list("controllerrevisions")).items[0],
        )
        on.note("revision", [found.metadata.name, found.metadata.labels, found.revision])
      },
    },
  },
  { withManagedFields: false, runsPods: true },
)

const finished = ({ status }: Json) =>
  status?.conditions?.some(({ type, status }: Json) => (type === "Complete" || type === "Failed") && status === "True")
const work = (on: Script, image: string, fields: Json = {}) =>
  job("work", {
    "spec.template.spec.containers": [container(`${on.registry}/${image}:1`)],
    "spec.template.spec.nodeSelector": { type: "real" },
    "spec.template.spec.terminationGracePeriodSeconds": 1,
    ...fields,
  })

async function tellJob(on: Script, wanted: (object: Json) => unknown = finished) {
  const { status, spec, metadata } = await on.untilObject("jobs", "work", wanted)
  on.note("job", {
    ...status,
    conditions: status.conditions?.map(({ type, status, reason, message }: Json) => [type, status, reason, message]),
    spec: { ...spec, template: undefined },
    finalizers: metadata.finalizers,
  })
  on.note("pods", await pods(on))
}

export const jobs = topic(
  "jobs",
  "controllers",
  {
    "one that succeeds": async on => {
      await on.quietly.create("jobs", work(on, "once"))
      await tellJob(on)
      on.note("events", await eventsOf(on, "Job", "work", atLeast(2)))
    },
    "three, two at a time": async on => {
      await on.quietly.create("jobs", work(on, "once", { "spec.completions": 3, "spec.parallelism": 2 }))
      await tellJob(on)
    },
    "by index": async on => {
      await on.quietly.create(
        "jobs",
        work(on, "once", { "spec.completions": 2, "spec.parallelism": 2, "spec.completionMode": "Indexed" }),
      )
      await tellJob(on)
    },
    "one that fails": async on => {
      await on.quietly.create("jobs", work(on, "crash", { "spec.backoffLimit": 0 }))
      await tellJob(on)
      on.note("events", await eventsOf(on, "Job", "work", atLeast(2)))
    },
    "one that runs too long": async on => {
      await on.quietly.create("jobs", work(on, "web", { "spec.activeDeadlineSeconds": 3 }))
      await tellJob(on)
    },
    "suspended and resumed": async on => {
      await on.quietly.create("jobs", work(on, "once", { "spec.suspend": true }))
      await tellJob(on, ({ status }) => status?.conditions?.some(({ type }: Json) => type === "Suspended"))
      await on.quietly.patch("jobs", "work", "merge", { spec: { suspend: false } })
      await tellJob(on)
    },
    "gone after its time": async on => {
      await on.quietly.create("jobs", work(on, "once", { "spec.ttlSecondsAfterFinished": 1 }))
      await on.untilObject("jobs", "work", object => object === undefined)
      await on.until("its pods are gone", async () => (await on.quietly.list("pods")).items.length === 0)
    },
    "of a cronjob": async on => {
      await on.quietly.create("cronjobs", cronJob("tick", { "spec.jobTemplate.spec": work(on, "once").spec }))
      const made = await on.until("a job is made", async () => (await on.quietly.list("jobs")).items[0])
      on.note("job", {
        name: made.metadata.name,
        annotations: Object.keys(made.metadata.annotations),
        owner: made.metadata.ownerReferences.map(({ kind, name, controller }: Json) => [kind, name, controller]),
      })
      const { status } = await on.untilObject(
        "cronjobs",
        "tick",
        ({ status }) => status.lastSuccessfulTime && !status.active,
      )
      on.note("cronjob", status)
      on.note("events", await eventsOf(on, "CronJob", "tick", atLeast(2)))
    },
    "a suspended cronjob makes none": async on => {
      await on.quietly.create("cronjobs", cronJob("tick", { "spec.suspend": true }))
      await on.pause(1000)
      on.note("cronjob", (await on.quietly.get("cronjobs", "tick")).status)
    },
  },
  { withManagedFields: false, runsPods: true },
)
