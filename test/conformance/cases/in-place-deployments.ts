import { type Json, topic } from "../harness/script.ts"
import {
  active,
  changePods,
  comparePods,
  fence,
  first,
  flip,
  held,
  hold,
  isHeld,
  keepHistory,
  release,
  second,
  tellHeld,
  uidsOf,
  updateInPlace,
} from "./in-place-steps.ts"
import { pods, replicaSets, workload } from "./views.ts"
import { done, setImage, tell, web } from "./workload-steps.ts"

const imagesOf = async (on: Parameters<typeof pods>[0]) => (await pods(on)).map(({ image }: Json) => image)

export const inPlaceOfDeployments = topic(
  "in place, deployments",
  "controllers",
  {
    "held, changed, flipped, released: one replica set, and the rollout is complete": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await tellHeld(on)
      await changePods(on, second)
      await tellHeld(on)
      await flip(on, second)
      on.note("flipped", workload(await fence(on)))
      on.note("replica sets", await replicaSets(on))
      await release(on, second)
      await tell(on)
      await comparePods(on, before)
    },
    "a replica set is changed while its deployment is not held: a collision": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      const before = await uidsOf(on)
      await flip(on, second)
      await on.untilObject("deployments", "web", ({ status }) => status.collisionCount)
      // Until then the status is that of before, and says that all is done.
      await on.until("another is there", async () => (await on.quietly.list("replicasets")).items.length === 2)
      await tell(on)
      await comparePods(on, before)
    },
    "pods were changed, and the template then, without a hold": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      const before = await uidsOf(on)
      await changePods(on, second)
      await on.quietly.patch("deployments", "web", "strategic", setImage(second))
      await tell(on)
      await comparePods(on, before)
    },
    "scaled while held: the old image before the flip, the new one after": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await changePods(on, second)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 3 } })
      await tellHeld(on)
      on.note("before the flip", await imagesOf(on))
      await changePods(on, second)
      await flip(on, second)
      await fence(on)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 4 } })
      on.note("scaled", workload(await fence(on)))
      on.note("after the flip", await imagesOf(on))
      await release(on, second)
      await tell(on)
      await comparePods(on, before)
    },
    "a pod is lost while held: the old image before the flip, the new one after": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      await hold(on, second)
      const lose = async () => {
        const { metadata } = (await on.quietly.list("pods")).items[0]
        await on.quietly.remove("pods", metadata.name)
        await on.untilObject("pods", metadata.name, object => object === undefined)
      }
      await changePods(on, second)
      await lose()
      await on.until("another is there", async () => (await on.quietly.list("pods")).items.length === 2)
      await held(on)
      on.note("before the flip", await imagesOf(on))
      await changePods(on, second)
      await flip(on, second)
      await fence(on)
      await lose()
      await on.until("another is there", async () => (await on.quietly.list("pods")).items.length === 2)
      await fence(on)
      on.note("after the flip", await imagesOf(on))
    },
    "a replica set for the history: revisions and their history": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await keepHistory(on)
      await changePods(on, second)
      await tellHeld(on)
      on.note("before the flip", await replicaSets(on))
      await flip(on, second)
      await fence(on)
      await release(on, second)
      await tell(on)
      await comparePods(on, before)
      await on.kubectl(["rollout", "history", "deployment/web"])
      await on.kubectl(["rollout", "history", "deployment/web", "--revision=1"])
      await on.kubectl(["rollout", "undo", "deployment/web"])
      await tell(on)
      await comparePods(on, before)
    },
    "back in place, beside the replica set of the history: the older one counts": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await keepHistory(on)
      await changePods(on, second)
      await flip(on, second)
      await fence(on)
      await release(on, second)
      await done(on)
      await hold(on, first)
      // While held, the template is that of the history's, which has no pods.
      await on.until("its revision has moved", async () => {
        const { metadata } = await on.quietly.get("replicasets", "web-zz")
        return metadata.annotations["deployment.kubernetes.io/revision"] === "3"
      })
      await tellHeld(on)
      on.note("held", await replicaSets(on))
      await changePods(on, first)
      await flip(on, first)
      await fence(on)
      await release(on, first)
      await tell(on)
      await comparePods(on, before)
    },
    "then back by the native rollout, without history: one collision": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await updateInPlace(on, second)
      await on.quietly.patch("deployments", "web", "strategic", setImage(first))
      await tell(on)
      await comparePods(on, before)
    },
    "then an environment variable: it rolls from the same replica set": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await updateInPlace(on, second)
      await on.quietly.patch("deployments", "web", "strategic", {
        spec: { template: { spec: { containers: [{ name: "app", env: [{ name: "A", value: "1" }] }] } } },
      })
      await tell(on)
      await comparePods(on, before)
    },
    "given up before the flip: the old template and the release in one write": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await changePods(on, second, { of: ({ metadata }) => before.indexOf(metadata.uid) > 0 })
      await changePods(on, first)
      await on.quietly.patch("deployments", "web", "json", [
        { op: "replace", path: "/spec/template/spec/containers/0/image", value: first },
        { op: "replace", path: "/spec/paused", value: false },
      ])
      await tell(on)
      await comparePods(on, before)
    },
    "resumed half-way: it rolls natively": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await changePods(on, second, { of: ({ metadata }) => metadata.uid === before[0] })
      await on.kubectl(["rollout", "resume", "deployment/web"])
      await tell(on)
      await comparePods(on, before)
    },
    "the replica set has the new template, the held deployment the old one: nothing happens": async on => {
      await on.quietly.create("deployments", web())
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await changePods(on, second)
      await flip(on, second)
      await fence(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage(first))
      await tellHeld(on)
      on.note("replica sets", await replicaSets(on))
      await comparePods(on, before)
      await changePods(on, first)
      await flip(on, first)
      await fence(on)
      await release(on, first)
      await tell(on)
      await comparePods(on, before)
    },
    "without pods: an annotation of the deployment is on the replica set of its template alone": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 0 }))
      await done(on)
      const fenced = { metadata: { annotations: { "example.com/fence": "1" } } }
      await on.quietly.patch("deployments", "web", "strategic", {
        ...fenced,
        spec: { paused: true, ...setImage(second).spec },
      })
      await on.untilObject("deployments", "web", isHeld)
      on.note("held", (await active(on)).metadata.annotations)
      await flip(on, second)
      const { metadata } = await active(on)
      await on.untilObject("replicasets", metadata.name, object => object.metadata.annotations["example.com/fence"])
      on.note("flipped", await replicaSets(on))
      await release(on, second)
      await tell(on)
    },
    "history beyond the limit goes while held": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1, "spec.revisionHistoryLimit": 0 }))
      await done(on)
      await hold(on, second)
      await keepHistory(on)
      await on.untilObject("replicasets", "web-zz", object => object === undefined)
      on.note("replica sets", await replicaSets(on))
    },
    "a held deployment is scaled to nothing and released": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      await hold(on, second)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 0 } })
      await held(on)
      await flip(on, second)
      await on.untilObject(
        "replicasets",
        (await active(on)).metadata.name,
        object => object.status.observedGeneration === object.metadata.generation,
      )
      await release(on, second)
      await tell(on)
    },
    "the template of a replica set may change, its selector may not": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 0 }))
      await done(on)
      const { metadata } = await active(on)
      const selector = { matchLabels: { app: "web", "pod-template-hash": "other" } }
      const template = { metadata: { labels: selector.matchLabels } }
      await on.patch("replicasets", metadata.name, "merge", { spec: { selector, template } })
      await on.patch("replicasets", metadata.name, "merge", { spec: { template } })
    },
    "what kubectl says of a held deployment": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      await hold(on, second)
      await on.kubectl(["rollout", "status", "deployment/web", "--watch=false"])
      await on.kubectl(["rollout", "restart", "deployment/web"])
      await on.kubectl(["rollout", "undo", "deployment/web"])
      await on.kubectl(["get", "deployment", "web"])
      await changePods(on, second)
      await flip(on, second)
      await fence(on)
      await on.kubectl(["rollout", "status", "deployment/web", "--watch=false"])
      await on.kubectl(["get", "deployment", "web"])
    },
  },
  { withManagedFields: false, runsPods: true },
)
