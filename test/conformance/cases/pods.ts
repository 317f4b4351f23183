import { onRealNode } from "../../support/floor.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { change } from "./objects.ts"
import { atLeast, eventsOf, podStatus, waits } from "./views.ts"

/** A pod on the node that really runs containers. The image is asked for each time: no case finds what another left. */
const pod = (on: Script, image: string, fields: Json = {}): Json =>
  change(
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a" },
      spec: {
        ...onRealNode,
        terminationGracePeriodSeconds: 2,
        automountServiceAccountToken: false,
        containers: [
          { name: "app", image: image.includes("/") ? image : `${on.registry}/${image}:1`, imagePullPolicy: "Always" },
        ],
      },
    },
    fields,
  )

const http = (more: Json = {}) => ({ httpGet: { path: "/", port: 8080 }, ...more })

const stateOf = (object: Json, container = "app") =>
  [...(object?.status?.initContainerStatuses ?? []), ...(object?.status?.containerStatuses ?? [])].find(
    ({ name }: Json) => name === container,
  )

const isReady = (object: Json) =>
  object.status.conditions?.some(({ type, status }: Json) => type === "Ready" && status === "True")
const isWaiting =
  (reason: string, container = "app") =>
  (object: Json) =>
    stateOf(object, container)?.state?.waiting?.reason === reason
const hasEnded = ({ status }: Json) => status.phase === "Succeeded" || status.phase === "Failed"

/** It has ended, and what it stood on is gone too. */
const isOver = (object: Json) =>
  hasEnded(object) &&
  object.status.conditions.some(({ type, status }: Json) => type === "PodReadyToStartContainers" && status === "False")

/** How often a container crashed before the look is chance, and so is the length of its back-off. */
const howeverOften = (status: Json): Json =>
  JSON.parse(
    JSON.stringify(status, (key, value) => {
      if (key === "restartCount") return Math.min(value, 1)
      return typeof value === "string" ? value.replace(/back-off \d+(m\d+)?s/, "back-off LONG") : value
    }),
  )

/**
 * Waits until a container that crashed is said to back off. A kubelet says so the next time it looks at the pod. Left
 * alone, it looks when the back-off is over, starts the container and takes the word back within a second. A change of
 * the pod makes it look earlier.
 */
function untilBackOff(on: Script, container = "app"): Promise<Json> {
  let looks = 0
  return on.until(`container ${container} backs off`, async () => {
    const annotations = { "example.com/look": String(++looks) }
    const object = await on.quietly.patch("pods", "a", "merge", { metadata: { annotations } })
    if (isWaiting("CrashLoopBackOff", container)(object) && stateOf(object, container).restartCount >= 1) return object
    await on.pause(1000)
    return undefined
  })
}

/** Runs a pod until it is as wanted, and records its status, the states on the way and its events. */
async function live(on: Script, object: Json, wanted: (object: Json) => unknown, { told = true } = {}) {
  return record(on, object, () => on.untilObject("pods", "a", wanted), { told })
}

async function record(on: Script, object: Json, arrival: () => Promise<Json>, { told = true } = {}) {
  const watch = await on.watch("pods")
  await on.quietly.create("pods", object)
  const seen = await arrival()
  on.note("status", howeverOften(podStatus(seen)))
  const { resourceVersion } = seen.metadata
  await on.until("the watch shows it", async () =>
    watch.events.some(({ object }) => Number(object.metadata.resourceVersion) >= Number(resourceVersion)),
  )
  // A kubelet under load says less on the way than it could, also nothing before it is done; why something waits, it
  // always says.
  const way = watch.events.map(({ object }) => waits(object)).filter(words => words !== "" && !isOnItsWay(words))
  const last = waits(seen)
  const reasons = [...new Set(way)]
  on.note("waits on the way", last === "" ? reasons.slice(0, 1) : reasons.slice(0, reasons.indexOf(last) + 1))
  if (told) on.note("events", await eventsOf(on, "Pod", "a", tells(seen)))
  return { watch, seen }
}

const isOnItsWay = (words: string) => words.split(", ").every(each => /(ContainerCreating|PodInitializing)$/.test(each))

/**
 * Whether events tell all that led to a status: where the pod runs, which containers have run, and why others wait. A
 * kubelet writes one after the other, and these last.
 */
const tells =
  ({ status }: Json) =>
  (lines: string[]) =>
    ["| Scheduled |", ...lastWords("initContainers", status), ...lastWords("containers", status)].every(words =>
      lines.some(line => line.includes(words)),
    )

