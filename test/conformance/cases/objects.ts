import type { Json } from "../harness/script.ts"

type Fields = Record<string, Json>

export const configMap = (name: string, data: Fields = {}, metadata: Fields = {}): Json => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data,
})

/** An object with fields set by path (`a.b.0.c`); undefined takes one out. */
export function change(object: Json, fields: Fields): Json {
  const next = structuredClone(object)
  for (const [path, value] of Object.entries(fields)) {
    const steps = path.split(".")
    const last = steps.pop() as string
    let place = next
    for (const step of steps) place = place[step] ??= {}
    if (value === undefined) delete place[last]
    else place[last] = value
  }
  return next
}

export const container = (image = "registry.test/app:1", fields: Fields = {}): Json => ({
  name: "app",
  image,
  ...fields,
})

/** A pod that no scheduler handles, so that it stays as it was created. */
export const idlePod = (name: string, fields: Fields = {}): Json =>
  change(
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels: { app: name } },
      spec: { schedulerName: "nobody", terminationGracePeriodSeconds: 0, containers: [container()] },
    },
    fields,
  )

const template = (app: string, fields: Fields = {}): Json =>
  change({ metadata: { labels: { app } }, spec: { containers: [container()] } }, fields)

/** A workload without pods, for what only the server does with it. */
export const deployment = (name: string, fields: Fields = {}): Json =>
  change(
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name },
      spec: { replicas: 0, selector: { matchLabels: { app: name } }, template: template(name) },
    },
    fields,
  )

export const service = (name: string, fields: Fields = {}): Json =>
  change(
    { apiVersion: "v1", kind: "Service", metadata: { name }, spec: { selector: { app: name }, ports: [{ port: 80 }] } },
    fields,
  )

export const statefulSet = (name: string, fields: Fields = {}): Json =>
  change({ ...deployment(name), kind: "StatefulSet" }, { "spec.serviceName": name, ...fields })

export const daemonSet = (name: string, fields: Fields = {}): Json =>
  change({ ...deployment(name), kind: "DaemonSet" }, { "spec.replicas": undefined, ...fields })

export const job = (name: string, fields: Fields = {}): Json =>
  change(
    {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name },
      spec: { template: { spec: { restartPolicy: "Never", containers: [container()] } } },
    },
    fields,
  )

export const cronJob = (name: string, fields: Fields = {}): Json =>
  change(
    {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name },
      spec: { schedule: "* * * * *", jobTemplate: { spec: job("x").spec } },
    },
    fields,
  )

export const dicom = (name: string, fields: Fields = {}): Json =>
  change(
    {
      apiVersion: "services.example.com/v1alpha1",
      kind: "Dicom",
      metadata: { name },
      spec: { image: "registry.test/dicom:1" },
    },
    fields,
  )
