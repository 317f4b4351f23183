import type { Json } from "../../object.ts"

/**
 * What a real server was asked about the built-in kinds; its answers stand in `answers.jsonl`. A case is a request, so
 * that a newer Kubernetes can be asked again: see tools/record-kinds.ts.
 */

type Deep = Record<string, Json>

/** An object with fields set by path: `with({…}, { "spec.replicas": 2 })`; undefined takes one out. */
export function change(object: Json, fields: Deep): Json {
  const next = structuredClone(object)
  for (const [path, value] of Object.entries(fields)) {
    const steps = path.split(".").map(step => (/^\d+$/.test(step) ? Number(step) : step.replaceAll("~", ".")))
    let at = next
    for (const step of steps.slice(0, -1)) at = at[step] ??= {}
    const last = steps.at(-1)!
    if (value === undefined) delete at[last]
    else at[last] = value
  }
  return next
}

const container = { name: "app", image: "registry.test/app:1" }
const labels = { app: "web" }
const template = { metadata: { labels }, spec: { containers: [container] } }
const metadata = { name: "x", namespace: "default" }

/** Nobody schedules it, so that it stays as it was made. */
const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { schedulerName: "nobody", containers: [container] } }
const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata,
  spec: { replicas: 0, selector: { matchLabels: labels }, template },
}
const replicaSet = { ...deployment, kind: "ReplicaSet" }
const statefulSet = { ...deployment, kind: "StatefulSet", spec: { ...deployment.spec, serviceName: "web" } }
const daemonSet = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata,
  spec: {
    selector: { matchLabels: labels },
    template: { ...template, spec: { ...template.spec, nodeSelector: { never: "there" } } },
  },
}
const job = {
  apiVersion: "batch/v1",
  kind: "Job",
  metadata,
  spec: { suspend: true, template: { spec: { restartPolicy: "Never", containers: [container] } } },
}
const cronJob = {
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata,
  spec: { schedule: "*/5 * * * *", suspend: true, jobTemplate: { spec: { template: job.spec.template } } },
}
const service = {
  apiVersion: "v1",
  kind: "Service",
  metadata,
  spec: { selector: labels, ports: [{ port: 80 }] },
}
const budget = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata,
  spec: { minAvailable: 1, selector: { matchLabels: labels } },
}
const networkPolicy = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata,
  spec: { podSelector: { matchLabels: labels }, ingress: [{ ports: [{ port: "metrics" }] }] },
}
const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata,
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
}
const role = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "Role",
  metadata,
  rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
}
const binding = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata,
  roleRef: { kind: "Role", name: "x", apiGroup: "rbac.authorization.k8s.io" },
  subjects: [
    { kind: "ServiceAccount", name: "a", namespace: "default" },
    { kind: "User", name: "u" },
    { kind: "Group", name: "g" },
  ],
}
const lease = {
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata,
  spec: { holderIdentity: "me", leaseDurationSeconds: 15 },
}
const autoscaler = {
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata,
  spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "x" } },
}
const policy = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingAdmissionPolicy",
  metadata: { name: "x" },
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["nothings"] }],
    },
    validations: [{ expression: "true" }],
  },
}
const policyBinding = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingAdmissionPolicyBinding",
  metadata: { name: "x" },
  spec: { policyName: "x", validationActions: ["Deny"] },
}
const event = {
  apiVersion: "v1",
  kind: "Event",
  metadata,
  involvedObject: { kind: "Pod", namespace: "default", name: "p" },
  reason: "Tested",
  message: "it was",
  type: "Normal",
}

const httpProbe = { httpGet: { port: 8080 } }

