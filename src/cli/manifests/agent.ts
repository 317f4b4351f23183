import { agentName, agentNamespace } from "#policies/agent-node.ts"
import type { Permission } from "#runtime/controller.ts"
import { metricsNetworkPolicy, metricsPort } from "./controller.ts"
import { type Manifest, partOf } from "./names.ts"
import { rulesFor } from "./rules.ts"

export const usualSocket = "/run/containerd/containerd.sock"

const labels = { "app.kubernetes.io/name": agentName }
const rbac = "rbac.authorization.k8s.io/v1"

type Options = { image: string; criSocket: string; permissions: readonly Permission[] }

/**
 * The agents: one pod per node, in a namespace of their own. Pod Security must be "privileged" there, because every
 * stricter level refuses the mount of the socket; nothing else may run in it. The account reads and writes requests and
 * nothing else; the policy aim-agent-node limits its writes to its own node.
 */
export const agentManifests = ({ image, criSocket, permissions }: Options): Manifest[] => [
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
  metricsNetworkPolicy({ name: agentName, namespace: agentNamespace, labels }),
  daemonSet(image, criSocket),
]

function daemonSet(image: string, criSocket: string): Manifest {
  const probe = (path: string) => ({ httpGet: { path, port: "metrics" }, periodSeconds: 10, timeoutSeconds: 5 })
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: agentName, namespace: agentNamespace, labels: { ...partOf, ...labels } },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
      template: {
        metadata: { labels: { ...partOf, ...labels } },
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
              args: ["agent", "--cri-socket", criSocket, "--metrics-port", String(metricsPort)],
              env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
              ports: [{ name: "metrics", containerPort: metricsPort, protocol: "TCP" }],
              livenessProbe: { ...probe("/livez"), initialDelaySeconds: 10, failureThreshold: 6 },
              readinessProbe: probe("/readyz"),
              resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "192Mi" } },
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
