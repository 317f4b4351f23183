import { namespaceManifest } from "./controller.ts"
import { type Manifest, partOf } from "./names.ts"

/** Where the server listens in its pod, and where it finds what it reads. */
export const dashboardPort = 8080
export const mounts = { authority: "/etc/aim/authority", tls: "/etc/aim/tls" } as const

const dashboardName = "aim-dashboard"
const labels = { "app.kubernetes.io/name": dashboardName }

export type DashboardWanted = {
  host: string
  basePath: string
  operates: boolean
  /** A Secret with a certificate and its key. Without one, a proxy in front ends TLS. */
  tlsSecret: string | undefined
}

type Options = DashboardWanted & { namespace: string; image: string }

/**
 * A server without rights: its account is bound to no role and its pod has no token. What a viewer sees is read with the
 * token that comes with the viewer's requests. Of the API server it knows the authority alone, from the ConfigMap that every
 * namespace has.
 */
export const dashboardManifests = (options: Options): Manifest[] => {
  const { namespace, tlsSecret } = options
  const metadata = { name: dashboardName, namespace, labels: { ...partOf, ...labels } }
  const port = { name: tlsSecret ? "https" : "http", protocol: "TCP" }
  return [
    namespaceManifest(namespace),
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata,
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ["Ingress"],
        ingress: [{ ports: [{ port: port.name, protocol: port.protocol }] }],
      },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: labels, ports: [{ ...port, port: tlsSecret ? 443 : 80, targetPort: port.name }] },
    },
    { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: deployment(options, port) },
  ]
}

function deployment(
  { host, basePath, operates, tlsSecret, image }: Options,
  { name, protocol }: { name: string; protocol: string },
) {
  const args = [
    ...["dashboard", "--in-cluster", "--host", host, "--port", String(dashboardPort)],
    ...(basePath === "" ? [] : ["--base-path", basePath]),
    ...(operates ? ["--operate"] : []),
    ...(tlsSecret ? ["--tls-cert", `${mounts.tls}/tls.crt`, "--tls-key", `${mounts.tls}/tls.key`] : []),
  ]
  // The server answers to its own name alone, also where the kubelet asks.
  const asks = { path: `${basePath}/`, port: name, scheme: tlsSecret ? "HTTPS" : "HTTP" }
  const probe = { httpGet: { ...asks, httpHeaders: [{ name: "Host", value: host }] }, timeoutSeconds: 5 }
  const volumes = [
    { name: "authority", configMap: { name: "kube-root-ca.crt" } },
    ...(tlsSecret ? [{ name: "tls", secret: { secretName: tlsSecret } }] : []),
  ]
  return {
    // Sessions are in the memory of one process.
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels: { ...partOf, ...labels } },
      spec: {
        serviceAccountName: dashboardName,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: {
          ...{ runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532 },
          seccompProfile: { type: "RuntimeDefault" },
        },
        containers: [
          {
            ...{ name: "dashboard", image, args },
            ports: [{ name, containerPort: dashboardPort, protocol }],
            livenessProbe: { ...probe, initialDelaySeconds: 10, failureThreshold: 6 },
            readinessProbe: probe,
            resources: { requests: { cpu: "20m", memory: "128Mi" }, limits: { memory: "512Mi" } },
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ["ALL"] },
            },
            volumeMounts: [
              { name: "authority", mountPath: mounts.authority, readOnly: true },
              ...(tlsSecret ? [{ name: "tls", mountPath: mounts.tls, readOnly: true }] : []),
            ],
          },
        ],
        volumes,
      },
    },
  }
}