/** Objects to create, as a dry run. */
export const creates: Record<string, Json> = {
  pod,
  "pod with everything that has defaults": change(pod, {
    "spec.initContainers": [
      { name: "init", image: "busybox", resources: { limits: { cpu: "0.1" } } },
      { name: "sidecar", image: "proxy:latest", restartPolicy: "Always", startupProbe: { tcpSocket: { port: "web" } } },
    ],
    "spec.containers": [
      {
        ...container,
        image: `registry.test:5000/app@sha256:${"a".repeat(64)}`,
        ports: [{ containerPort: 8080, name: "http" }],
        env: [
          { name: "A", value: "1" },
          { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          { name: "EMPTY", value: "" },
        ],
        livenessProbe: httpProbe,
        readinessProbe: { exec: { command: ["true"] }, periodSeconds: 3 },
        startupProbe: { grpc: { port: 9000 } },
        lifecycle: { preStop: { httpGet: { port: "http", path: "/stop" } } },
        resources: { limits: { cpu: "1000m", memory: "1024Mi" }, requests: { cpu: "0.5" } },
        volumeMounts: [{ name: "e", mountPath: "/e" }],
      },
      { name: "second", image: "registry.test:5000/app" },
    ],
    "spec.volumes": [
      { name: "e" },
      { name: "s", secret: { secretName: "s" } },
      { name: "c", configMap: { name: "c" } },
      { name: "h", hostPath: { path: "/h" } },
      { name: "d", downwardAPI: { items: [{ path: "l", fieldRef: { fieldPath: "metadata.labels" } }] } },
      { name: "p", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
      { name: "i", image: { reference: "registry.test/data" } },
    ],
    "spec.serviceAccount": "default",
  }),
  "pod guaranteed": change(pod, { "spec.containers.0.resources": { limits: { cpu: "1", memory: "1Gi" } } }),
  "pod on the host's network": change(pod, {
    "spec.hostNetwork": true,
    "spec.containers.0.ports": [{ containerPort: 80 }],
  }),
  "pod with its own tolerations": change(pod, {
    "spec.tolerations": [
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 },
    ],
    "spec.automountServiceAccountToken": false,
  }),
  "pod that tolerates everything": change(pod, { "spec.tolerations": [{ operator: "Exists" }] }),
  "pod that waits at a gate": change(pod, { "spec.schedulingGates": [{ name: "example.com/wait" }] }),
  "pod with a status of its own": change(pod, { status: { phase: "Running" } }),
  "pod with an odd quantity": change(pod, {
    "spec.containers.0.resources.requests": { cpu: "0.0001", memory: "1e3", "ephemeral-storage": "1.5Gi" },
  }),
  "pod with critical priority": change(pod, {
    "metadata.namespace": "kube-system",
    "spec.priorityClassName": "system-node-critical",
  }),
  "pod with an unknown priority": change(pod, { "spec.priorityClassName": "nope" }),
  "pod with an unknown account": change(pod, { "spec.serviceAccountName": "nope" }),
  "pod with resources of its own": change(pod, { "spec.resources": { limits: { cpu: "1", memory: "1Gi" } } }),

  // Refused.
  "pod without containers": change(pod, { "spec.containers": [] }),
  "pod without image": change(pod, { "spec.containers.0.image": "" }),
  "pod whose image is spaces": change(pod, { "spec.containers.0.image": " a " }),
  "pod without a container's name": change(pod, { "spec.containers.0.name": "" }),
  "pod with a bad container name": change(pod, { "spec.containers.0.name": "App_1" }),
  "pod with the same container twice": change(pod, { "spec.containers": [container, container] }),
  "pod whose init container has the same name": change(pod, { "spec.initContainers": [container] }),
  "pod with a bad restart policy": change(pod, { "spec.restartPolicy": "Sometimes" }),
  "pod with a bad DNS policy": change(pod, { "spec.dnsPolicy": "Sometimes" }),
  "pod with a bad pull policy": change(pod, { "spec.containers.0.imagePullPolicy": "Sometimes" }),
  "pod with a bad termination policy": change(pod, { "spec.containers.0.terminationMessagePolicy": "Sometimes" }),
  "pod with bad ports": change(pod, {
    "spec.containers.0.ports": [
      { containerPort: 0 },
      { containerPort: 99999, name: "Bad_Name_That_Is_Long" },
      { containerPort: 80, protocol: "HTTP" },
      { containerPort: 80, name: "twice" },
      { containerPort: 81, name: "twice", hostPort: 70000 },
    ],
  }),
  "pod with the same host port twice": change(pod, {
    "spec.containers.0.ports": [
      { containerPort: 80, hostPort: 80 },
      { containerPort: 81, hostPort: 80 },
    ],
  }),
  "pod with a probe without handler": change(pod, { "spec.containers.0.livenessProbe": { periodSeconds: 1 } }),
  "pod with bad probes": change(pod, {
    "spec.containers.0.livenessProbe": { ...httpProbe, successThreshold: 2, timeoutSeconds: -1 },
    "spec.containers.0.readinessProbe": {
      httpGet: { port: 0, scheme: "FTP" },
      terminationGracePeriodSeconds: 5,
      exec: { command: [] },
    },
    "spec.containers.0.startupProbe": { tcpSocket: { port: "Not A Port" }, terminationGracePeriodSeconds: 0 },
  }),
  "pod whose init container has a probe": change(pod, {
    "spec.initContainers": [{ name: "init", image: "a", readinessProbe: httpProbe }],
  }),
  "pod whose init container restarts oddly": change(pod, {
    "spec.initContainers": [{ name: "init", image: "a", restartPolicy: "Sometimes" }],
  }),
  "pod with an empty lifecycle": change(pod, { "spec.containers.0.lifecycle": { preStop: {} } }),
  "pod with bad variables": change(pod, {
    "spec.containers.0.env": [
      { name: "" },
      { name: "A=B" },
      { name: "C", valueFrom: {} },
      { name: "D", value: "d", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "E", valueFrom: { fieldRef: { fieldPath: "spec.nope" } } },
      { name: "F", valueFrom: { secretKeyRef: { name: "s", key: "" } } },
      { name: "G", valueFrom: { configMapKeyRef: { name: "c", key: "a b" } } },
    ],
    "spec.containers.0.envFrom": [{}, { configMapRef: { name: "" } }],
  }),
  "pod with bad mounts": change(pod, {
    "spec.volumes": [{ name: "v", emptyDir: {} }],
    "spec.containers.0.volumeMounts": [
      { name: "nope", mountPath: "/a" },
      { name: "v", mountPath: "" },
      { name: "v", mountPath: "/b", subPath: "../x" },
      { name: "v", mountPath: "/b" },
    ],
  }),
  "pod with bad volumes": change(pod, {
    "spec.volumes": [
      { name: "v", emptyDir: {} },
      { name: "v", emptyDir: {} },
      { name: "", emptyDir: {} },
      { name: "Bad", emptyDir: {} },
      { name: "two", emptyDir: {}, hostPath: { path: "/a" } },
      { name: "c", configMap: {} },
      { name: "s", secret: { items: [{ key: "", path: "/abs" }] } },
      { name: "p", persistentVolumeClaim: {} },
      { name: "h", hostPath: { path: "" } },
    ],
  }),
  "pod with bad resources": change(pod, {
    "spec.containers.0.resources": {
      limits: { cpu: "1", memory: "1Gi", pods: "1" },
      requests: { cpu: "2", memory: "-1", "example.com/gpu": "1" },
    },
  }),
  "pod with half a device": change(pod, {
    "spec.containers.0.resources": { limits: { "example.com/gpu": "500m" } },
  }),
  "pod with bad tolerations": change(pod, {
    "spec.tolerations": [
      { key: "a b" },
      { operator: "Equal" },
      { key: "k", operator: "Exists", value: "v" },
      { key: "k", tolerationSeconds: 5, effect: "NoSchedule" },
      { key: "k", operator: "Like" },
      { key: "k", effect: "Maybe" },
    ],
  }),
  "pod with a bad deadline": change(pod, { "spec.activeDeadlineSeconds": 0 }),
  "pod with a negative grace period": change(pod, { "spec.terminationGracePeriodSeconds": -5 }),
  "pod with bad names": change(pod, {
    "spec.nodeName": "Bad Node",
    "spec.hostname": "Bad.Host",
    "spec.subdomain": "Sub_domain",
    "spec.serviceAccountName": "Bad Account",
    "spec.nodeSelector": { "a b": "c d" },
  }),
  "pod with bad labels": change(pod, { "metadata.labels": { "a b": "c d" } }),
  "pod with a bad name": change(pod, { "metadata.name": "Bad_Name" }),
  "pod with a bad gate": change(pod, { "spec.readinessGates": [{ conditionType: "a b" }] }),
  "pod without a name": change(pod, { "metadata.name": undefined }),
  "pod with bad spread": change(pod, {
    "spec.topologySpreadConstraints": [{ maxSkew: 0, topologyKey: "", whenUnsatisfiable: "Perhaps" }],
  }),
  "pod with a good spread and affinity": change(pod, {
    "spec.topologySpreadConstraints": [
      { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: { matchLabels: labels } },
    ],
    "spec.affinity": {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { topologyKey: "zone", labelSelector: { matchLabels: labels } } },
        ],
      },
    },
  }),
  "pod whose security is privileged and not": change(pod, {
    "spec.containers.0.securityContext": { privileged: true, allowPrivilegeEscalation: false, runAsUser: -1 },
  }),

  deployment,
  "deployment without replicas": change(deployment, { "spec.replicas": undefined }),
  "deployment that recreates": change(deployment, { "spec.strategy": { type: "Recreate" } }),
  "deployment with half a strategy": change(deployment, { "spec.strategy": { rollingUpdate: { maxSurge: 2 } } }),
  "deployment with template resources": change(deployment, {
    "spec.template.spec.containers.0.resources": { limits: { cpu: "2000m" } },
  }),
  "deployment without selector": change(deployment, { "spec.selector": undefined }),
  "deployment with an empty selector": change(deployment, { "spec.selector": {} }),
  "deployment with another selector": change(deployment, { "spec.selector": { matchLabels: { app: "other" } } }),
  "deployment with a bad selector": change(deployment, {
    "spec.selector": { matchExpressions: [{ key: "app", operator: "Like", values: ["a"] }] },
  }),
  "deployment with a selector without values": change(deployment, {
    "spec.selector": { matchExpressions: [{ key: "app", operator: "In" }] },
  }),
  "deployment with an Exists with values": change(deployment, {
    "spec.selector": { matchExpressions: [{ key: "app", operator: "Exists", values: ["a"] }] },
  }),
  "deployment with a bad label in the selector": change(deployment, {
    "spec.selector": { matchLabels: { app: "a b" } },
  }),
  "deployment with bad numbers": change(deployment, {
    "spec.replicas": -1,
    "spec.minReadySeconds": -1,
    "spec.revisionHistoryLimit": -1,
    "spec.progressDeadlineSeconds": -5,
  }),
  "deployment with a short deadline": change(deployment, {
    "spec.minReadySeconds": 600,
    "spec.progressDeadlineSeconds": 600,
  }),
  "deployment with an unknown strategy": change(deployment, { "spec.strategy": { type: "Yolo" } }),
  "deployment that recreates by rolling": change(deployment, {
    "spec.strategy": { type: "Recreate", rollingUpdate: { maxSurge: 1 } },
  }),
  "deployment that cannot move": change(deployment, {
    "spec.strategy": { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
  }),
  "deployment with bad percents": change(deployment, {
    "spec.strategy": { rollingUpdate: { maxSurge: "a%", maxUnavailable: "101%" } },
  }),
  "deployment with negative surge": change(deployment, {
    "spec.strategy": { rollingUpdate: { maxSurge: -1, maxUnavailable: "0%" } },
  }),
  "deployment whose pods end": change(deployment, { "spec.template.spec.restartPolicy": "Never" }),
  "deployment whose pods have a deadline": change(deployment, { "spec.template.spec.activeDeadlineSeconds": 5 }),
  "deployment without image": change(deployment, { "spec.template.spec.containers.0.image": undefined }),
  "deployment without template": change(deployment, { "spec.template": undefined }),
  "deployment with bad template labels": change(deployment, { "spec.template.metadata.labels": { app: "a b" } }),
  "deployment with the same container twice": change(deployment, {
    "spec.template.spec.containers": [container, container],
  }),

  replicaSet,
  "replicaset with another selector": change(replicaSet, { "spec.selector": { matchLabels: { app: "other" } } }),
  "replicaset with an empty selector": change(replicaSet, { "spec.selector": {} }),
  "replicaset with negative replicas": change(replicaSet, { "spec.replicas": -2 }),

  statefulSet,
  "statefulset with claims": change(statefulSet, {
    "spec.volumeClaimTemplates": [{ metadata: { name: "data" }, spec: claim.spec }],
    "spec.template.spec.containers.0.volumeMounts": [{ name: "data", mountPath: "/data" }],
  }),
  "statefulset on delete": change(statefulSet, { "spec.updateStrategy": { type: "OnDelete" } }),
  "statefulset rolling by type": change(statefulSet, { "spec.updateStrategy": { type: "RollingUpdate" } }),
  "statefulset on delete with a partition": change(statefulSet, {
    "spec.updateStrategy": { type: "OnDelete", rollingUpdate: { partition: 1 } },
  }),
  "statefulset with an unknown strategy": change(statefulSet, { "spec.updateStrategy": { type: "Yolo" } }),
  "statefulset with an unknown order": change(statefulSet, { "spec.podManagementPolicy": "Random" }),
  "statefulset with bad numbers": change(statefulSet, {
    "spec.replicas": -1,
    "spec.updateStrategy": { rollingUpdate: { partition: -1, maxUnavailable: 0 } },
    "spec.ordinals": { start: -1 },
  }),
  "statefulset with bad retention": change(statefulSet, {
    "spec.persistentVolumeClaimRetentionPolicy": { whenDeleted: "Maybe" },
  }),
  "statefulset whose pods end": change(statefulSet, { "spec.template.spec.restartPolicy": "OnFailure" }),
  "statefulset with another selector": change(statefulSet, { "spec.selector": { matchLabels: { app: "other" } } }),
  "statefulset with a dotted name": change(statefulSet, { "metadata.name": "a.b" }),

  daemonSet,
  "daemonset on delete": change(daemonSet, { "spec.updateStrategy": { type: "OnDelete" } }),
  "daemonset that surges": change(daemonSet, {
    "spec.updateStrategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  }),
  "daemonset that surges and not": change(daemonSet, {
    "spec.updateStrategy": { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
  }),
  "daemonset that cannot move": change(daemonSet, {
    "spec.updateStrategy": { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
  }),
  "daemonset with an unknown strategy": change(daemonSet, { "spec.updateStrategy": { type: "Yolo" } }),
  "daemonset with another selector": change(daemonSet, { "spec.selector": { matchLabels: { app: "other" } } }),
  "daemonset with an empty selector": change(daemonSet, { "spec.selector": {} }),
  "daemonset whose pods end": change(daemonSet, { "spec.template.spec.restartPolicy": "Never" }),

  "controller revision": {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata,
    revision: 1,
    data: { spec: { template: {} } },
  },
  "controller revision without data": { apiVersion: "apps/v1", kind: "ControllerRevision", metadata, revision: -1 },

  job,
  "job with labels": change(job, { "spec.template.metadata": { labels } }),
  "job with completions": change(job, { "spec.completions": 3 }),
  "job with parallelism": change(job, { "spec.parallelism": 2 }),
  "job indexed": change(job, {
    "spec.completionMode": "Indexed",
    "spec.completions": 2,
    "spec.backoffLimitPerIndex": 1,
  }),
  "job with a failure policy": change(job, {
    "spec.podFailurePolicy": { rules: [{ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget" }] }] },
  }),
  "job that restarts for ever": change(job, { "spec.template.spec.restartPolicy": "Always" }),
  "job without a restart policy": change(job, { "spec.template.spec.restartPolicy": undefined }),
  "job with bad numbers": change(job, {
    "spec.completions": -1,
    "spec.parallelism": -1,
    "spec.backoffLimit": -1,
    "spec.activeDeadlineSeconds": -1,
    "spec.ttlSecondsAfterFinished": -1,
  }),
  "job with a selector of its own": change(job, { "spec.selector": { matchLabels: { a: "b" } } }),
  "job with an unknown mode": change(job, { "spec.completionMode": "Odd" }),
  "job indexed without completions": change(job, { "spec.completionMode": "Indexed", "spec.parallelism": 1 }),

  cronJob,
  "cronjob with a bad schedule": change(cronJob, { "spec.schedule": "now and then" }),
  "cronjob without schedule": change(cronJob, { "spec.schedule": "" }),
  "cronjob with bad numbers": change(cronJob, {
    "spec.startingDeadlineSeconds": -1,
    "spec.successfulJobsHistoryLimit": -1,
    "spec.failedJobsHistoryLimit": -1,
  }),
  "cronjob with an unknown policy": change(cronJob, { "spec.concurrencyPolicy": "Maybe" }),
  "cronjob with a bad zone": change(cronJob, { "spec.timeZone": "Mars/Olympus" }),
  "cronjob in a zone": change(cronJob, { "spec.timeZone": "Europe/Berlin" }),
  "cronjob with a long name": change(cronJob, { "metadata.name": "a".repeat(53) }),
  "cronjob that restarts for ever": change(cronJob, { "spec.jobTemplate.spec.template.spec.restartPolicy": "Always" }),

  service,
  "service headless": change(service, { "spec.clusterIP": "None" }),
  "service on node ports": change(service, { "spec.type": "NodePort" }),
  "service with a balancer": change(service, { "spec.type": "LoadBalancer" }),
  "service elsewhere": change(service, {
    "spec.type": "ExternalName",
    "spec.externalName": "example.com",
    "spec.ports": undefined,
    "spec.selector": undefined,
  }),
  "service sticky": change(service, { "spec.sessionAffinity": "ClientIP" }),
  "service without ports": change(service, { "spec.ports": [] }),
  "service with bad ports": change(service, {
    "spec.ports": [{ port: 0 }, { port: 80, name: "Bad_Name", protocol: "HTTP", targetPort: 99999 }],
  }),
  "service with unnamed ports": change(service, { "spec.ports": [{ port: 80 }, { port: 81 }] }),
  "service with the same port twice": change(service, {
    "spec.ports": [
      { port: 80, name: "a" },
      { port: 80, name: "a" },
    ],
  }),
  "service of an unknown type": change(service, { "spec.type": "Carrier" }),
  "service with an unknown affinity": change(service, { "spec.sessionAffinity": "Maybe" }),
  "service with a bad selector": change(service, { "spec.selector": { "a b": "c d" } }),
  "service with a bad name": change(service, { "metadata.name": "1.x" }),
  "service elsewhere without a name": change(service, { "spec.type": "ExternalName", "spec.ports": undefined }),

  "config map": { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" }, binaryData: { b: "AA==" } },
  "config map without data": { apiVersion: "v1", kind: "ConfigMap", metadata },
  "config map with bad keys": { apiVersion: "v1", kind: "ConfigMap", metadata, data: { "a b": "1", "..": "2" } },
  "config map with a key twice": {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata,
    data: { a: "1" },
    binaryData: { a: "AA==" },
  },
  secret: { apiVersion: "v1", kind: "Secret", metadata, stringData: { a: "text" }, data: { b: "AA==" } },
  "secret with bad keys": { apiVersion: "v1", kind: "Secret", metadata, stringData: { "a b": "1" } },
  "secret for a registry without its key": {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    type: "kubernetes.io/dockerconfigjson",
  },
  "secret for a registry with bad JSON": {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    type: "kubernetes.io/dockerconfigjson",
    stringData: { ".dockerconfigjson": "no" },
  },
  "secret for TLS without keys": { apiVersion: "v1", kind: "Secret", metadata, type: "kubernetes.io/tls" },
  "service account": { apiVersion: "v1", kind: "ServiceAccount", metadata, imagePullSecrets: [{ name: "a" }] },
  namespace: { apiVersion: "v1", kind: "Namespace", metadata: { name: "x" } },
  "namespace with a bad name": { apiVersion: "v1", kind: "Namespace", metadata: { name: "a.b" } },
  node: { apiVersion: "v1", kind: "Node", metadata: { name: "x" }, status: { capacity: { cpu: "2", pods: "10" } } },
  "node with a bad taint": {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "x" },
    spec: {
      taints: [
        { key: "a b", effect: "Maybe" },
        { key: "k", effect: "NoSchedule" },
        { key: "k", effect: "NoSchedule" },
      ],
    },
  },
  claim,
  "claim without size": change(claim, { "spec.resources": undefined }),
  "claim without modes": change(claim, { "spec.accessModes": [] }),
  "claim with an unknown mode": change(claim, { "spec.accessModes": ["Sometimes"] }),
  "limit range": {
    apiVersion: "v1",
    kind: "LimitRange",
    metadata,
    spec: { limits: [{ type: "Container", max: { cpu: "2" }, min: { cpu: "100m" }, default: { memory: "1Gi" } }] },
  },
  quota: { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard: { pods: "10", "limits.cpu": "2000m" } } },
  event,
  "event in another namespace": change(event, { "involvedObject.namespace": "other" }),
  "event of the new group": {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata,
    eventTime: "2026-01-02T03:04:05.000006Z",
    reportingController: "example.com/c",
    reportingInstance: "c-0",
    action: "Testing",
    reason: "Tested",
    regarding: { kind: "Pod", namespace: "default", name: "p" },
    note: "it was",
    type: "Normal",
  },
  "event of the new group without much": {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata,
    regarding: { kind: "Pod", namespace: "default" },
  },

  budget,
  "budget with both": change(budget, { "spec.maxUnavailable": 1 }),
  "budget with bad numbers": change(budget, { "spec.minAvailable": -1 }),
  "budget with a bad percent": change(budget, { "spec.minAvailable": "150%" }),
  "budget with a bad selector": change(budget, { "spec.selector": { matchLabels: { app: "a b" } } }),
  "budget with an unknown policy": change(budget, { "spec.unhealthyPodEvictionPolicy": "Maybe" }),

  role,
  "role without rules": change(role, { rules: undefined }),
  "role without verbs": change(role, { rules: [{ apiGroups: [""], resources: ["pods"] }] }),
  "role with urls": change(role, { rules: [{ nonResourceURLs: ["/healthz"], verbs: ["get"] }] }),
  "role without resources": change(role, { rules: [{ verbs: ["get"] }] }),
  "cluster role": {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "x:y" },
    rules: [{ nonResourceURLs: ["/healthz"], verbs: ["get"] }],
  },
  binding,
  "binding without a role": change(binding, { "roleRef.name": "" }),
  "binding to an unknown kind": change(binding, { "roleRef.kind": "Rule" }),
  "binding with bad subjects": change(binding, {
    subjects: [
      { kind: "Robot", name: "r" },
      { kind: "ServiceAccount", name: "s" },
      { kind: "User", name: "" },
    ],
  }),

  lease,
  "lease with bad numbers": change(lease, { "spec.leaseDurationSeconds": 0, "spec.leaseTransitions": -1 }),
  autoscaler,
  "autoscaler with behavior": change(autoscaler, { "spec.behavior": { scaleDown: { stabilizationWindowSeconds: 5 } } }),
  "autoscaler with bad numbers": change(autoscaler, { "spec.minReplicas": 5 }),
  "autoscaler without target": change(autoscaler, { "spec.scaleTargetRef": { kind: "", name: "" } }),
  policy,
  "policy without rules": change(policy, { "spec.matchConstraints": undefined }),
  policyBinding,
  "policy binding without policy": change(policyBinding, { "spec.policyName": undefined }),
  "policy binding without actions": change(policyBinding, { "spec.validationActions": undefined }),
  "priority class": {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "x" },
    value: 5,
  },
  "priority class of the system": {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "system-x" },
    value: 5,
  },
  "priority class that is too high": {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "x" },
    value: 2_000_000_000,
  },
  "endpoint slice": {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata,
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.0.0.1"] }],
    ports: [{ port: 80 }],
  },

  "network policy": networkPolicy,
  "network policy without spec": change(networkPolicy, { spec: undefined }),
  "network policy with empty lists": change(networkPolicy, {
    spec: { ingress: [], egress: [], policyTypes: [] },
  }),
  "network policy both ways": change(networkPolicy, {
    "spec.ingress.0.from": [
      { podSelector: {}, namespaceSelector: { matchExpressions: [{ key: "team", operator: "Exists" }] } },
      { ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16", "10.2.3.4/32"] } },
    ],
    "spec.egress": [
      {
        to: [{ ipBlock: { cidr: "2001:db8::/32", except: ["2001:db8:1::/48"] } }],
        ports: [{ port: 53, protocol: "UDP" }],
      },
      { ports: [{ port: 8000, endPort: 9000 }, {}] },
      {},
    ],
  }),
  "network policy of egress alone": change(networkPolicy, {
    "spec.policyTypes": ["Egress"],
    "spec.ingress": undefined,
  }),
  "network policy with bad selectors": change(networkPolicy, {
    "spec.podSelector": { matchLabels: { app: "a b" } },
    "spec.ingress.0.from": [
      { podSelector: { matchExpressions: [{ key: "app", operator: "In" }] } },
      { namespaceSelector: { matchExpressions: [{ key: "app", operator: "Like", values: ["a"] }] } },
    ],
  }),
  "network policy with bad ports": change(networkPolicy, {
    "spec.ingress.0.ports": [
      { port: 0 },
      { port: "Bad_Name" },
      { port: 80, protocol: "HTTP" },
      { port: 80, endPort: 79 },
      { port: 80, endPort: 70_000 },
      { port: "metrics", endPort: 80 },
    ],
    "spec.egress": [{ ports: [{ endPort: 80 }] }],
  }),
  "network policy with bad peers": change(networkPolicy, {
    "spec.ingress.0.from": [{}, { podSelector: {}, ipBlock: { cidr: "10.0.0.0/8" } }],
    "spec.egress": [{ to: [{ ipBlock: {} }] }],
  }),
  "network policy with bad blocks": change(networkPolicy, {
    "spec.ingress.0.from": [
      { ipBlock: { cidr: "10.0.0.0", except: ["10.0.0.0/16"] } },
      { ipBlock: { cidr: "10.0.0.0/33" } },
      { ipBlock: { cidr: "10.0.0.0/8", except: ["nonsense", "11.0.0.0/16", "10.0.0.0/8", "2001:db8::/32"] } },
      { ipBlock: { cidr: "10.0.0.1/8", except: ["10.1.0.1/16", "10.2.0.0/016"] } },
      { ipBlock: { cidr: "010.0.0.0/8" } },
      { ipBlock: { cidr: "::ffff:10.0.0.0/104", except: ["10.1.0.0/16"] } },
    ],
  }),
  "network policy of unknown types": change(networkPolicy, { "spec.policyTypes": ["Ingress", "Sideways"] }),
  "network policy of too many types": change(networkPolicy, { "spec.policyTypes": ["Ingress", "Egress", "Ingress"] }),
}

/** Objects that are created, then put back with fields changed, as a dry run. */
export const updates: Record<string, { given: Json; set: Deep; subresource?: "status" }> = {
  "pod image": { given: pod, set: { "spec.containers.0.image": "registry.test/app:2" } },
  "pod image emptied": { given: pod, set: { "spec.containers.0.image": "" } },
  "pod image with spaces": { given: pod, set: { "spec.containers.0.image": " a" } },
  "pod labels": { given: pod, set: { "metadata.labels": labels } },
  "pod container added": {
    given: pod,
    set: { "spec.containers": [container, { name: "b", image: "b" }] },
  },
  "pod command": { given: pod, set: { "spec.containers.0.command": ["a"] } },
  "pod variables": { given: pod, set: { "spec.containers.0.env": [{ name: "A", value: "1" }] } },
  "pod node": { given: pod, set: { "spec.nodeName": "elsewhere" } },
  "pod grace period": { given: pod, set: { "spec.terminationGracePeriodSeconds": 5 } },
  "pod deadline set": { given: pod, set: { "spec.activeDeadlineSeconds": 100 } },
  "pod deadline raised": {
    given: change(pod, { "spec.activeDeadlineSeconds": 100 }),
    set: { "spec.activeDeadlineSeconds": 200 },
  },
  "pod deadline taken away": {
    given: change(pod, { "spec.activeDeadlineSeconds": 100 }),
    set: { "spec.activeDeadlineSeconds": undefined },
  },
  "pod toleration added": { given: pod, set: { "spec.tolerations.2": { key: "a", operator: "Exists" } } },
  "pod toleration taken away": {
    given: change(pod, { "spec.tolerations": [{ key: "a", operator: "Exists" }] }),
    set: { "spec.tolerations": [] },
  },
  "pod resources": {
    given: pod,
    set: { "spec.containers.0.resources": { requests: { cpu: "1" } } },
  },
  "pod status through the front door": { given: pod, set: { status: { phase: "Running" } } },
  "pod status": {
    given: pod,
    set: { status: { phase: "Running", podIP: "10.0.0.1" }, "spec.containers.0.image": "other" },
    subresource: "status",
  },
  "deployment image": { given: deployment, set: { "spec.template.spec.containers.0.image": "other:2" } },
  "deployment selector": {
    given: deployment,
    set: {
      "spec.selector.matchLabels": { app: "b" },
      "spec.template.metadata.labels": { app: "b" },
    },
  },
  "deployment selector without template": {
    given: deployment,
    set: { "spec.selector.matchLabels": { app: "b" } },
  },
  "deployment annotation": { given: deployment, set: { "metadata.annotations": { a: "b" } } },
  "deployment label": { given: deployment, set: { "metadata.labels": { a: "b" } } },
  "deployment status": {
    given: deployment,
    set: { status: { replicas: 1, readyReplicas: 1 }, "spec.replicas": 9, "metadata.labels": { a: "b" } },
    subresource: "status",
  },
  "deployment status that cannot be": {
    given: deployment,
    set: { status: { replicas: 1, readyReplicas: 2, availableReplicas: 3, updatedReplicas: 4 } },
    subresource: "status",
  },
  "replicaset selector": {
    given: replicaSet,
    set: {
      "spec.selector.matchLabels": { app: "b" },
      "spec.template.metadata.labels": { app: "b" },
    },
  },
  "replicaset status that cannot be": {
    given: replicaSet,
    set: { status: { replicas: 1, readyReplicas: 2, availableReplicas: 3, fullyLabeledReplicas: -1 } },
    subresource: "status",
  },
  "statefulset service name": { given: statefulSet, set: { "spec.serviceName": "other" } },
  "statefulset image": { given: statefulSet, set: { "spec.template.spec.containers.0.image": "b" } },
  "statefulset order": { given: statefulSet, set: { "spec.podManagementPolicy": "Parallel" } },
  "daemonset image": { given: daemonSet, set: { "spec.template.spec.containers.0.image": "b" } },
  "daemonset selector": {
    given: daemonSet,
    set: {
      "spec.selector.matchLabels": { app: "b" },
      "spec.template.metadata.labels": { app: "b" },
    },
  },
  "job parallelism": { given: job, set: { "spec.parallelism": 2 } },
  "job completions": { given: job, set: { "spec.completions": 2 } },
  "job image": {
    given: change(job, { "spec.suspend": false, "spec.parallelism": 0 }),
    set: { "spec.template.spec.containers.0.image": "b" },
  },
  "job image while suspended": {
    given: job,
    set: { "spec.template.spec.containers.0.image": "b" },
  },
  "cronjob schedule": { given: cronJob, set: { "spec.schedule": "0 * * * *" } },
  "config map data": {
    given: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" } },
    set: { "data.a": "2" },
  },
  "config map that is immutable": {
    given: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" }, immutable: true },
    set: { "data.a": "2" },
  },
  "config map no longer immutable": {
    given: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" }, immutable: true },
    set: { immutable: undefined },
  },
  "secret type": {
    given: { apiVersion: "v1", kind: "Secret", metadata },
    set: { type: "example.com/other" },
  },
  "secret that is immutable": {
    given: { apiVersion: "v1", kind: "Secret", metadata, immutable: true },
    set: { stringData: { a: "b" } },
  },
  "service address": { given: service, set: { "spec.clusterIP": "10.96.0.77", "spec.clusterIPs": ["10.96.0.77"] } },
  "service port": { given: service, set: { "spec.ports": [{ port: 81 }] } },
  "claim size": { given: claim, set: { "spec.resources.requests.storage": "2Gi" } },
  "claim modes": { given: claim, set: { "spec.accessModes": ["ReadWriteMany"] } },
  "binding role": { given: binding, set: { "roleRef.name": "y" } },
  "binding subjects": { given: binding, set: { subjects: [] } },
  "budget without version": { given: budget, set: { "spec.minAvailable": 2, "metadata.resourceVersion": undefined } },
  budget: { given: budget, set: { "spec.minAvailable": 2 } },
  "lease without version": {
    given: lease,
    set: { "spec.holderIdentity": "you", "metadata.resourceVersion": undefined },
  },
  lease: { given: lease, set: { "spec.holderIdentity": "you" } },
  "priority class value": {
    given: creates["priority class"],
    set: { value: 6 },
  },
  "priority class description": {
    given: creates["priority class"],
    set: { description: "d" },
  },
  "namespace label": {
    given: { apiVersion: "v1", kind: "Namespace", metadata: { name: "x-updates" } },
    set: { "metadata.labels": { a: "b" } },
  },
  "node taint": {
    given: { apiVersion: "v1", kind: "Node", metadata: { name: "x-updates" } },
    set: { "spec.taints": [{ key: "k", effect: "NoSchedule" }], "spec.unschedulable": true },
  },
  "controller revision data": {
    given: creates["controller revision"],
    set: { data: { other: true } },
  },
  "endpoint slice addresses": {
    given: creates["endpoint slice"],
    set: { endpoints: [{ addresses: ["10.0.0.2"] }] },
  },
  "network policy rules": { given: networkPolicy, set: { "spec.egress": [{ ports: [{ port: 53 }] }] } },
  "network policy labels": { given: networkPolicy, set: { "metadata.labels": { a: "b" } } },
  "network policy without version": {
    given: networkPolicy,
    set: { "spec.ingress": [], "metadata.resourceVersion": undefined },
  },
  "network policy port": { given: networkPolicy, set: { "spec.ingress.0.ports": [{ port: 0 }] } },
}

const long = "2020-01-02T03:04:05Z"
const running = { running: { startedAt: long } }
const status = (name: string, state: Json, more: Json = {}) => ({
  name,
  image: "a",
  imageID: "",
  ready: false,
  restartCount: 0,
  lastState: {},
  state,
  ...more,
})
const wasEnded = { terminated: { exitCode: 1, startedAt: long, finishedAt: long } }
const terminated = (exitCode: number, more: Json = {}) => ({
  terminated: { exitCode, startedAt: long, finishedAt: long, ...more },
})
const waiting = (reason: string) => ({ waiting: { reason } })
const withInit = change(pod, {
  "spec.initContainers": [
    { name: "i1", image: "a" },
    { name: "i2", image: "a" },
  ],
})
const withSidecar = change(pod, { "spec.initContainers": [{ name: "s", image: "a", restartPolicy: "Always" }] })
const two = change(pod, { "spec.containers": [container, { name: "b", image: "b" }] })
/** Left alone by the controller. */
const managedJob = change(job, { "spec.managedBy": "example.com/tests", "spec.suspend": false })
const readyCondition = [{ type: "Ready", status: "True" }]

/** Objects whose row in `kubectl get -o wide` is asked for, once their status is put in place. */
export const rows: Record<string, Json> = {
  "pod pending": pod,
  "pod running": change(pod, {
    status: {
      phase: "Running",
      podIP: "10.0.0.1",
      podIPs: [{ ip: "10.0.0.1" }],
      conditions: readyCondition,
      containerStatuses: [status("app", running, { ready: true })],
    },
  }),
  "pod creating": change(pod, {
    status: { phase: "Pending", containerStatuses: [status("app", waiting("ContainerCreating"))] },
  }),
  "pod crashing": change(pod, {
    status: {
      phase: "Running",
      containerStatuses: [status("app", waiting("CrashLoopBackOff"), { restartCount: 5, lastState: wasEnded })],
    },
  }),
  "pod not pulling": change(pod, {
    status: { phase: "Pending", containerStatuses: [status("app", waiting("ImagePullBackOff"))] },
  }),
  "pod failed": change(pod, {
    status: { phase: "Failed", containerStatuses: [status("app", terminated(1, { reason: "Error" }))] },
  }),
  "pod failed without reason": change(pod, {
    status: { phase: "Failed", containerStatuses: [status("app", terminated(3))] },
  }),
  "pod killed": change(pod, {
    status: { phase: "Failed", containerStatuses: [status("app", terminated(137, { signal: 9 }))] },
  }),
  "pod evicted": change(pod, { status: { phase: "Failed", reason: "Evicted" } }),
  "pod completed": change(pod, {
    status: { phase: "Succeeded", containerStatuses: [status("app", terminated(0, { reason: "Completed" }))] },
  }),
  "pod half completed": change(two, {
    status: {
      phase: "Running",
      conditions: readyCondition,
      containerStatuses: [status("app", terminated(0, { reason: "Completed" })), status("b", running, { ready: true })],
    },
  }),
  "pod half completed and not ready": change(two, {
    status: {
      phase: "Running",
      containerStatuses: [status("app", terminated(0, { reason: "Completed" })), status("b", running, { ready: true })],
    },
  }),
  "pod half failed": change(two, {
    status: {
      phase: "Running",
      containerStatuses: [
        status("app", terminated(0, { reason: "Completed" })),
        status("b", terminated(2, { reason: "Error" })),
      ],
    },
  }),
  "pod gated": change(pod, { "spec.schedulingGates": [{ name: "example.com/wait" }] }),
  "pod init first": change(withInit, {
    status: {
      phase: "Pending",
      initContainerStatuses: [status("i1", running), status("i2", waiting("PodInitializing"))],
    },
  }),
  "pod init second": change(withInit, {
    status: {
      phase: "Pending",
      initContainerStatuses: [status("i1", terminated(0)), status("i2", waiting("PodInitializing"))],
    },
  }),
  "pod init crashing": change(withInit, {
    status: {
      phase: "Pending",
      initContainerStatuses: [
        status("i1", waiting("CrashLoopBackOff"), { restartCount: 2, lastState: wasEnded }),
        status("i2", waiting("PodInitializing")),
      ],
    },
  }),
  "pod init failed": change(withInit, {
    status: { phase: "Pending", initContainerStatuses: [status("i1", terminated(4))] },
  }),
  "pod init failed with reason": change(withInit, {
    status: { phase: "Pending", initContainerStatuses: [status("i1", terminated(4, { reason: "Error" }))] },
  }),
  "pod init killed": change(withInit, {
    status: { phase: "Pending", initContainerStatuses: [status("i1", terminated(4, { signal: 9 }))] },
  }),
  "pod init done": change(withInit, {
    status: {
      phase: "Running",
      conditions: [{ type: "Initialized", status: "True" }, ...readyCondition],
      initContainerStatuses: [status("i1", terminated(0), { restartCount: 3 }), status("i2", terminated(0))],
      containerStatuses: [status("app", running, { ready: true })],
    },
  }),
  "pod with a sidecar": change(withSidecar, {
    status: {
      phase: "Running",
      conditions: [{ type: "Initialized", status: "True" }, ...readyCondition],
      initContainerStatuses: [
        status("s", running, { ready: true, started: true, restartCount: 1, lastState: wasEnded }),
      ],
      containerStatuses: [status("app", running, { ready: true, restartCount: 1 })],
    },
  }),
  "pod whose sidecar starts": change(withSidecar, {
    status: { phase: "Pending", initContainerStatuses: [status("s", running, { started: false })] },
  }),
  "pod with readiness gates": change(pod, {
    "spec.readinessGates": [{ conditionType: "a" }, { conditionType: "b" }],
    status: {
      phase: "Running",
      conditions: [
        { type: "a", status: "True" },
        { type: "b", status: "False" },
      ],
    },
  }),
  "pod on its way out": change(pod, {
    "metadata.finalizers": ["example.com/held"],
    status: { phase: "Running", containerStatuses: [status("app", running, { ready: true })] },
  }),
  "pod lost with its node": change(pod, {
    "metadata.finalizers": ["example.com/held"],
    status: { phase: "Running", reason: "NodeLost" },
  }),
  "pod that ended and is on its way out": change(pod, {
    "metadata.finalizers": ["example.com/held"],
    status: { phase: "Succeeded", containerStatuses: [status("app", terminated(0, { reason: "Completed" }))] },
  }),
  "claim on its way out": change(claim, { "metadata.finalizers": ["example.com/held"] }),
  "job on its way out": change(managedJob, { "metadata.finalizers": ["example.com/held"] }),
  "job running": change(managedJob, { status: { startTime: long, active: 1, ready: 0, terminating: 0 } }),
  "job complete": change(managedJob, {
    status: {
      startTime: long,
      completionTime: "2020-01-02T03:05:15Z",
      succeeded: 1,
      ready: 0,
      terminating: 0,
      conditions: [
        { type: "SuccessCriteriaMet", status: "True", lastTransitionTime: long },
        { type: "Complete", status: "True", lastTransitionTime: long },
      ],
    },
  }),
  "job failed": change(managedJob, {
    status: {
      startTime: long,
      failed: 1,
      ready: 0,
      terminating: 0,
      conditions: [
        { type: "FailureTarget", status: "True", lastTransitionTime: long },
        { type: "Failed", status: "True", lastTransitionTime: long },
      ],
    },
  }),
  "job about to fail": change(managedJob, {
    status: {
      startTime: long,
      ready: 0,
      terminating: 1,
      conditions: [{ type: "FailureTarget", status: "True", lastTransitionTime: long }],
    },
  }),
  deployment: change(deployment, { "spec.template.spec.containers": [container, { name: "b", image: "b" }] }),
  "deployment by expressions": change(deployment, {
    "spec.selector": {
      matchLabels: labels,
      matchExpressions: [
        { key: "tier", operator: "NotIn", values: ["z", "a"] },
        { key: "app", operator: "In", values: ["web", "api"] },
        { key: "app", operator: "Exists" },
        { key: "old", operator: "DoesNotExist" },
      ],
    },
  }),
  replicaSet,
  statefulSet,
  daemonSet,
  job,
  "job with parallelism": change(job, { "spec.parallelism": 2 }),
  cronJob,
  service,
  "service headless": change(service, { "spec.clusterIP": "None" }),
  "service on node ports": change(service, { "spec.type": "NodePort", "spec.ports": [{ port: 80, nodePort: 30123 }] }),
  "service with a balancer": change(service, { "spec.type": "LoadBalancer", "spec.externalIPs": ["1.2.3.4"] }),
  "service elsewhere": creates["service elsewhere"],
  "config map": creates["config map"],
  secret: creates.secret,
  "service account": creates["service account"],
  claim,
  "limit range": creates["limit range"],
  quota: creates.quota,
  event: change(event, {
    count: 3,
    firstTimestamp: long,
    lastTimestamp: "2021-01-02T03:04:05Z",
    source: { component: "c", host: "h" },
  }),
  "event of the new group": creates["event of the new group"],
  budget,
  "budget in percent": change(budget, { "spec.minAvailable": undefined, "spec.maxUnavailable": "20%" }),
  role,
  binding,
  lease,
  autoscaler,
  policy,
  policyBinding,
  "priority class": creates["priority class"],
  "endpoint slice": change(creates["endpoint slice"], {
    endpoints: [
      { addresses: ["10.0.0.1"] },
      { addresses: ["10.0.0.2"] },
      { addresses: ["10.0.0.3"] },
      { addresses: ["10.0.0.4"] },
    ],
  }),
  "network policy": networkPolicy,
  "network policy for every pod": change(networkPolicy, { "spec.podSelector": undefined }),
  "network policy by expressions": change(networkPolicy, {
    "spec.podSelector.matchExpressions": [{ key: "tier", operator: "NotIn", values: ["b", "a"] }],
  }),
  node: {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "x-rows", labels: { "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge" } },
    spec: { unschedulable: true },
    status: {
      addresses: [{ type: "InternalIP", address: "10.0.0.9" }],
      nodeInfo: {
        machineID: "", systemUUID: "", bootID: "", kernelVersion: "6.1", osImage: "Test", containerRuntimeVersion: "test://1",
        kubeletVersion: "v1.36.3", kubeProxyVersion: "", operatingSystem: "linux", architecture: "amd64",
      }, // biome-ignore format: a table
      conditions: [{ type: "Ready", status: "True", reason: "a", message: "b" }],
    },
  },
  namespace: { apiVersion: "v1", kind: "Namespace", metadata: { name: "x-rows" } },
  "controller revision": creates["controller revision"],
}
