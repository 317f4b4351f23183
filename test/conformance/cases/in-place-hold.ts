import { grantName } from "#core/grant.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { binding, untilAllowed, user } from "./identities.ts"
import { first, second, third } from "./in-place-steps.ts"
import { daemonSet, deployment, statefulSet } from "./objects.ts"
import { here, type Policy, under } from "./policies.ts"
import { nowhere } from "./workload-steps.ts"

// The product's own policies, on both floors: what kubectl writes, and what is held then.

const holds = (on: Script): Policy[] =>
  inPlaceHolds
    .filter(({ spec }) => spec.paramKind.kind === "RoleBinding")
    .map(({ spec }) => ({
      kind: "mutating",
      spec: { ...spec, matchConstraints: { ...spec.matchConstraints, namespaceSelector: here(on) } } as Json,
      bindings: [{ paramRef: { name: grantName, parameterNotFoundAction: "Allow" } }],
    }))

const kinds = {
  deployments: { of: deployment, own: { spec: { strategy: { rollingUpdate: { maxUnavailable: 2 } } } } },
  statefulsets: { of: statefulSet, own: { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } } },
  daemonsets: { of: daemonSet, own: { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: "25%" } } } } },
} as const
type Kind = keyof typeof kinds

const merged = (object: Json, { spec }: Json): Json => ({ ...object, spec: { ...object.spec, ...spec } })

/** Kubectl's applies of a workload without pods, each followed by what the workload is like. */
async function begin(on: Script, kind: Kind, { hasOwn = false } = {}) {
  const { of, own } = kinds[kind]
  await on.quietly.create("rolebindings", {
    metadata: { name: grantName },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    subjects: [],
  })
  // The policies' parameters are the bindings that the server knows: it knows the grant when it knows a later one.
  const later = `${on.id}-later`
  await on.quietly.create("rolebindings", binding("later", "ClusterRole/view", user(later)))
  await untilAllowed(on, { user: later, verb: "list", resource: "pods", namespace: on.namespace })
  const manifest = (image: string, hasAsked = true): Json => {
    const object = of("web", { "spec.template.spec": { ...nowhere, containers: [{ name: "app", image }] } })
    const annotations = { [strategyAnnotation]: "InPlaceIfPossible" }
    const asked = { ...object, metadata: { ...object.metadata, ...(hasAsked && { annotations }) } }
    return hasOwn ? merged(asked, own) : asked
  }
  const tell = async (what: string) => {
    const { metadata, spec } = await on.quietly.get(kind, "web")
    const { paused, strategy, updateStrategy } = spec
    const owners = metadata.managedFields
      .filter(({ fieldsV1 }: Json) => fieldsV1["f:spec"]?.["f:updateStrategy"] ?? fieldsV1["f:spec"]?.["f:paused"])
      .map(({ manager, operation }: Json) => `${manager} ${operation}`)
    const { [heldMark]: held, [inPlaceAnnotation]: note } = metadata.annotations ?? {}
    on.note(what, { paused, strategy, updateStrategy, held, note, labels: metadata.labels, owners: owners.sort() })
  }
  return {
    tell,
    async apply(image: string, ...how: string[]) {
      on.file("web.json", manifest(image))
      await on.kubectl(["apply", ...how, "-f", "web.json"], { only: ({ code }) => code })
      await tell(`apply ${how.join(" ")}`)
    },
    async replace(image: string, options: { hasAsked?: boolean } = {}) {
      on.file("web.json", manifest(image, options.hasAsked))
      await on.kubectl(["replace", "-f", "web.json"], { only: ({ code }) => code })
      await tell(`replace ${image}`)
    },
    async patch(body: Json) {
      await on.quietly.patch(kind, "web", "merge", body)
      await tell("patch")
    },
  }
}

const serverSide = ["--server-side", "--force-conflicts"]

