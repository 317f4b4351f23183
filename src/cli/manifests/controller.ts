import { controllerName, type Manifest, partOf } from "./names.ts"

/** The namespace of the controllers: nothing runs in it that Pod Security "restricted" would refuse. */
export const namespaceManifest = (name: string): Manifest => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: {
    name,
    labels: {
      ...partOf,
      "pod-security.kubernetes.io/enforce": "restricted",
      "pod-security.kubernetes.io/enforce-version": "latest",
    },
  },
})

export const metricsPort = 8080

/** On the controllers' pods, by which everything else finds them. */
export const controllerLabels = { "app.kubernetes.io/name": controllerName }

/** On a namespace whose pods may read the metrics; other controllers use the same label. */
const scrapes = { metrics: "enabled" }

type Placed = { name: string; namespace: string; labels: Record<string, string> }

/**
 * Health and metrics are for the kubelet, whose traffic to pods of its own node every network allows, and for
 * Prometheus. Where the network does not enforce policies, the server's own limits still apply.
 */
export const controllerNetworkPolicy = (namespace: string): Manifest =>
  metricsNetworkPolicy({ name: controllerName, namespace, labels: controllerLabels })

export const metricsNetworkPolicy = ({ name, namespace, labels }: Placed): Manifest => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name, namespace, labels: { ...partOf, ...labels } },
  spec: {
    podSelector: { matchLabels: labels },
    policyTypes: ["Ingress"],
    ingress: [
      {
        from: [{ namespaceSelector: { matchLabels: scrapes } }],
        ports: [{ port: "metrics", protocol: "TCP" }],
      },
    ],
  },
})

/** The controllers as a workload. One replica acts; a second one stands by on the Lease. */
export function controllerDeployment({ namespace, image }: { namespace: string; image: string }): Manifest {
  const probe = (path: string) => ({ httpGet: { path, port: "metrics" }, periodSeconds: 10, timeoutSeconds: 5 })
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: controllerName, namespace, labels: { ...partOf, ...controllerLabels } },
    spec: {
      replicas: 1,
      selector: { matchLabels: controllerLabels },
      // The old pod gives its Lease back as it ends, so waiting for the new one first would only cost time.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
      template: {
        metadata: { labels: { ...partOf, ...controllerLabels } },
        spec: {
          serviceAccountName: controllerName,
          automountServiceAccountToken: true,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 65532,
            runAsGroup: 65532,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [
            {
              name: "controller",
              image,
              args: ["controller", "--lease-namespace", namespace, "--metrics-port", String(metricsPort)],
              ports: [{ name: "metrics", containerPort: metricsPort, protocol: "TCP" }],
              // A controller that cannot reach the API server is alive: restarting it would not bring the server back.
              livenessProbe: { ...probe("/livez"), initialDelaySeconds: 10, failureThreshold: 6 },
              readinessProbe: probe("/readyz"),
              resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ["ALL"] },
              },
            },
          ],
          terminationGracePeriodSeconds: 30,
        },
      },
    },
  }
}
