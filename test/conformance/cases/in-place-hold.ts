import { grantName } from "#core/grant.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
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
  const manifest = (image: string): Json => {
    const object = of("web", { "spec.template.spec": { ...nowhere, containers: [{ name: "app", image }] } })
    const annotations = { [strategyAnnotation]: "InPlaceIfPossible" }
    const asked = { ...object, metadata: { ...object.metadata, annotations } }
    return hasOwn ? merged(asked, own) : asked
  }
  const tell = async (what: string) => {
    const { metadata, spec } = await on.quietly.get(kind, "web")
    const { paused, strategy, updateStrategy } = spec
    const owners = metadata.managedFields
      .filter(({ fieldsV1 }: Json) => fieldsV1["f:spec"]?.["f:updateStrategy"] ?? fieldsV1["f:spec"]?.["f:paused"])
      .map(({ manager, operation }: Json) => `${manager} ${operation}`)
    const held = metadata.annotations[heldMark]
    on.note(what, { paused, strategy, updateStrategy, held, labels: metadata.labels, owners: owners.sort() })
  }
  return {
    tell,
    async apply(image: string, ...how: string[]) {
      on.file("web.json", manifest(image))
      await on.kubectl(["apply", ...how, "-f", "web.json"], { only: ({ code }) => code })
      await tell(`apply ${how.join(" ")}`)
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
})

const released: Record<Kind, Json> = {
  deployments: { paused: null },
  statefulsets: { updateStrategy: { rollingUpdate: { partition: 0 } } },
  daemonsets: { updateStrategy: { type: "RollingUpdate" } },
}

export const inPlaceHoldsOfWorkloads = topic("in place, hold policies", "registry", {
  ...story("deployments"),
  ...story("statefulsets"),
  ...story("daemonsets"),
})
