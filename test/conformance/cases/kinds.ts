import { type Json, type Script, topic } from "../harness/script.ts"
import { change, container, cronJob, daemonSet, deployment, idlePod, job, service, statefulSet } from "./objects.ts"

const probe = { httpGet: { path: "/", port: 8080 } }

/** Only asked, so that no controller comes near it. */
const ask = (on: Script, resource: string, object: Json) => on.create(resource, object, { dryRun: "All" })

export const kinds = topic("kinds", "kinds", {
  "a pod's defaults": on => ask(on, "pods", idlePod("a")),
  "a pod with much in it": on =>
    ask(
      on,
      "pods",
      idlePod("a", {
        "spec.initContainers": [{ name: "init", image: "registry.test/init", restartPolicy: "Always" }],
        "spec.containers": [
          container("registry.test/app:latest", {
            ports: [{ containerPort: 80 }],
            env: [{ name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
            livenessProbe: probe,
            readinessProbe: { ...probe, periodSeconds: 2 },
            startupProbe: { exec: { command: ["true"] } },
            lifecycle: { preStop: { httpGet: { port: 80 } } },
            volumeMounts: [{ name: "e", mountPath: "/e" }],
          }),
        ],
        "spec.volumes": [
          { name: "e", emptyDir: {} },
          { name: "s", secret: { secretName: "s" } },
          { name: "h", hostPath: { path: "/" } },
        ],
      }),
    ),
  "how good a pod's service is": async on => {
    for (const [name, resources] of Object.entries({
      guaranteed: { limits: { cpu: "1", memory: "1Gi" } },
      burstable: { requests: { cpu: "1" } },
      besteffort: {},
    })) {
      const made = await on.quietly.create("pods", idlePod(name, { "spec.containers.0.resources": resources }), {
        dryRun: "All",
      })
      on.note(name, { class: made.status.qosClass, resources: made.spec.containers[0].resources })
    }
  },
  "pull policies follow the tag": async on => {
    for (const image of ["a", "a:latest", "a:1", `a@sha256:${"0".repeat(64)}`, "host:5000/a"]) {
      const made = await on.quietly.create("pods", idlePod("a", { "spec.containers.0.image": image }), {
        dryRun: "All",
      })
      on.note(image, made.spec.containers[0].imagePullPolicy)
    }
  },
  "pods that are refused": async on => {
    const bad: Record<string, Json>[] = [
      { "spec.containers": [] },
      { "spec.containers.0.image": "" },
      { "spec.containers.0.imagePullPolicy": "Sometimes" },
      { "spec.containers": [container(), container()] },
      { "spec.containers.0.livenessProbe": { periodSeconds: 1 } },
      { "spec.containers.0.livenessProbe": { ...probe, successThreshold: 2 } },
      { "spec.containers.0.volumeMounts": [{ name: "none", mountPath: "/a" }] },
      { "spec.containers.0.resources": { requests: { cpu: "2" }, limits: { cpu: "1" } } },
      { "spec.terminationGracePeriodSeconds": -1 },
      { "spec.serviceAccountName": "none" },
      { "spec.priorityClassName": "none" },
      { "spec.tolerations": [{ operator: "Equal" }] },
      { "spec.initContainers": [{ name: "app", image: "x" }] },
    ]
    for (const fields of bad) await ask(on, "pods", idlePod("a", fields))
  },
  "a deployment's defaults": on => ask(on, "deployments", deployment("a", { "spec.replicas": undefined })),
  "deployments that are refused": async on => {
    const bad: Record<string, Json>[] = [
      { "spec.selector": undefined },
      { "spec.selector": {} },
      { "spec.selector": { matchLabels: { app: "other" } } },
      { "spec.selector": { matchExpressions: [{ key: "app", operator: "Like" }] } },
      { "spec.replicas": -1 },
      { "spec.strategy": { type: "Yolo" } },
      { "spec.strategy": { type: "Recreate", rollingUpdate: { maxSurge: 1 } } },
      { "spec.strategy": { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } },
      { "spec.strategy": { rollingUpdate: { maxSurge: "a%" } } },
      { "spec.template.spec.restartPolicy": "Never" },
      { "spec.template": undefined },
      { "spec.minReadySeconds": 600, "spec.progressDeadlineSeconds": 600 },
    ]
    for (const fields of bad) await ask(on, "deployments", deployment("a", fields))
  },
  "a statefulset's defaults": on => ask(on, "statefulsets", statefulSet("a", { "spec.replicas": undefined })),
  "a statefulset with claims": on =>
    ask(
      on,
      "statefulsets",
      statefulSet("a", {
        "spec.volumeClaimTemplates": [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
          },
        ],
      }),
    ),
  "statefulsets that are refused": async on => {
    await ask(on, "statefulsets", statefulSet("a", { "spec.updateStrategy": { type: "Yolo" } }))
    await ask(on, "statefulsets", statefulSet("a", { "spec.podManagementPolicy": "Random" }))
    await ask(on, "statefulsets", statefulSet("a", { "spec.updateStrategy": { rollingUpdate: { partition: -1 } } }))
    await on.quietly.create("statefulsets", statefulSet("a"))
    await on.patch("statefulsets", "a", "merge", { spec: { serviceName: "other" } })
    await on.patch("statefulsets", "a", "merge", { spec: { podManagementPolicy: "Parallel" } })
  },
  "a daemonset's defaults": on => ask(on, "daemonsets", daemonSet("a")),
  "daemonsets that are refused": async on => {
    await ask(
      on,
      "daemonsets",
      daemonSet("a", { "spec.updateStrategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } }),
    )
    await ask(on, "daemonsets", daemonSet("a", { "spec.selector": { matchLabels: { app: "other" } } }))
  },
  "a job's defaults": on => ask(on, "jobs", job("a")),
  "jobs that are refused": async on => {
    await ask(on, "jobs", job("a", { "spec.template.spec.restartPolicy": "Always" }))
    await ask(on, "jobs", job("a", { "spec.template.spec.restartPolicy": undefined }))
    await ask(on, "jobs", job("a", { "spec.parallelism": -1, "spec.backoffLimit": -1 }))
    await ask(on, "jobs", job("a", { "spec.selector": { matchLabels: { a: "b" } } }))
    await on.quietly.create("jobs", job("a", { "spec.suspend": true }))
    await on.patch("jobs", "a", "merge", { spec: { completions: 5 } })
  },
  "how a refused change of a job's template is shown": async on => {
    await on.quietly.create("jobs", job("a", { "spec.suspend": true }))
    await on.patch("jobs", "a", "strategic", {
      spec: { template: { spec: { containers: [{ name: "app", image: "x:2" }] } } },
    })
  },
  "a cronjob's defaults": on => ask(on, "cronjobs", cronJob("a")),
  "cronjobs that are refused": async on => {
    await ask(on, "cronjobs", cronJob("a", { "spec.schedule": "sometimes" }))
    await ask(on, "cronjobs", cronJob("a", { "spec.schedule": "60 * * * *" }))
    await ask(on, "cronjobs", cronJob("a", { "spec.concurrencyPolicy": "Perhaps" }))
    await ask(on, "cronjobs", cronJob("a", { "spec.timeZone": "Mars/Olympus" }))
    await ask(on, "cronjobs", cronJob("x".repeat(53)))
  },
  "services of each type": async on => {
    await ask(on, "services", service("a"))
    await ask(on, "services", service("a", { "spec.clusterIP": "None" }))
    await ask(
      on,
      "services",
      service("a", { "spec.type": "ExternalName", "spec.externalName": "example.com", "spec.ports": undefined }),
    )
    await ask(on, "services", service("a", { "spec.type": "NodePort" }))
  },
  "services that are refused": async on => {
    await ask(on, "services", service("a", { "spec.ports": [] }))
    await ask(on, "services", service("a", { "spec.ports": [{ port: 0 }] }))
    await ask(on, "services", service("a", { "spec.ports": [{ port: 80 }, { port: 81 }] }))
    await ask(on, "services", service("a", { "spec.type": "Odd" }))
    await ask(on, "services", service("a", { "spec.clusterIP": "nonsense" }))
    const made = await on.quietly.create("services", service("kept"))
    await on.replace("services", change(made, { "spec.clusterIP": "10.96.77.77", "spec.clusterIPs": ["10.96.77.77"] }))
  },
  secrets: async on => {
    await ask(on, "secrets", { metadata: { name: "a" }, stringData: { plain: "text" }, data: { coded: "dGV4dA==" } })
    await ask(on, "secrets", { metadata: { name: "a" }, type: "kubernetes.io/dockerconfigjson", data: {} })
    await ask(on, "secrets", {
      metadata: { name: "a" },
      type: "kubernetes.io/dockerconfigjson",
      stringData: { ".dockerconfigjson": "{}" },
    })
    await ask(on, "secrets", { metadata: { name: "a" }, type: "kubernetes.io/service-account-token" })
  },
  budgets: async on => {
    const budget = (spec: Json) => ({
      metadata: { name: "a" },
      spec: { selector: { matchLabels: { a: "b" } }, ...spec },
    })
    await ask(on, "poddisruptionbudgets", budget({ minAvailable: 1 }))
    await ask(on, "poddisruptionbudgets", budget({ minAvailable: "50%" }))
    await ask(on, "poddisruptionbudgets", budget({ minAvailable: 1, maxUnavailable: 1 }))
    await ask(on, "poddisruptionbudgets", budget({ minAvailable: "a%" }))
    await ask(on, "poddisruptionbudgets", budget({ minAvailable: -1 }))
  },
  "network policies": async on => {
    const policy = (spec: Json) => ({ metadata: { name: "a" }, spec })
    const metrics = { from: [{ namespaceSelector: {} }], ports: [{ port: "metrics" }] }
    await ask(on, "networkpolicies", { metadata: { name: "a" } })
    await ask(on, "networkpolicies", policy({ podSelector: { matchLabels: { a: "b" } }, ingress: [metrics] }))
    await ask(on, "networkpolicies", policy({ egress: [{ to: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }] }))
    await ask(on, "networkpolicies", policy({ policyTypes: ["Egress"], egress: [] }))
    await ask(on, "networkpolicies", policy({ ingress: [{ from: [{}], ports: [{ port: 80, endPort: 79 }] }] }))
    await ask(on, "networkpolicies", policy({ policyTypes: ["Sideways"] }))
    await on.quietly.create("networkpolicies", policy({ ingress: [metrics] }))
    await on.patch("networkpolicies", "a", "merge", { spec: { podSelector: { matchLabels: { a: "b" } } } })
    await on.patch("networkpolicies", "a", "merge", { spec: { policyTypes: null, egress: [{}] } })
  },
  leases: async on => {
    const lease = (spec: Json) => ({ metadata: { name: "a" }, spec })
    await ask(
      on,
      "leases",
      lease({
        holderIdentity: "me",
        leaseDurationSeconds: 15,
        acquireTime: "2026-01-01T00:00:00.000000Z",
        renewTime: "2026-01-01T00:00:00.123456Z",
      }),
    )
    await ask(on, "leases", lease({ leaseDurationSeconds: 0 }))
    await ask(on, "leases", lease({ leaseTransitions: -1 }))
    await ask(on, "leases", lease({ renewTime: "now" }))
  },
  "roles and their bindings": async on => {
    await ask(on, "roles", {
      metadata: { name: "a" },
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
    })
    await ask(on, "roles", { metadata: { name: "a" }, rules: [{ apiGroups: [""], resources: ["pods"], verbs: [] }] })
    await ask(on, "clusterroles", {
      metadata: { name: on.id },
      rules: [{ nonResourceURLs: ["/healthz"], verbs: ["get"] }],
    })
    const roleRef = { kind: "Role", name: "a", apiGroup: "rbac.authorization.k8s.io" }
    await on.quietly.create("rolebindings", {
      metadata: { name: "b" },
      roleRef,
      subjects: [{ kind: "User", name: "u" }],
    })
    await on.patch("rolebindings", "b", "merge", { roleRef: { name: "other" } })
    await ask(on, "rolebindings", {
      metadata: { name: "c" },
      roleRef,
      subjects: [{ kind: "ServiceAccount", name: "x" }],
    })
  },
  events: async on => {
    const event = (fields: Json) => ({
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: "e" },
      involvedObject: { apiVersion: "v1", kind: "Pod", namespace: on.namespace, name: "p" },
      reason: "R",
      message: "m",
      type: "Normal",
      ...fields,
    })
    await on.create(
      "events",
      event({
        firstTimestamp: "2026-01-01T00:00:00Z",
        lastTimestamp: "2026-01-01T00:00:00Z",
        count: 1,
        source: { component: "c" },
      }),
    )
    await on.get("newevents", "e")
    await on.create(
      "events",
      event({ metadata: { name: "f" }, involvedObject: { kind: "Pod", namespace: "elsewhere", name: "p" } }),
    )
    await on.create("newevents", {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: "g" },
      regarding: { apiVersion: "v1", kind: "Pod", namespace: on.namespace, name: "p" },
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "example.com/c",
      reportingInstance: "i",
      action: "Acting",
      reason: "R",
      note: "n",
      type: "Normal",
    })
    await on.get("events", "g")
  },
  "priority classes": async on => {
    await ask(on, "priorityclasses", { metadata: { name: on.id }, value: 1000 })
    await ask(on, "priorityclasses", { metadata: { name: on.id }, value: 2_000_000_000 })
    await ask(on, "priorityclasses", { metadata: { name: "system-mine" }, value: 1 })
  },
  nodes: async on => {
    await ask(on, "nodes", { metadata: { name: on.id }, spec: { taints: [{ key: "k", effect: "NoSchedule" }] } })
    await ask(on, "nodes", { metadata: { name: on.id }, spec: { taints: [{ key: "k", effect: "Perhaps" }] } })
  },
  "a service account": on => ask(on, "serviceaccounts", { metadata: { name: "a" }, imagePullSecrets: [{ name: "s" }] }),
  "a quota and a limit range": async on => {
    await ask(on, "resourcequotas", { metadata: { name: "a" }, spec: { hard: { pods: "3", "requests.cpu": "1000m" } } })
    await ask(on, "limitranges", {
      metadata: { name: "a" },
      spec: { limits: [{ type: "Container", default: { cpu: "1" } }] },
    })
  },
  "an autoscaler": async on => {
    const scaler = (spec: Json) => ({
      metadata: { name: "a" },
      spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" }, maxReplicas: 3, ...spec },
    })
    await ask(on, "horizontalpodautoscalers", scaler({}))
    await ask(on, "horizontalpodautoscalers", scaler({ minReplicas: 5 }))
  },
  "a validating admission policy": async on => {
    const policy = (validations: Json) => ({
      metadata: { name: on.id },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] },
          ],
        },
        validations,
      },
    })
    await ask(on, "validatingadmissionpolicies", policy([{ expression: "object.spec.replicas < 5" }]))
    await ask(on, "validatingadmissionpolicies", policy([{ expression: "object.spec.replicas <" }]))
    await ask(on, "validatingadmissionpolicies", policy([]))
  },
})

