import type { Cache } from "#runtime/cache/cache.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import type { Instant } from "#runtime/clock.ts"
import { type Condition, setCondition } from "#runtime/conditions.ts"
import type { Controller, Permission, Wiring } from "#runtime/controller.ts"
import { type Held, hold, kindController, type Look } from "#runtime/kind-controller.ts"
import { core, type KubeObject, keyOf, resourceOf } from "#runtime/resource.ts"
import { type Series, seriesOf } from "#runtime/series.ts"

// A whole controller over the smallest of kinds: a Motto says what the ConfigMaps of its namespace with the label
// `motto` are to have under the key `motto`. It shows how little a kind needs, and tests the frame.

export const mottoNames = {
  group: "toys.example.com",
  version: "v1",
  kind: "Motto",
  plural: "mottos",
  scope: "Namespaced",
  shortNames: ["mo"],
} as const
export const mottos = resourceOf(mottoNames)
export const configMaps = core("configmaps", "ConfigMap")

const permissions: readonly Permission[] = [
  { resource: mottos, verbs: ["list", "watch"] },
  { resource: mottos, subresource: "status", verbs: ["update"] },
  { resource: configMaps, verbs: ["list", "watch", "patch"] },
]

const metrics = {
  motto_differing: { type: "gauge", labels: ["motto"], help: "ConfigMaps that do not have the motto yet." },
} as const

export type Motto = KubeObject & {
  apiVersion: string
  kind: string
  spec: { text: string }
  status?: { conditions: Condition[] }
}
type ConfigMap = KubeObject & { data?: Record<string, string> }
type World = { client: Wiring["client"]; maps: Cache<Held<ConfigMap>>; series: Series<typeof metrics> }

type Snapshot = { motto: Motto; maps: readonly ConfigMap[]; isListed: boolean; now: Instant }
type Action = { map: string; namespace: string; resourceVersion: string; text: string }
export type Plan = { actions: readonly Action[]; reason: string; message: string; lookAgainAt?: Instant }
type Done = { refused: string | undefined; lookAgainAt?: Instant | undefined }

function observe({ maps }: World, { object, now }: Look<Motto, undefined>): Snapshot {
  const keys = [...maps.keysBy("namespace", object.metadata.namespace ?? "")]
  return { motto: object, maps: keys.map(key => maps.get(key)!.object), isListed: maps.hasSynced, now }
}

function plan({ motto, maps, isListed, now }: Snapshot): Plan {
  if (!isListed) return { actions: [], reason: "Listing", message: "", lookAgainAt: now + 1000 }
  const { text } = motto.spec
  const different = maps.filter(({ data }) => data?.motto !== text)
  if (different.length === 0) return { actions: [], reason: "UpToDate", message: `${maps.length} have it` }
  const actions = different.map(({ metadata: { name, namespace = "", resourceVersion = "" } }) => ({
    map: name,
    namespace,
    resourceVersion,
    text,
  }))
  return { actions, reason: "Writing", message: `${different.length} of ${maps.length} differ` }
}

async function apply({ client }: World, { now }: Snapshot, { actions }: Plan): Promise<Done> {
  for (const { map, namespace, resourceVersion, text } of actions) {
    const body = { metadata: { resourceVersion }, data: { motto: text } }
    const outcome = await outcomeOf(client.patch(configMaps, { name: map, namespace }, { type: "merge", body }))
    if (outcome.is === "Refused") return { refused: outcome.error.said, lookAgainAt: now + 15_000 }
    // The next event shows it, unless nothing has arrived.
    if (outcome.is === "Unknown") return { refused: undefined, lookAgainAt: now + 1000 }
  }
  return { refused: undefined }
}

function report({ motto }: Snapshot, { reason, message }: Plan, done: Done | undefined, now: Instant) {
  const refused = done?.refused
  const stated = {
    type: "Ready",
    status: reason === "UpToDate" ? ("True" as const) : ("False" as const),
    reason: refused === undefined ? reason : "Refused",
    message: refused ?? message,
  }
  const isNews = stated.status === "True" && motto.status?.conditions[0]?.status !== "True"
  const episodes = isNews ? [{ type: "Normal" as const, reason, message }] : []
  return { status: { conditions: setCondition(motto.status?.conditions, stated, now) }, episodes }
}

export const mottoController = (): Controller =>
  kindController<Motto, World, undefined, Snapshot, Plan, Done>({
    name: "motto",
    resource: mottos,
    permissions,
    open(wiring, objects) {
      const namespace = ({ object }: Held<ConfigMap>) => [object.metadata.namespace ?? ""]
      const maps = wiring.watch<Held<ConfigMap>>(configMaps, {
        project: hold,
        indexes: { namespace },
        labelSelector: "motto",
      })
      maps.subscribe(({ before, after }) => {
        const { namespace: space } = (after ?? before)!.object.metadata
        for (const [key, { object }] of objects.entries()) if (object.metadata.namespace === space) wiring.enqueue(key)
      })
      return { client: wiring.client, maps, series: seriesOf(wiring.metrics, metrics) }
    },
    observe,
    plan,
    apply,
    reports: "after",
    report,
    onReported({ series }, { key, object }, _, { actions }) {
      const labels = { motto: keyOf(object.metadata) }
      series.publish(key, [{ metric: "motto_differing", labels, value: actions.length }])
    },
    forget: ({ series }, key) => series.forget(key),
  })
