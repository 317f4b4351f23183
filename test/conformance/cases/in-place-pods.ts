import { type Json, type Script, topic } from "../harness/script.ts"
import { comparePods, second, uidsOf } from "./in-place-steps.ts"
import { change, container, idlePod } from "./objects.ts"
import { done, web } from "./workload-steps.ts"

const eviction = (name: string): Json => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name } })

/** The refusal without the diff of Go structs that a real server appends. */
async function refusalOf(on: Script, what: string, pod: string, patch: Json) {
  const { status, body } = await on.unrecorded("PATCH", on.path("pods", pod), {
    headers: { "content-type": "application/json-patch+json" },
    body: patch,
  })
  const causes = body.details?.causes?.map(({ reason, field }: Json) => `${reason} ${field}`)
  const [sentence] = (body.message ?? "").split(/\n|core\.PodSpec/)
  on.note(what, { status, reason: body.reason, causes, sentence: status < 400 ? undefined : sentence })
}

const add = (path: string, value: Json) => [{ op: "add", path, value }]
const image = "/spec/containers/0/image"

/** A pod with all that an update in place could want to change. */
const rich = () =>
  change(idlePod("a"), {
    "spec.initContainers": [
      { name: "first", image: "registry.test/init:1" },
      { name: "side", image: "registry.test/side:1", restartPolicy: "Always" },
    ],
    "spec.containers": [
      container("registry.test/app:1", { env: [{ name: "A", value: "1" }] }),
      { name: "beside", image: "registry.test/beside:1" },
    ],
    "spec.activeDeadlineSeconds": 100,
  })

/** The budget after its controller has looked, and whether an eviction was noted in it. */
const budgetOf = ({ status }: Json) => ({
  allowed: status.disruptionsAllowed,
  healthy: status.currentHealthy,
  disrupted: Object.keys(status.disruptedPods ?? {}).length,
})

async function budget(on: Script, minAvailable: number): Promise<Json> {
  await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
  await on.quietly.create("poddisruptionbudgets", {
    metadata: { name: "web" },
    spec: { minAvailable, selector: { matchLabels: { app: "web" } } },
  })
  await done(on)
  await on.untilObject(
    "poddisruptionbudgets",
    "web",
    ({ status }) => status?.currentHealthy === 2 && status.disruptionsAllowed === 2 - minAvailable,
  )
  return (await on.quietly.list("pods")).items[0]
}

const versionOf = async (on: Script, resource: string, name: string) =>
  (await on.quietly.get(resource, name)).metadata.resourceVersion