function lastWords(list: "initContainers" | "containers", status: Json): string[] {
  const statuses: Json[] = (list === "containers" ? status.containerStatuses : status.initContainerStatuses) ?? []
  return statuses.flatMap(({ name, state, lastState }) => {
    const of = `spec.${list}{${name}}`
    const { reason = "" } = state.waiting ?? {}
    const hasRun = state.running || state.terminated || lastState?.terminated
    return [
      ...(hasRun ? [`| Started | kubelet | ${of}`] : []),
      ...(reason === "CrashLoopBackOff" ? [`| BackOff | kubelet | ${of}`] : []),
      ...(/^(Err|Image|Invalid)/.test(reason) ? [`${of} | Error: ${reason}`] : []),
    ]
  })
}

const tellsKilling = (lines: string[]) => lines.some(line => line.includes("| Killing |"))

const failing = (name: string) => async (on: Script) => {
  await live(on, pod(on, `${on.faulty}/${name}:1`), isWaiting("ImagePullBackOff"))
}

export const podLives = topic(
  "pods",
  "kubelet",
  {
    "an image is pulled": on => live(on, pod(on, "web"), isReady).then(() => {}),
    "an image is there already": async on => {
      await on.quietly.create("pods", pod(on, "web", { "metadata.name": "before" }))
      await on.untilObject("pods", "before", isReady)
      await live(on, pod(on, "web", { "spec.containers.0.imagePullPolicy": "IfNotPresent" }), isReady)
    },
    "a tag that does not exist": on =>
      live(on, pod(on, `${on.registry}/web:none`), isWaiting("ImagePullBackOff")).then(() => {}),
    "a repository that does not exist": on =>
      live(on, pod(on, `${on.registry}/none/at/all:1`), isWaiting("ImagePullBackOff")).then(() => {}),
    "a digest that does not exist": on =>
      live(on, pod(on, `${on.registry}/web@sha256:${"0".repeat(64)}`), isWaiting("ImagePullBackOff")).then(() => {}),
    "a registry that says 401": failing("status-401"),
    "a registry that says 403": failing("status-403"),
    "a registry that says 404": failing("status-404"),
    "a registry that says 429": failing("status-429"),
    "a registry that says 500": failing("status-500"),
    "a registry that says 503": failing("status-503"),
    "a registry that is not there": on =>
      live(on, pod(on, "127.0.0.1:9/app:1"), isWaiting("ImagePullBackOff")).then(() => {}),
    "a name that is none": on =>
      live(on, pod(on, `${on.registry}/UPPER:1`), isWaiting("InvalidImageName")).then(() => {}),
    "an image that may not be pulled": on =>
      live(
        on,
        pod(on, `${on.registry}/never/seen:1`, { "spec.containers.0.imagePullPolicy": "Never" }),
        isWaiting("ErrImageNeverPull"),
      ).then(() => {}),
    "back-off lasts, then it is tried again": async on => {
      const { watch } = await live(on, pod(on, `${on.registry}/web:none`), isWaiting("ImagePullBackOff"), {
        told: false,
      })
      await on.until("it is tried again", async () => {
        const reasons = watch.events.map(({ object }) => stateOf(object)?.state?.waiting?.reason)
        const backOff = reasons.indexOf("ImagePullBackOff")
        return backOff >= 0 && reasons.indexOf("ErrImagePull", backOff) > backOff
      })
      const times = watch.events
        .filter(({ object }) => stateOf(object)?.state?.waiting?.reason === "ErrImagePull")
        .map(({ object }) => object.metadata.resourceVersion)
      on.note("tried at least twice", times.length >= 2)
    },
    "a new image in place": async on => {
      await live(on, pod(on, "web"), isReady)
      const changed = await on.quietly.patch("pods", "a", "strategic", {
        spec: { containers: [{ name: "app", image: `${on.registry}/next:1` }] },
      })
      on.note("generation", changed.metadata.generation)
      const seen = await on.untilObject(
        "pods",
        "a",
        object => stateOf(object).restartCount === 1 && isReady(object) && stateOf(object).image.includes("/next:"),
      )
      on.note("status", podStatus(seen))
      const isTold = (line: string) => line.includes("Successfully pulled") && line.includes("/next:")
      on.note("events", await eventsOf(on, "Pod", "a", lines => lines.some(isTold)))
    },
    "a new image in place that does not exist, and back": async on => {
      await live(on, pod(on, "web"), isReady)
      await on.quietly.patch("pods", "a", "strategic", {
        spec: { containers: [{ name: "app", image: `${on.registry}/web:none` }] },
      })
      const stuck = await on.untilObject("pods", "a", isWaiting("ImagePullBackOff"))
      on.note("stuck", podStatus(stuck))
      await on.quietly.patch("pods", "a", "strategic", {
        spec: { containers: [{ name: "app", image: `${on.registry}/web:1` }] },
      })
      const back = await on.untilObject("pods", "a", isReady)
      on.note("back", podStatus(back))
    },
    "a crash loop": async on => {
      await record(on, pod(on, "crash"), () => untilBackOff(on))
    },
    "a crash loop, cured in place": async on => {
      await on.quietly.create("pods", pod(on, "crash"))
      await untilBackOff(on)
      await on.quietly.patch("pods", "a", "strategic", {
        spec: { containers: [{ name: "app", image: `${on.registry}/web:1` }] },
      })
      const isCured = (object: Json) => isReady(object) && stateOf(object).image.includes("/web:")
      const cured = await on.untilObject("pods", "a", isCured)
      on.note("state", {
        image: stateOf(cured).image,
        state: Object.keys(stateOf(cured).state),
        phase: cured.status.phase,
      })
    },
    "ends and restarts for ever": async on => {
      await record(on, pod(on, "once"), () => untilBackOff(on))
    },
    "never restarts, succeeds": on =>
      live(on, pod(on, "once", { "spec.restartPolicy": "Never" }), isOver).then(() => {}),
    "never restarts, fails": on => live(on, pod(on, "crash", { "spec.restartPolicy": "Never" }), isOver).then(() => {}),
    "restarts on failure, succeeds": on =>
      live(on, pod(on, "once", { "spec.restartPolicy": "OnFailure" }), isOver).then(() => {}),
    "ready after a while": on =>
      live(on, pod(on, "slow", { "spec.containers.0.readinessProbe": http({ periodSeconds: 1 }) }), isReady, {
        told: false,
      }).then(() => {}),
    "never ready": async on => {
      await on.quietly.create(
        "pods",
        pod(on, "deaf", { "spec.containers.0.readinessProbe": http({ periodSeconds: 1 }) }),
      )
      await on.until("it is said", async () =>
        (await eventsOf(on, "Pod", "a")).some(line => line.includes("Unhealthy")),
      )
      // A busy kubelet sends the event of a probe before the status in which the container runs.
      on.note("status", podStatus(await on.untilObject("pods", "a", object => stateOf(object)?.state?.running)))
      on.note("events", await eventsOf(on, "Pod", "a"))
    },
    "not alive": async on => {
      await on.quietly.create(
        "pods",
        pod(on, "deaf", { "spec.containers.0.livenessProbe": http({ periodSeconds: 1, failureThreshold: 2 }) }),
      )
      const restarted = await on.untilObject("pods", "a", object => stateOf(object)?.restartCount === 1)
      on.note("last", { ...stateOf(restarted).lastState.terminated, startedAt: "", finishedAt: "", containerID: "" })
      on.note(
        "events",
        (await eventsOf(on, "Pod", "a", tellsKilling)).filter(line => /Unhealthy|Killing/.test(line)),
      )
    },
    "a start that takes long": on =>
      live(
        on,
        pod(on, "slow", {
          "spec.containers.0.startupProbe": http({ periodSeconds: 1, failureThreshold: 30 }),
          "spec.containers.0.readinessProbe": http({ periodSeconds: 1 }),
        }),
        isReady,
        { told: false },
      ).then(() => {}),
    "a readiness gate": async on => {
      await on.quietly.create(
        "pods",
        pod(on, "web", { "spec.readinessGates": [{ conditionType: "example.com/gate" }] }),
      )
      const shut = await on.untilObject("pods", "a", object => stateOf(object)?.ready)
      on.note("shut", podStatus(shut))
      await on.quietly.patch("pods/status", "a", "strategic", {
        status: { conditions: [{ type: "example.com/gate", status: "True" }] },
      })
      const open = await on.untilObject("pods", "a", isReady)
      on.note("open", podStatus(open).conditions)
    },
    "asked to end, it ends": async on => {
      const { watch } = await live(on, pod(on, "web", { "spec.terminationGracePeriodSeconds": 20 }), isReady, {
        told: false,
      })
      const going = await on.quietly.remove("pods", "a")
      on.note("grace", going.metadata.deletionGracePeriodSeconds)
      await on.until("the watch shows its end", async () => watch.events.at(-1)?.type === "DELETED")
      const last = watch.events.at(-1)
      on.note("last", {
        type: last?.type,
        status: podStatus(last?.object),
        grace: last?.object.metadata.deletionGracePeriodSeconds,
      })
      on.note("events", (await eventsOf(on, "Pod", "a", tellsKilling)).slice(-1))
    },
    "asked to end, it does not listen": async on => {
      const { watch } = await live(on, pod(on, "stubborn"), isReady, { told: false })
      await on.quietly.remove("pods", "a")
      await on.until("the watch shows its end", async () => watch.events.at(-1)?.type === "DELETED")
      on.note("last", podStatus(watch.events.at(-1)?.object))
    },
    "ended by force": async on => {
      await live(on, pod(on, "stubborn", { "spec.terminationGracePeriodSeconds": 20 }), isReady, { told: false })
      await on
        .send("DELETE", on.path("pods", "a"), { query: { gracePeriodSeconds: 0 } })
        .then(({ status }) => on.note("status", status))
      await on.get("pods", "a")
    },
    "init containers, one after the other": async on => {
      const init = (name: string) => ({ name, image: `${on.registry}/once:1`, imagePullPolicy: "Always" })
      await live(on, pod(on, "web", { "spec.initContainers": [init("first"), init("second")] }), isReady)
    },
    "an init container that fails": async on => {
      const init = { name: "first", image: `${on.registry}/crash:1`, imagePullPolicy: "Always" }
      await record(on, pod(on, "web", { "spec.initContainers": [init] }), () => untilBackOff(on, "first"))
    },
    "an init container that fails for good": async on => {
      const init = { name: "first", image: `${on.registry}/crash:1`, imagePullPolicy: "Always" }
      await live(on, pod(on, "web", { "spec.initContainers": [init], "spec.restartPolicy": "Never" }), isOver)
    },
    "an init container without its image": async on => {
      const init = { name: "first", image: `${on.registry}/web:none`, imagePullPolicy: "Always" }
      await live(on, pod(on, "web", { "spec.initContainers": [init] }), isWaiting("ImagePullBackOff", "first"))
    },
    "a sidecar": async on => {
      const side = { name: "side", image: `${on.registry}/deaf:1`, imagePullPolicy: "Always", restartPolicy: "Always" }
      await live(on, pod(on, "web", { "spec.initContainers": [side] }), isReady)
    },
    "a sidecar does not keep a pod from ending": async on => {
      const side = { name: "side", image: `${on.registry}/deaf:1`, imagePullPolicy: "Always", restartPolicy: "Always" }
      await live(on, pod(on, "once", { "spec.initContainers": [side], "spec.restartPolicy": "Never" }), isOver, {
        told: false,
      })
    },
    "two containers, one without image": async on => {
      const object = pod(on, "web")
      object.spec.containers.push({ name: "bad", image: `${on.registry}/web:none`, imagePullPolicy: "Always" })
      await live(on, object, object => isWaiting("ImagePullBackOff", "bad")(object) && stateOf(object)?.state.running, {
        told: false,
      })
    },
    "a map it needs is not there": on =>
      live(
        on,
        pod(on, "web", { "spec.containers.0.envFrom": [{ configMapRef: { name: "none" } }] }),
        isWaiting("CreateContainerConfigError"),
        { told: false },
      ).then(() => {}),
    "no node is good enough": async on => {
      const isSaid = (object: Json) => object.status.conditions?.some(({ reason }: Json) => reason === "Unschedulable")
      for (const [name, fields] of Object.entries({
        selector: { "spec.nodeSelector": { type: "nowhere" } },
        taint: { "spec.nodeSelector": { type: "kwok" } },
        large: { "spec.containers.0.resources": { requests: { cpu: "1000" } } },
      })) {
        await on.quietly.create("pods", pod(on, "web", { "metadata.name": name, ...fields }))
        on.note(name, podStatus(await on.untilObject("pods", name, isSaid)))
        on.note("events", (await eventsOf(on, "Pod", name, atLeast(1))).slice(0, 1))
      }
    },
    "a scheduling gate": async on => {
      await on.quietly.create("pods", pod(on, "web", { "spec.schedulingGates": [{ name: "example.com/wait" }] }))
      on.note("waits", podStatus(await on.untilObject("pods", "a", object => object.status.conditions?.length)))
      await on.quietly.patch("pods", "a", "json", [{ op: "remove", path: "/spec/schedulingGates" }])
      await on.untilObject("pods", "a", isReady)
    },
    // On a busy machine a container needs some seconds of it to start.
    "a deadline of its own": on =>
      live(on, pod(on, "web", { "spec.activeDeadlineSeconds": 20 }), isOver, { told: false }).then(() => {}),
    evicted: async on => {
      const { watch } = await live(on, pod(on, "web"), isReady, { told: false })
      await on.create("pods/eviction", { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "a" } })
      await on.until("the watch shows its end", async () => watch.events.at(-1)?.type === "DELETED")
      on.note("last", podStatus(watch.events.at(-1)?.object).conditions)
    },
  },
  { withManagedFields: false, runsPods: true },
)