const story = (kind: Kind) => ({
  [`${kind}: a server-side apply after a client-side one, and back`]: (on: Script) =>
    under(on, holds(on), async () => {
      const { apply } = await begin(on, kind)
      for (const image of [first, second]) await apply(image)
      for (const image of [second, third]) await apply(image, ...serverSide)
      for (const image of [third, first]) await apply(image)
    }),
  [`${kind}: applies with a strategy of its own, the release, and the next hold`]: (on: Script) =>
    under(on, holds(on), async () => {
      const { apply, patch } = await begin(on, kind, { hasOwn: true })
      for (const image of [first, second, second]) await apply(image)
      const gone = { metadata: { annotations: { [heldMark]: null } } }
      await patch(gone)
      await patch({ ...gone, spec: released[kind] })
      await patch({ metadata: { labels: { [heldMark]: null } } })
      await apply(third, ...serverSide)
    }),
  [`${kind}: its marks taken away, and manifests that replace it`]: (on: Script) =>
    under(on, holds(on), async () => {
      const { apply, patch, replace } = await begin(on, kind, { hasOwn: true })
      for (const image of [first, second]) await apply(image)
      const gone = { [heldMark]: null }
      await patch({ metadata: { annotations: { [inPlaceAnnotation]: '{"operation":"1-a","reason":"Updating"}' } } })
      await patch({ metadata: { annotations: gone } })
      await patch({ metadata: { labels: gone } })
      await patch({ metadata: { annotations: { ...gone, [inPlaceAnnotation]: null }, labels: gone } })
      for (const image of [second, first, second]) await replace(image)
      await patch({ metadata: { annotations: { ...gone, [strategyAnnotation]: null }, labels: gone } })
      await replace(second, { hasAsked: false })
      // The controller's own release, and its end.
      await patch({ metadata: { annotations: gone }, spec: released[kind] })
      await patch({ metadata: { labels: gone } })
      await replace(first, { hasAsked: false })
    }),
})

const released: Record<Kind, Json> = {
  deployments: { paused: null },
  statefulsets: { updateStrategy: { rollingUpdate: { partition: 0 } } },
  daemonsets: { updateStrategy: { type: "RollingUpdate" } },
}

/** What the server says of them without a hold, what is kept of them in one, and the release. */
const blocks: readonly Json[] = [
  { maxUnavailable: "1" },
  { maxUnavailable: "150%" },
  { maxUnavailable: "007%" },
  { maxUnavailable: "00%" },
  { maxUnavailable: -1 },
  { maxUnavailable: 0, maxSurge: 0 },
  { maxUnavailable: 1, maxSurge: 1 },
  { maxUnavailable: null, maxSurge: 2 },
  { maxUnavailable: "100%", maxSurge: "0%" },
  { maxUnavailable: 0, maxSurge: "50%" },
]

const judged = {
  "daemonsets: strategies that the server refuses, in a hold": (on: Script) =>
    under(on, holds(on), async () => {
      const { apply, patch, tell } = await begin(on, "daemonsets", { hasOwn: true })
      await apply(first)
      const send = async (spec: Json) => {
        const args = ["patch", "daemonset", "web", "--type=merge", "-p", JSON.stringify({ spec })]
        await on.kubectl(args, { only: ({ code, stderr }) => ({ code, stderr }) })
        await tell("sent")
      }
      for (const rollingUpdate of blocks) {
        await send({ updateStrategy: { rollingUpdate } })
        const template = { spec: { containers: [{ name: "app", image: third }] } }
        await send({ template, updateStrategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } } })
      }
      await send({ updateStrategy: { rollingUpdate: { maxUnavailable: "25%", maxSurge: 0 } } })
      await apply(second)
      for (const rollingUpdate of blocks) await patch({ spec: { updateStrategy: { rollingUpdate } } })
      await patch({ metadata: { annotations: { [heldMark]: null } }, spec: released.daemonsets })
    }),
  "statefulsets: a partition that the server refuses, in a hold": (on: Script) =>
    under(on, holds(on), async () => {
      const { apply, patch } = await begin(on, "statefulsets", { hasOwn: true })
      for (const image of [first, second]) await apply(image)
      for (const partition of [-1, 3, -1]) await patch({ spec: { updateStrategy: { rollingUpdate: { partition } } } })
    }),
}

export const inPlaceHoldsOfWorkloads = topic("in place, hold policies", "registry", {
  ...story("deployments"),
  ...story("statefulsets"),
  ...story("daemonsets"),
  ...judged,
})