export const inPlaceOfPods = topic(
  "in place, pods",
  "kinds",
  {
    "images may change, and each change is a generation": async on => {
      await on.quietly.create("pods", rich())
      const paths = [image, "/spec/containers/1/image", "/spec/initContainers/0/image", "/spec/initContainers/1/image"]
      for (const path of paths) {
        const { metadata, spec } = await on.quietly.patch("pods", "a", "json", add(path, second))
        on.note(path, {
          generation: metadata.generation,
          images: [...spec.initContainers, ...spec.containers].map((each: Json) => each.image),
        })
      }
    },
    "the same image is no generation, nor are labels and annotations": async on => {
      await on.quietly.create("pods", rich())
      const before = await versionOf(on, "pods", "a")
      const same = await on.quietly.patch("pods", "a", "json", add(image, "registry.test/app:1"))
      on.note("same", { generation: same.metadata.generation, isWritten: same.metadata.resourceVersion !== before })
      const noted = await on.quietly.patch("pods", "a", "merge", {
        metadata: { labels: { more: "1" }, annotations: { "example.com/in-place": "{}" } },
      })
      on.note("noted", { generation: noted.metadata.generation, isWritten: noted.metadata.resourceVersion !== before })
    },
    "environment, gates, policies and probes may not change": async on => {
      await on.quietly.create("pods", rich())
      const gate = [{ conditionType: "example.com/gate" }]
      await refusalOf(on, "env", "a", add("/spec/containers/0/env/0/value", "2"))
      await refusalOf(on, "one more env", "a", add("/spec/containers/0/env/-", { name: "B", value: "2" }))
      await refusalOf(on, "gates", "a", add("/spec/readinessGates", gate))
      await refusalOf(on, "pull policy", "a", add("/spec/containers/0/imagePullPolicy", "Always"))
      await refusalOf(on, "restart policy", "a", add("/spec/restartPolicy", "Never"))
      await refusalOf(on, "command", "a", add("/spec/containers/0/command", ["true"]))
      await refusalOf(on, "a container more", "a", add("/spec/containers/-", { name: "c", image: "registry.test/c:1" }))
      await refusalOf(on, "no image", "a", add(image, ""))
      await refusalOf(on, "an image with space", "a", add(image, " registry.test/app:2"))
      const both = [...add(image, second), ...add("/spec/readinessGates", gate)]
      await refusalOf(on, "an image and gates", "a", both)
      on.note("image", (await on.quietly.get("pods", "a")).spec.containers[0].image)
    },
    "a deadline may be lowered, tolerations added": async on => {
      await on.quietly.create("pods", rich())
      await refusalOf(on, "a lower deadline", "a", add("/spec/activeDeadlineSeconds", 50))
      await refusalOf(on, "a higher deadline", "a", add("/spec/activeDeadlineSeconds", 60))
      await refusalOf(on, "no deadline", "a", [{ op: "remove", path: "/spec/activeDeadlineSeconds" }])
      const tolerations = [...(await on.quietly.get("pods", "a")).spec.tolerations, { key: "a", operator: "Exists" }]
      await refusalOf(on, "one more toleration", "a", add("/spec/tolerations", tolerations))
      await refusalOf(on, "one less", "a", add("/spec/tolerations", tolerations.slice(1)))
    },
    "a test that fails is a refusal and not a conflict": async on => {
      const { metadata } = await on.quietly.create("pods", rich())
      const replace = { op: "replace", path: image, value: second }
      const test = (path: string, value: Json) => ({ op: "test", path, value })
      await refusalOf(on, "another uid", "a", [test("/metadata/uid", "other"), replace])
      await refusalOf(on, "another name", "a", [test("/spec/containers/0/name", "other"), replace])
      await refusalOf(on, "another image", "a", [test(image, second), replace])
      await refusalOf(on, "an old version", "a", [test("/metadata/resourceVersion", "1"), replace])
      await refusalOf(on, "a write with an old version", "a", [...add("/metadata/resourceVersion", "1"), replace])
      await refusalOf(on, "a write with another uid", "a", [...add("/metadata/uid", "other"), replace])
      await refusalOf(on, "all as seen", "a", [
        test("/metadata/uid", metadata.uid),
        test("/metadata/resourceVersion", metadata.resourceVersion),
        replace,
      ])
    },
    "a condition of a gate, on condition of the version that was seen": async on => {
      await on.quietly.create("pods", idlePod("a", { "spec.readinessGates": [{ conditionType: "example.com/gate" }] }))
      const seen = await versionOf(on, "pods", "a")
      const shut = (status: string, resourceVersion?: string) => ({
        ...(resourceVersion && { metadata: { resourceVersion } }),
        status: { conditions: [{ type: "example.com/gate", status, reason: "InPlace" }] },
      })
      const write = async (what: string, body: Json) => {
        const headers = { "content-type": "application/strategic-merge-patch+json" }
        const answer = await on.unrecorded("PATCH", on.path("pods/status", "a"), { headers, body })
        const gates = answer.body.status?.conditions?.filter?.(({ type }: Json) => type.startsWith("example.com"))
        const { generation } = answer.body.metadata ?? {}
        on.note(what, { status: answer.status, reason: answer.body.reason, gates, generation })
      }
      await write("False", shut("False", seen))
      await write("True, from before", shut("True", seen))
      await write("True, of now", shut("True", await versionOf(on, "pods", "a")))
      const image = { spec: { containers: [{ name: "app", image: second }] }, ...shut("False") }
      await write("an image through the status", image)
      on.note("image", (await on.quietly.get("pods", "a")).spec.containers[0].image)
      await on.quietly.patch("pods", "a", "strategic", shut("Unknown"))
      const { conditions } = (await on.quietly.get("pods", "a")).status
      on.note(
        "a status through the pod",
        conditions.find(({ type }: Json) => type === "example.com/gate"),
      )
    },
    "an eviction that is only tried: refused by a budget": async on => {
      const pod = await budget(on, 2)
      await on.create("pods/eviction", eviction(pod.metadata.name), { dryRun: "All" })
      on.note("budget", budgetOf(await on.quietly.get("poddisruptionbudgets", "web")))
    },
    "an eviction that is only tried: allowed, and nothing is touched": async on => {
      const pod = await budget(on, 1)
      const before = await uidsOf(on)
      const versions = async () => [
        await versionOf(on, "pods", pod.metadata.name),
        await versionOf(on, "poddisruptionbudgets", "web"),
      ]
      const seen = await versions()
      await on.create("pods/eviction", eviction(pod.metadata.name), { dryRun: "All" })
      await on.create("pods/eviction", { ...eviction(pod.metadata.name), deleteOptions: { dryRun: ["All"] } })
      on.note("untouched", String(await versions()) === String(seen))
      on.note("budget", budgetOf(await on.quietly.get("poddisruptionbudgets", "web")))
      await comparePods(on, before)
    },
    "an eviction that is only tried: of a pod that is not there, not ready, or of another uid": async on => {
      await on.create("pods/eviction", eviction("none"), { dryRun: "All" })
      const waiting = change(idlePod("a"), { "metadata.labels": { app: "web" } })
      await on.quietly.create("pods", waiting)
      await on.quietly.create("poddisruptionbudgets", {
        metadata: { name: "web" },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
      })
      await on.untilObject("poddisruptionbudgets", "web", ({ status }) => status?.observedGeneration === 1)
      await on.create("pods/eviction", eviction("a"), { dryRun: "All" })
      const other = { deleteOptions: { preconditions: { uid: "00000000-0000-4000-8000-000000000000" } } }
      await on.create("pods/eviction", { ...eviction("a"), ...other }, { dryRun: "All" })
    },
    "an eviction that is only tried: two budgets for one pod": async on => {
      const pod = await budget(on, 1)
      await on.quietly.create("poddisruptionbudgets", {
        metadata: { name: "other" },
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } },
      })
      await on.untilObject("poddisruptionbudgets", "other", ({ status }) => status?.disruptionsAllowed === 1)
      await on.create("pods/eviction", eviction(pod.metadata.name), { dryRun: "All" })
    },
    "an eviction of a pod that is not ready, beside enough that are": async on => {
      const [pod, other] = [await budget(on, 1), idlePod("a", { "metadata.labels": { app: "web" } })]
      await on.quietly.create("pods", other)
      await on.quietly.patch("pods/status", "a", "merge", { status: { phase: "Running" } })
      await on.untilObject("pods", "a", ({ status }) => status.phase === "Running")
      await on.create("pods/eviction", eviction("a"), { dryRun: "All" })
      await on.quietly.patch("poddisruptionbudgets", "web", "merge", { spec: { minAvailable: 3 } })
      await on.untilObject("poddisruptionbudgets", "web", ({ status }) => status.desiredHealthy === 3)
      await on.create("pods/eviction", eviction("a"), { dryRun: "All" })
      await on.quietly.patch("poddisruptionbudgets", "web", "merge", {
        spec: { unhealthyPodEvictionPolicy: "AlwaysAllow" },
      })
      await on.untilObject(
        "poddisruptionbudgets",
        "web",
        ({ metadata, status }) => status.observedGeneration === metadata.generation,
      )
      await on.create("pods/eviction", eviction("a"), { dryRun: "All" })
      await on.create("pods/eviction", eviction(pod.metadata.name), { dryRun: "All" })
    },
    "what an eviction writes on a pod that waits, or has ended": async on => {
      for (const phase of ["Pending", "Succeeded"]) {
        const name = phase.toLowerCase()
        await on.quietly.create("pods", idlePod(name, { "metadata.finalizers": ["example.com/stay"] }))
        await on.quietly.patch("pods/status", name, "merge", { status: { phase } })
        for (const _ of [1, 2]) {
          await on.create("pods/eviction", eviction(name))
          const { metadata, status } = await on.quietly.get("pods", name)
          const conditions = status.conditions?.map(({ type, reason }: Json) => [type, reason])
          on.note(phase, { isDeleted: metadata.deletionTimestamp !== undefined, conditions })
        }
        await on.quietly.patch("pods", name, "merge", { metadata: { finalizers: null } })
      }
    },
    "a pod that no node has takes another image": async on => {
      await on.quietly.create(
        "pods",
        change(idlePod("a"), { "spec.schedulerName": undefined, "spec.nodeSelector": { type: "nowhere" } }),
      )
      await on.untilObject("pods", "a", ({ status }) => status.conditions?.length > 0)
      await on.quietly.patch("pods", "a", "json", add(image, second))
      const { metadata, spec, status } = await on.quietly.get("pods", "a")
      on.note("pod", { generation: metadata.generation, image: spec.containers[0].image, phase: status.phase })
    },
  },
  { withManagedFields: false, runsPods: true },
)
