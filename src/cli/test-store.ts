import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { createCluster, type Json } from "#cluster-sim/index.ts"
import { createClient } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { testWorld } from "./test-world.ts"

/** A world whose cluster has these objects, with their status, and in which nothing moves. */
export const storedWorld = (clock: Clock, ...objects: readonly Json[]) => storedWorldOf({ clock }, ...objects)

/** The same where the cluster's clock is not the command line's. */
export async function storedWorldOf(
  { clock, clusterClock = clock }: { clock: Clock; clusterClock?: Clock },
  ...objects: readonly Json[]
) {
  const { transport } = createCluster({ clock: clusterClock })
  const connect = () =>
    createClient({ transport: { send: transport.send, close: () => {} }, clock, random: seededRandom(1) })
  const client = connect()
  for (const object of [crdOf(AlternateImageSource) as Json, ...objects]) {
    const resource = (await client.discover(object.apiVersion, object.kind))!
    const { status, ...rest } = object
    await client.patch(resource, object.metadata, { type: "apply", body: rest, force: true })
    if (status)
      await client.patch(resource, object.metadata, { type: "merge", body: { status } }, { subresource: "status" })
  }
  return { client, ...testWorld({ client }, { clock, connect: async () => connect() }) }
}