/** What the server says it serves, of the kinds that the product meets. */
const served = [
  "configmaps",
  "events",
  "limitranges",
  "namespaces",
  "nodes",
  "persistentvolumeclaims",
  "pods",
  "resourcequotas",
  "secrets",
  "serviceaccounts",
  "services",
]

const resourcesOf = (body: Json, plurals?: string[]) =>
  body.resources
    ?.filter(({ name }: Json) => !plurals || plurals.includes(name.split("/")[0]))
    .map(({ storageVersionHash: _, ...resource }: Json) => resource)
    .sort((a: Json, b: Json) => (a.name < b.name ? -1 : 1))

export const discovery = topic("discovery", "registry", {
  "of the core group": async on => {
    const { body } = await on.quietly.send("GET", "/api/v1")
    const plain = served.filter(name => !["pods", "nodes", "services"].includes(name))
    on.note("resources", resourcesOf(body, plain))
    const names = resourcesOf(body, ["pods", "nodes", "services"]).map(({ name }: Json) => name)
    on.note(
      "subresources of the product's business",
      names.filter((name: string) => !/attach|binding|ephemeral|portforward|proxy|resize/.test(name)),
    )
  },
  "of workloads": async on => {
    for (const group of ["apps/v1", "batch/v1"]) {
      const { body } = await on.quietly.send("GET", `/apis/${group}`)
      on.note(group, { ...body, resources: resourcesOf(body) })
    }
  },
  "of small groups": async on => {
    for (const group of [
      "coordination.k8s.io/v1",
      "policy/v1",
      "rbac.authorization.k8s.io/v1",
      "apiextensions.k8s.io/v1",
      "discovery.k8s.io/v1",
      "events.k8s.io/v1",
      "scheduling.k8s.io/v1",
    ]) {
      const { body } = await on.quietly.send("GET", `/apis/${group}`)
      on.note(group, { ...body, resources: resourcesOf(body, undefined) })
    }
  },
  "of our own kinds": async on => {
    for (const path of ["/apis/autoimagemanager.io", "/apis/services.example.com"]) await on.send("GET", path)
    for (const group of ["autoimagemanager.io/v1alpha1", "services.example.com/v1alpha1"]) {
      const { body } = await on.quietly.send("GET", `/apis/${group}`)
      on.note(group, { ...body, resources: resourcesOf(body) })
    }
  },
  "of groups": async on => {
    await on.send("GET", "/apis/apps")
    await on.send("GET", "/apis/batch")
    const { body } = await on.quietly.send("GET", "/apis")
    const wanted = [
      "apps",
      "batch",
      "policy",
      "coordination.k8s.io",
      "rbac.authorization.k8s.io",
      "apiextensions.k8s.io",
    ]
    on.note(
      "groups",
      body.groups
        .filter(({ name }: Json) => wanted.includes(name))
        .sort((a: Json, b: Json) => (a.name < b.name ? -1 : 1)),
    )
    const core = await on.quietly.send("GET", "/api")
    on.note("core", { kind: core.body.kind, versions: core.body.versions })
  },
  "all at once": async on => {
    const headers = { accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json" }
    const { body, headers: said } = await on.quietly.send("GET", "/apis", { headers })
    on.note("type", said["content-type"])
    const apps = body.items.find(({ metadata }: Json) => metadata.name === "apps")
    on.note("apps", apps)
    const own = body.items.find(({ metadata }: Json) => metadata.name === "autoimagemanager.io")
    on.note("ours", own)
  },
  "schemas of our own kinds": async on => {
    const { status, body } = await on.quietly.send("GET", "/openapi/v3/apis/services.example.com/v1alpha1")
    const [name = "", schema] =
      (Object.entries(body.components?.schemas ?? {}) as [string, Json][]).find(([key]) => key.endsWith(".Dicom")) ?? []
    on.note("schema", {
      status,
      name,
      spec: schema?.properties?.spec,
      kind: schema?.["x-kubernetes-group-version-kind"],
    })
  },
})
