import { events } from "#runtime/events.ts"
import { resourceName } from "#runtime/resource.ts"
import type { Json } from "#tools/kube/api.ts"
import type { Scrape } from "./controller-process.ts"
import { namespaces } from "./in-place-on-cluster-sim.ts"
import { imageOf } from "./in-place-workloads.ts"

/** A Deployment and its Canary have the same name. */
export type Web = { readonly name: string; readonly namespace: string }

export const websOf = (count: number): Web[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `web-${index}`,
    namespace: namespaces[index % namespaces.length]!,
  }))

/** On hollow nodes, too. */
export const deploymentOf = ({ name, namespace }: Web, replicas: number): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        tolerations: [{ key: "kwok.x-k8s.io/node", operator: "Exists" }],
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: "web",
            image: imageOf("v0"),
            ports: [{ containerPort: 8080 }],
            env: Array.from({ length: 8 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${at} of ${name}` })),
            resources: { requests: { cpu: "10m", memory: "16Mi" } },
          },
        ],
      },
    },
  },
})

export const canaryOf = ({ name, namespace }: Web, spec: Json): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "Canary",
  metadata: { name, namespace },
  spec: {
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
    service: { port: 80, targetPort: 8080 },
    ...spec,
  },
})

/** What the controller asked for, without watches, the Lease and events. */
export type Asked = { readonly writes: number; readonly reads: number; readonly conflicts: number }

export function askedIn({ sum, writes, lists, gets }: Scrape): Asked {
  const requests = (labels: Record<string, string>) => sum("rest_client_requests_total", labels)
  const told = ["create", "update", "patch"]
    .map(verb => requests({ verb, resource: resourceName(events) }))
    .reduce((total, each) => total + each, 0)
  return { writes: writes - told, reads: lists + gets, conflicts: requests({ code: "409" }) }
}

export const askedBetween = (before: Asked, after: Asked): Asked => ({
  writes: after.writes - before.writes,
  reads: after.reads - before.reads,
  conflicts: after.conflicts - before.conflicts,
})
