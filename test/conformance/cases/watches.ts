import { type Event, type Json, topic } from "../harness/script.ts"
import { configMap, dicom } from "./objects.ts"

const short = ({ type, object }: Event) => ({
  type,
  name: object.metadata?.name,
  data: object.data,
  message: object.message,
  code: object.code,
  reason: object.reason,
})

export const watches = topic("watches", "registry", {
  "a watch tells what is there, then what happens": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const watch = await on.watch("secrets")
    await watch.next(1)
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    await on.quietly.patch("secrets", "a", "merge", { metadata: { labels: { x: "y" } } })
    await on.quietly.remove("secrets", "b")
    await watch.next(3)
  },
  "a watch from a version tells what came after it": async on => {
    const made = await on.quietly.create("secrets", { metadata: { name: "a" } })
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    await on.quietly.remove("secrets", "a")
    const watch = await on.watch("secrets", { resourceVersion: made.metadata.resourceVersion })
    await watch.next(2)
  },
  "a watch from a list misses nothing": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const { metadata } = await on.quietly.list("secrets")
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    const watch = await on.watch("secrets", { resourceVersion: metadata.resourceVersion })
    await watch.next(1)
  },
  "a watch from 0": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const watch = await on.watch("secrets", { resourceVersion: "0" })
    await watch.next(1)
  },
  "events come in the order of the writes": async on => {
    const watch = await on.watch("secrets")
    for (let index = 0; index < 10; index++) await on.quietly.create("secrets", { metadata: { name: `n-${index}` } })
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        on.quietly.patch("secrets", `n-${index}`, "merge", { metadata: { labels: { x: "y" } } }),
      ),
    )
    await watch.until("all are told", () => watch.events.length === 20)
    const versions = watch.events.map(({ object }) => Number(object.metadata.resourceVersion))
    on.note(
      "types",
      watch.events.map(({ type }) => type),
    )
    on.note(
      "versions grow",
      versions.every((version, index) => index === 0 || version > (versions[index - 1] as number)),
    )
  },
  "an object that enters and leaves a selection": async on => {
    const watch = await on.watch("secrets", { labelSelector: "on=yes" })
    await on.quietly.create("secrets", { metadata: { name: "a", labels: { on: "no" } } })
    await on.quietly.patch("secrets", "a", "merge", { metadata: { labels: { on: "yes" } } })
    await on.quietly.patch("secrets", "a", "merge", { metadata: { annotations: { x: "y" } } })
    await on.quietly.patch("secrets", "a", "merge", { metadata: { labels: { on: "no" } } })
    await watch.next(3)
  },
  "a watch of one object": async on => {
    const watch = await on.watch("secrets", { fieldSelector: "metadata.name=b" })
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    await on.quietly.remove("secrets", "b")
    await watch.next(2)
  },
  "a watch at an object's path": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const watch = await on.watch(`${on.path("secrets")}/a`)
    await on.quietly.patch("secrets", "a", "merge", { metadata: { labels: { x: "y" } } })
    await watch.next(2)
  },
  "sendInitialEvents ends with a bookmark": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    const watch = await on.watch("secrets", {
      sendInitialEvents: true,
      resourceVersionMatch: "NotOlderThan",
      allowWatchBookmarks: true,
    })
    await watch.next(3)
    await on.quietly.create("secrets", { metadata: { name: "c" } })
    await watch.next(1)
  },
  "sendInitialEvents of custom resources": async on => {
    await on.quietly.create("dicoms", dicom("a"))
    const watch = await on.watch("dicoms", {
      sendInitialEvents: true,
      resourceVersionMatch: "NotOlderThan",
      allowWatchBookmarks: true,
    })
    await watch.next(2)
  },
  "sendInitialEvents wants its companions": async on => {
    const ask = (query: Record<string, string | boolean>) =>
      on.send("GET", on.path("secrets"), { query: { watch: true, ...query } })
    await ask({ sendInitialEvents: true })
    await ask({ sendInitialEvents: true, resourceVersionMatch: "Exact", allowWatchBookmarks: true })
    await ask({ resourceVersionMatch: "NotOlderThan" })
    await on.list("secrets", { sendInitialEvents: true })
  },
  "a watch without initial events": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const { metadata } = await on.quietly.list("secrets")
    const watch = await on.watch("secrets", {
      sendInitialEvents: false,
      resourceVersionMatch: "NotOlderThan",
      resourceVersion: metadata.resourceVersion,
    })
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    await watch.next(1)
  },
  "a watch ends when its time is over": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const watch = await on.watch("secrets", { timeoutSeconds: 3 })
    const events = await watch.end()
    on.note("events", events.map(short))
  },
  "a last bookmark before the time is over": async on => {
    const { metadata } = await on.quietly.list("secrets")
    const watch = await on.watch("secrets", {
      timeoutSeconds: 4,
      allowWatchBookmarks: true,
      resourceVersion: metadata.resourceVersion,
    })
    await on.until("it ends", async () => {
      await on.pause(200)
      return watch.events.some(({ type }) => type === "BOOKMARK")
    })
    on.note("bookmark", { ...watch.events[0]?.object, metadata: Object.keys(watch.events[0]?.object.metadata).sort() })
  },
  "a version that is too old": async on => {
    const watch = await on.watch("dicoms", { resourceVersion: "1", timeoutSeconds: 5 })
    await watch.next(1)
  },
  "a version that is not one": async on => {
    await on.send("GET", on.path("secrets"), { query: { watch: true, resourceVersion: "abc" } })
  },
  "a version of the future": async on => {
    const { status } = await on.send("GET", on.path("secrets"), {
      query: { watch: true, resourceVersion: "999999999999", timeoutSeconds: 2 },
    })
    on.note("status", status)
  },
  "a watch as a table": async on => {
    await on.quietly.create("configmaps", configMap("a", { x: "1" }))
    const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" }
    const { body } = await on.quietly.send("GET", on.path("configmaps"), {
      headers,
      query: { watch: true, timeoutSeconds: 3, fieldSelector: "metadata.name=a" },
    })
    on.note("event", body)
  },
  "a watch as partial object metadata": async on => {
    await on.quietly.create("configmaps", configMap("a", { x: "1" }))
    const headers = { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json" }
    const { body } = await on.quietly.send("GET", on.path("configmaps"), {
      headers,
      query: { watch: true, timeoutSeconds: 3, fieldSelector: "metadata.name=a" },
    })
    on.note("event", body)
  },
  "a write that changes nothing is not told": async on => {
    const made = await on.quietly.create("secrets", { metadata: { name: "a" } })
    const watch = await on.watch("secrets", { resourceVersion: made.metadata.resourceVersion })
    await on.quietly.replace("secrets", made)
    await on.quietly.patch("secrets", "a", "merge", {})
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    on.note("events", (await watch.next(1)).map(short))
  },
  "a finalizer's end is told as changes and one deletion": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a", finalizers: ["example.com/hold"] } })
    const watch = await on.watch("secrets")
    await on.quietly.remove("secrets", "a")
    await on.quietly.patch("secrets", "a", "merge", { metadata: { finalizers: null } })
    await watch.next(3)
  },
  "a watch of a kind that goes away": async on => {
    const group = `${on.id}.example.com`
    await on.quietly.create("customresourcedefinitions", {
      metadata: { name: `things.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        ],
      },
    })
    const things = `/apis/${group}/v1/namespaces/${on.namespace}/things`
    await on.until("it is served", async () => (await on.quietly.send("GET", things).catch(() => undefined)) as Json)
    await on.until("it can be written", async () =>
      on.quietly
        .create(things, { apiVersion: `${group}/v1`, kind: "Thing", metadata: { name: "a" } })
        .catch(() => undefined),
    )
    const watch = await on.watch(things)
    await watch.next(1)
    await on.quietly.remove("customresourcedefinitions", `things.${group}`)
    await watch.until("the deletion is told", ({ type }) => type === "DELETED")
    on.note(
      "told",
      watch.events.map(({ type, object }) => ({ type, name: object.metadata?.name })),
    )
  },
})
