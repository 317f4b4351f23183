import { expect, test } from "vitest"
import { podTemplateHash } from "./pod-template-hash.ts"
import { testWorld } from "./test-world.ts"

// Each was applied to a real 1.36 cluster; the hash is the one its ReplicaSet had.
const seen: Record<string, { hash: string; metadata: object; spec: object }> = {
  "the plainest template": {
    hash: "5474bf4c45",
    metadata: { labels: { app: "h1" } },
    spec: { containers: [{ name: "web", image: "shop/web:1.0" }] },
  },
  "many kinds of fields": {
    hash: "645469c5b4",
    metadata: { labels: { app: "h2", b: "c", "a/z": "q" }, annotations: { x: "y z" } },
    spec: {
      nodeSelector: { zone: "a" },
      securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 5 },
      tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 }],
      volumes: [
        { name: "e", emptyDir: {} },
        { name: "e2", emptyDir: { sizeLimit: "1Gi", medium: "Memory" } },
        { name: "c", configMap: { name: "cm", items: [{ key: "a", path: "b" }] } },
      ],
      initContainers: [{ name: "i", image: "busybox", restartPolicy: "Always" }],
      containers: [
        {
          name: "web",
          image: "shop/web:1.0",
          command: ["sh", "-c", 'echo <&> "é"'],
          env: [
            { name: "A", value: "b" },
            { name: "P", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          ],
          ports: [{ containerPort: 80, name: "http" }],
          resources: {
            requests: { cpu: "100m", memory: "128Mi" },
            limits: { cpu: "1.5", memory: "1Gi", "ephemeral-storage": "2e3" },
          },
          readinessProbe: { httpGet: { path: "/", port: "http" }, periodSeconds: 3 },
          livenessProbe: { tcpSocket: { port: 80 } },
          volumeMounts: [{ name: "e", mountPath: "/e" }],
          securityContext: { capabilities: { drop: ["ALL"] }, allowPrivilegeEscalation: false },
        },
      ],
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 5,
              podAffinityTerm: {
                topologyKey: "kubernetes.io/hostname",
                labelSelector: { matchLabels: { app: "h2" } },
              },
            },
          ],
        },
      },
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: "zone",
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: { matchLabels: { app: "h2" } },
        },
      ],
    },
  },
  "quantities in every form, and pointers to nothing": {
    hash: "7b69956dc9",
    metadata: { labels: { app: "h3" } },
    spec: {
      securityContext: {},
      terminationGracePeriodSeconds: 5,
      serviceAccountName: "default",
      containers: [
        {
          name: "web",
          image: "shop/web:1.0",
          securityContext: {},
          resources: { requests: { cpu: 0.5, memory: "64M" }, limits: { cpu: "2", memory: "100000Ki" } },
        },
        {
          name: "web2",
          image: "shop/web:1.0",
          resources: { requests: { cpu: "1000m", memory: "0" }, limits: { cpu: "1.1", memory: "1536Mi" } },
        },
      ],
    },
  },
}

for (const [name, { hash, ...template }] of Object.entries(seen))
  test(`${name}: the hash a real cluster gives`, () => {
    const world = testWorld()
    const labels = (template.metadata as { labels: Record<string, string> }).labels
    const created = world.create({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web" },
      spec: { selector: { matchLabels: labels }, template },
    })
    expect(podTemplateHash(created.spec.template)).toBe(hash)
  })

test("a collision gives another hash", () => {
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [] } }
  const hashes = [undefined, 0, 1, 2].map(count => podTemplateHash(template, count))
  expect(new Set(hashes).size).toBe(4)
})
