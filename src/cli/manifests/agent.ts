import { type AgentLimits, usualLimits } from "#agent/index.ts"
import { agentName, agentNamespace } from "#policies/agent-node.ts"
import type { Permission } from "#runtime/controller.ts"
import { metricsNetworkPolicy, metricsPort } from "./controller.ts"
import { imageProgram, type Manifest, partOf } from "./names.ts"
import { rulesFor } from "./rules.ts"

export const usualSocket = "/run/containerd/containerd.sock"

/** A path that the DaemonSet mounts: absolute, and without a step back. Two patterns, because Helm knows no lookahead. */
export const socketPath = { pattern: /^\/[\w./@-]+$/, not: /\/\.\.\// }

/**
 * Without a compiler and with small heaps: a third less memory, and an agent has little to compute. They count on Node's
 * command line only. The agent must not use WebAssembly or `fetch`, which needs it.
 */
export const agentNodeFlags: readonly string[] = ["--lite-mode"]

/** On the agents' pods. */
export const agentLabels = { "app.kubernetes.io/name": agentName }
const rbac = "rbac.authorization.k8s.io/v1"

type Options = {
  image: string
  criSocket: string
  permissions: readonly Permission[]
  limits?: Record<keyof AgentLimits, number | string>
}

/**
 * The agents: one pod per node, in a namespace of their own. Pod Security must be "privileged" there, because every
 * stricter level refuses the mount of the socket; nothing else may run in it. The account reads and writes requests and
 * nothing else; the policy aim-agent-node limits its writes to its own node.
 */
export const agentManifests = ({ image, criSocket, permissions, limits = usualLimits }: Options): Manifest[] => [
  {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: agentNamespace, labels: { ...partOf, "pod-security.kubernetes.io/enforce": "privileged" } },
  },
  {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: agentName, namespace: agentNamespace, labels: partOf },
    automountServiceAccountToken: false,
  },
  {
    apiVersion: rbac,
    kind: "ClusterRole",
    metadata: { name: agentName, labels: partOf },
    rules: rulesFor(permissions),
  },
  {
    apiVersion: rbac,
    kind: "ClusterRoleBinding",
    metadata: { name: agentName, labels: partOf },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: agentName },
    subjects: [{ kind: "ServiceAccount", name: agentName, namespace: agentNamespace }],
  },
  metricsNetworkPolicy({ name: agentName, namespace: agentNamespace, labels: agentLabels }),
  daemonSet(image, criSocket, limits),
]

function daemonSet(image: string, criSocket: string, limits: NonNullable<Options["limits"]>): Manifest {
  const flags = {
    "--cri-socket": criSocket,
    "--metrics-port": metricsPort,
    "--stops-per-minute": limits.stopsPerMinute,
    "--pulls-per-node": limits.pullsPerNode,
    "--image-gc-high-threshold": limits.imageGcHighThresholdPercent,
  }
  const probe = (path: string) => ({ httpGet: { path, port: "metrics" }, periodSeconds: 10, timeoutSeconds: 5 })
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: agentName, namespace: agentNamespace, labels: { ...partOf, ...agentLabels } },
    spec: {
      selector: { matchLabels: agentLabels },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
      template: {
        metadata: { labels: { ...partOf, ...agentLabels } },
        spec: {
          serviceAccountName: agentName,
          automountServiceAccountToken: true,
          nodeSelector: { "kubernetes.io/os": "linux" },
          // Requests are for any node, also for one that takes no new pods.
          tolerations: [{ operator: "Exists" }],
          // The socket is root's and its group's: group 0 may connect, and no capability is needed.
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 65532,
            runAsGroup: 0,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [
            {
              name: "agent",
              image,
              command: [imageProgram.node, ...agentNodeFlags, imageProgram.aim],
              args: ["agent", ...Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)])],
              env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
              ports: [{ name: "metrics", containerPort: metricsPort, protocol: "TCP" }],
              livenessProbe: { ...probe("/livez"), initialDelaySeconds: 10, failureThreshold: 6 },
              readinessProbe: probe("/readyz"),
              resources: { requests: { cpu: "10m", memory: "80Mi" }, limits: { memory: "192Mi" } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ["ALL"] },
              },
              volumeMounts: [{ name: "runtime", mountPath: criSocket, readOnly: true }],
            },
          ],
          volumes: [{ name: "runtime", hostPath: { path: criSocket, type: "Socket" } }],
          terminationGracePeriodSeconds: 30,
        },
      },
    },
  }
}
