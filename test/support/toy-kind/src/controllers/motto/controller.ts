import type { Cache } from "#runtime/cache/cache.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import type { Instant } from "#runtime/clock.ts"
import { conditionWriter } from "#runtime/conditions.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type Held, hold, type KindController, kindController, type Look } from "#runtime/kind-controller.ts"
import { core, type KubeObject, keyOf, resourceOf } from "#runtime/resource.ts"
import { type Series, seriesOf } from "#runtime/series.ts"
import { Motto, type reasons } from "../../api/v1alpha1/motto/index.ts"
import { mottoMetrics } from "./metrics.ts"

export const mottos = resourceOf(Motto)
export const configMaps = core("configmaps", "ConfigMap")

type ConfigMap = KubeObject & { data?: Record<string, string> }
type World = { client: Wiring["client"]; maps: Cache<Held<ConfigMap>>; series: Series<typeof mottoMetrics> }
type Snapshot = { motto: Motto; maps: readonly ConfigMap[]; now: Instant }
type Plan = { different: readonly ConfigMap[]; reason: keyof typeof reasons; message: string; lookAgainAt?: Instant }
type Done = { refused?: string; lookAgainAt?: Instant }

function observe({ maps }: World, { object, now }: Look<Motto, undefined>): Snapshot {
  const keys = [...maps.keysBy("namespace", object.metadata.namespace ?? "")]
  return { motto: object, maps: keys.map(key => maps.get(key)!.object), now }
}

function plan({ motto, maps }: Snapshot): Plan {
  const different = maps.filter(({ data }) => data?.motto !== motto.spec.text)
  if (different.length === 0) return { different, reason: "UpToDate", message: `${maps.length} have it` }
  return { different, reason: "Writing", message: `${different.length} of ${maps.length} differ` }
}

async function apply({ client }: World, { motto, now }: Snapshot, { different }: Plan): Promise<Done> {
  for (const { metadata } of different) {
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, data: { motto: motto.spec.text } }
    const outcome = await outcomeOf(client.patch(configMaps, metadata, { type: "merge", body }))
    if (outcome.is === "Refused") return { refused: outcome.error.said, lookAgainAt: now + 15_000 }
    // The next event shows it, unless nothing has arrived.
    if (outcome.is === "Unknown") return { lookAgainAt: now + 1000 }
  }
  return {}
}

function report({ motto }: Snapshot, { reason, message }: Plan, done: Done | undefined, now: Instant) {
  const [before = []] = [motto.status?.conditions]
  const state = conditionWriter<(typeof before)[number]>(motto.metadata.generation ?? 0, now)
  const [why, text] = done?.refused === undefined ? ([reason, message] as const) : (["Refused", done.refused] as const)
  const isNews = why === "UpToDate" && before[0]?.status !== "True"
  const episodes = isNews ? [{ type: "Normal" as const, reason, message }] : []
  return { status: { conditions: [state(before, "Ready", why === "UpToDate", why, text)] }, episodes }
}

export const motto: KindController<Motto, World, undefined, Snapshot, Plan, Done> = {
  name: "motto",
  resource: mottos,
  permissions: [
    { resource: mottos, verbs: ["list", "watch"] },
    { resource: mottos, subresource: "status", verbs: ["update"] },
    { resource: configMaps, verbs: ["list", "watch", "patch"] },
  ],
  open(wiring, objects) {
    const namespace = ({ object: { metadata } }: Held<ConfigMap>) =>
      Object.hasOwn(metadata.labels ?? {}, "motto") ? [metadata.namespace ?? ""] : []
    const options = { project: hold<ConfigMap>, indexes: { namespace }, labelSelector: "motto" }
    const maps = wiring.watch<Held<ConfigMap>>(configMaps, options)
    maps.subscribe(({ before, after }) => {
      for (const key of objects.keysBy("namespace", (after ?? before)!.object.metadata.namespace ?? ""))
        wiring.enqueue(key)
    })
    return { client: wiring.client, maps, series: seriesOf(wiring.metrics, mottoMetrics) }
  },
  indexes: { namespace: ({ object }) => [object.metadata.namespace ?? ""] },
  observe,
  plan,
  apply,
  reports: "after",
  report,
  onReported: ({ series }, { key, object }, _, { different }) =>
    series.publish(key, [
      { metric: "motto_differing", labels: { motto: keyOf(object.metadata) }, value: different.length },
    ]),
  forget: ({ series }, key) => series.forget(key),
}

export const createMottoController = () => kindController(motto)
