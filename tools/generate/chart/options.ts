import { agentLabels } from "#cli/manifests/agent.ts"
import { controllerLabels, metricsPort } from "#cli/manifests/controller.ts"
import { controllerName, type Manifest, partOf } from "#cli/manifests/names.ts"
import { agentName, agentNamespace } from "#policies/agent-node.ts"

/** A program that exports metrics: the name of its objects, and the labels of its pods. */
type Program = { name: string; namespace: string; labels: Record<string, string> }

export const controllersIn = (namespace: string): Program => ({
  name: controllerName,
  namespace,
  labels: controllerLabels,
})
export const agents: Program = { name: agentName, namespace: agentNamespace, labels: agentLabels }

const metadata = ({ name, namespace, labels }: Program) => ({ name, namespace, labels: { ...partOf, ...labels } })

/** At most one pod less: a budget that keeps one pod would never let the node of a single replica be drained. */
export const podDisruptionBudget = (program: Program): Manifest => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: metadata(program),
  spec: { maxUnavailable: 1, selector: { matchLabels: program.labels } },
})

/** Without an address of its own: the operator reads from it which pods to scrape. */
export const metricsService = (program: Program): Manifest => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: metadata(program),
  spec: {
    clusterIP: "None",
    selector: program.labels,
    ports: [{ name: "metrics", port: metricsPort, targetPort: "metrics", protocol: "TCP" }],
  },
})

export const serviceMonitor = (program: Program, interval: string): Manifest => ({
  apiVersion: "monitoring.coreos.com/v1",
  kind: "ServiceMonitor",
  metadata: metadata(program),
  spec: {
    selector: { matchLabels: program.labels },
    endpoints: [{ port: "metrics", interval }],
  },
})
