import { controllerLabels, metricsPort } from "#cli/manifests/controller.ts"
import { controllerName, type Manifest, partOf } from "#cli/manifests/names.ts"

const metadata = (namespace: string) => ({
  name: controllerName,
  namespace,
  labels: { ...partOf, ...controllerLabels },
})

/** At most one pod less: a budget that keeps one pod would never let the node of a single replica be drained. */
export const podDisruptionBudget = (namespace: string): Manifest => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: metadata(namespace),
  spec: { maxUnavailable: 1, selector: { matchLabels: controllerLabels } },
})

/** Without an address of its own: the operator reads from it which pods to scrape. */
export const metricsService = (namespace: string): Manifest => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: metadata(namespace),
  spec: {
    clusterIP: "None",
    selector: controllerLabels,
    ports: [{ name: "metrics", port: metricsPort, targetPort: "metrics", protocol: "TCP" }],
  },
})

export const serviceMonitor = (namespace: string, interval: string): Manifest => ({
  apiVersion: "monitoring.coreos.com/v1",
  kind: "ServiceMonitor",
  metadata: metadata(namespace),
  spec: {
    selector: { matchLabels: controllerLabels },
    endpoints: [{ port: "metrics", interval }],
  },
})
