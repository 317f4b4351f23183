import type { FleetTransport } from "#core/cluster-fleet/transport.ts"
import { trouble } from "./trouble.ts"

/** One transport for all clusters of a hub: each is reached by the one that is named for it when it is asked. */
export function routeTransport(of: (cluster: string) => FleetTransport | undefined): FleetTransport {
  const unknown = async (cluster: string) => trouble("UnknownCluster", `no cluster ${cluster} is known`)
  return {
    apply: (cluster, ...rest) => of(cluster)?.apply(cluster, ...rest) ?? unknown(cluster),
    observe: (cluster, delivery) => of(cluster)?.observe(cluster, delivery) ?? unknown(cluster),
    remove: (cluster, delivery) => of(cluster)?.remove(cluster, delivery) ?? unknown(cluster),
    probe: cluster => of(cluster)?.probe(cluster) ?? unknown(cluster),
    subscribe: (cluster, onChange) => of(cluster)?.subscribe(cluster, onChange) ?? (() => {}),
  }
}
