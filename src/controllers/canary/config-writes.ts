import { configMark, contentChecksum, nameIn, snapshotName, snapshotSuffix } from "#core/canary/config-refs.ts"
import type { Act } from "#core/canary/sight.ts"
import { orGone, orThere } from "#runtime/client/outcome.ts"
import { apiVersionOf, controllerRevisions, type KubeObject, type Resource } from "#runtime/resource.ts"
import { configMaps, snapshotAnnotation } from "./configs.ts"
import type { Json } from "./facts.ts"
import type { Seen } from "./observe.ts"
import { deployments, replicaSets, setResources } from "./resources.ts"
import type { World } from "./world.ts"
import type { Write } from "./write.ts"

/** The writes about configuration; undefined for every other write. */
export function configWrites({ client }: World, seen: Seen, act: Act): (() => Write)[] | undefined {
  const { canary } = seen.sight
  const { namespace } = canary.metadata
  const { workload, sets, snapshots } = seen.objects
  const { kind } = canary.spec.targetRef
  const resource: Resource = kind === "StatefulSet" || kind === "DaemonSet" ? setResources[kind] : deployments
  switch (act.do) {
    case "mark": {
      const { name, resourceVersion } = workload!.metadata
      const annotations = { [configMark]: act.mark || null }
      const body = { metadata: { resourceVersion }, spec: { template: { metadata: { annotations } } } }
      return [() => ({ resource, send: client.patch(resource, { name, namespace }, { type: "merge", body }) })]
    }
    case "snapshot":
      return [() => ({ resource: configMaps, send: copy(act) })]
    case "dropSnapshot": {
      const uid = snapshots.get(act.name) ?? ""
      return [
        () => ({
          resource: configMaps,
          send: orGone(client.delete(configMaps, { name: act.name, namespace }, { uid })),
        }),
      ]
    }
    case "giveSnapshot": {
      const owner = kind === "Deployment" ? replicaSets : controllerRevisions
      const body = {
        metadata: { uid: snapshots.get(act.name), ownerReferences: [ownedBy(owner, sets.get(act.set)!)] },
      }
      const send = () => client.patch(configMaps, { name: act.name, namespace }, { type: "merge", body })
      return [() => ({ resource: configMaps, send: send() })]
    }
    default:
      return undefined
  }

  /** Only the content that was decided about is copied: with another one the next event decides anew. */
  async function copy({ config, checksum }: Extract<Act, { do: "snapshot" }>): Promise<unknown> {
    const name = nameIn(config)
    const found = (await client.get(configMaps, { name, namespace })) as Json
    if (contentChecksum(found) !== checksum) return undefined
    const { data, binaryData } = found
    const snapshot = {
      apiVersion: apiVersionOf(configMaps),
      kind: configMaps.kind,
      metadata: {
        name: snapshotName(name, snapshotSuffix(canary.metadata.name, checksum)),
        namespace,
        annotations: { [snapshotAnnotation]: canary.metadata.name },
        ownerReferences: [ownedBy(resource, workload!)],
      },
      immutable: true,
      ...(data && { data }),
      ...(binaryData && { binaryData }),
    }
    return orThere(client.create(configMaps, snapshot as KubeObject))
  }
}

/** It goes with its owner, and does not keep the owner from going. */
const ownedBy = (resource: Resource, { metadata: { name, uid } }: KubeObject) => ({
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
  name,
  uid: uid ?? "",
})
