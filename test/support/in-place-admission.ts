import { expect } from "vitest"
import {
  heldMark,
  inPlaceAnnotation,
  inPlaceHolder,
  settingAnnotations,
  strategyAnnotation,
} from "#core/in-place/names.ts"
import { parseSettings } from "#core/in-place/settings.ts"
import { changeOf } from "#core/in-place/template.ts"
import type { Json } from "./floor.ts"

/** What the policies of updates in place admit and refuse, on any server. */

export const inPlaceKinds = ["Deployment", "StatefulSet", "DaemonSet"] as const

export type AdmissionPlace = {
  create(object: Json): Promise<void>
  /** Sends the object as a dry run, and returns the words of the refusal; '' if it would be written. */
  wouldPut(object: Json): Promise<string>
  wouldCreate(object: Json): Promise<string>
}

export const workloadOf = (kind: string, name: string, annotations: Record<string, string>): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name, namespace: "default", annotations },
  spec: {
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        serviceAccountName: "default",
        nodeSelector: { none: "such" },
        initContainers: [
          { name: "setup", image: "setup:1" },
          { name: "proxy", image: "proxy:1", restartPolicy: "Always" },
        ],
        containers: [
          { name: "web", image: "web:1", env: [{ name: "A", value: "1" }] },
          { name: "side", image: "side:1" },
        ],
        volumes: [{ name: "data", emptyDir: {} }],
      },
    },
  },
})

type Edit = (template: Json) => void
const web =
  (fields: Json): Edit =>
  ({ spec }) =>
    Object.assign(spec.containers[0], fields)
const pod =
  (fields: Json): Edit =>
  ({ spec }) =>
    Object.assign(spec, fields)

const probe = { tcpSocket: { port: 80 } }

/** By the path that is refused. */
const refused: [path: string, Edit][] = [
  ["spec.containers[web].env", web({ env: [{ name: "A", value: "2" }] })],
  ["spec.containers[web].env", web({ image: "web:2", env: undefined })],
  ["spec.containers[side].env", ({ spec }) => Object.assign(spec.containers[1], { env: [{ name: "B" }] })],
  ["spec.containers[web].command", web({ command: ["run"] })],
  ["spec.containers[web].args", web({ args: ["-v"] })],
  ["spec.containers[web].resources", web({ resources: { requests: { cpu: "1" } } })],
  ["spec.containers[web].ports", web({ ports: [{ containerPort: 80, protocol: "TCP" }] })],
  ["spec.containers[web].volumeMounts", web({ volumeMounts: [{ name: "data", mountPath: "/data" }] })],
  ["spec.containers[web].livenessProbe", web({ livenessProbe: probe })],
  ["spec.containers[web].readinessProbe", web({ readinessProbe: probe })],
  ["spec.containers[web].securityContext", web({ securityContext: { readOnlyRootFilesystem: true } })],
  ["spec.containers[web].imagePullPolicy", web({ imagePullPolicy: "Always" })],
  ["spec.initContainers[setup].image", ({ spec }) => Object.assign(spec.initContainers[0], { image: "setup:2" })],
  ["spec.initContainers[proxy].args", ({ spec }) => Object.assign(spec.initContainers[1], { args: ["-v"] })],
  ["spec.volumes", pod({ volumes: [] })],
  ["spec.serviceAccountName", pod({ serviceAccountName: "other", serviceAccount: "other" })],
  ["spec.nodeSelector", pod({ nodeSelector: undefined })],
  ["spec.terminationGracePeriodSeconds", pod({ terminationGracePeriodSeconds: 5 })],
  ["spec.containers", ({ spec }) => spec.containers.push({ name: "third", image: "third:1" })],
  ["spec.containers", ({ spec }) => spec.containers.reverse()],
  ["spec.initContainers", ({ spec }) => spec.initContainers.pop()],
  [
    "metadata.annotations[kubectl.kubernetes.io/restartedAt]",
    ({ metadata }) => Object.assign(metadata, { annotations: { "kubectl.kubernetes.io/restartedAt": "now" } }),
  ],
]

const admitted: Record<string, Edit> = {
  "the images of both containers": ({ spec }) => {
    for (const each of spec.containers) each.image = "other:2"
  },
  "the image of a restartable init container": ({ spec }) => {
    spec.initContainers[1].image = "proxy:2"
  },
  "labels and annotations": ({ metadata }) => {
    Object.assign(metadata.labels, { team: "blue" })
    metadata.annotations = { note: "x" }
  },
  "a field that is not common: it is held": pod({ priorityClassName: "system-node-critical" }),
}

const edited = (object: Json, edit: Edit, annotations: Json = {}): Json => {
  const copy = structuredClone(object)
  edit(copy.spec.template)
  Object.assign(copy.metadata.annotations, annotations)
  // As JSON has it: a field without a value is no field.
  return JSON.parse(JSON.stringify(copy))
}

export async function tryTemplates({ wouldPut }: AdmissionPlace, object: Json): Promise<void> {
  for (const [path, edit] of refused) {
    const wanted = edited(object, edit)
    const answer = await wouldPut(wanted)
    expect(answer, path).toContain(`${path} of the template cannot change in a running pod`)
    expect(answer, path).toContain(`write annotation ${strategyAnnotation}: Recreate`)
    // The controller would say the same.
    const change = changeOf(object.spec.template, wanted.spec.template)
    expect(change, path).toMatchObject({ is: "NotInPlace" })
    if (path !== "spec.serviceAccountName") expect(change).toMatchObject({ path })
    for (const strategy of ["Recreate", "InPlaceIfPossible"])
      expect(await wouldPut(edited(wanted, () => {}, { [strategyAnnotation]: strategy }))).toBe("")
  }
  for (const [what, edit] of Object.entries(admitted)) expect(await wouldPut(edited(object, edit)), what).toBe("")
}

/** One that is held for such a field, as before the policy was there, can be taken back. */
export async function tryToTakeBack(place: AdmissionPlace, object: Json): Promise<void> {
  const note = JSON.stringify({ operation: "1-x", reason: "NotInPlace", message: "spec.containers[web].env" })
  const held = structuredClone(object)
  held.metadata.labels = { [heldMark]: inPlaceHolder }
  Object.assign(held.metadata.annotations, {
    [heldMark]: `{"by":"${inPlaceHolder}","generation":1}`,
    [inPlaceAnnotation]: note,
  })
  await place.create(held)
  expect(await place.wouldPut(edited(held, web({ env: [] })))).toBe("")
}

const good: [name: string, ...values: string[]][] = [
  [strategyAnnotation, "InPlaceIfPossible", "InPlaceOnly", "Recreate", " Recreate\n"],
  [settingAnnotations.maxUnavailable, "1", "25%", "100%", "999999"],
  [settingAnnotations.partition, "0", "0%", "2", "50%"],
  [settingAnnotations.graceSeconds, "0", "5", "30", "999", "2999", "3599", "3600"],
  [settingAnnotations.onFailure, "Stop", "Revert", "Rollback"],
  [settingAnnotations.order, "apps.kubernetes.io/pod-index", "zone"],
  [settingAnnotations.containerOrder, "proxy, web", "web"],
  [settingAnnotations.unverified, "true", "false"],
]
const bad: [name: string, ...values: string[]][] = [
  [strategyAnnotation, "inplace", "", "InPlace", "Recreate Recreate"],
  [settingAnnotations.maxUnavailable, "0", "0%", "120%", "-1", "1.5", "one", "1000000"],
  [settingAnnotations.partition, "-1", "101%", "%"],
  [settingAnnotations.graceSeconds, "30s", "3601", "86400", ""],
  [settingAnnotations.onFailure, "Retry", "revert"],
  [settingAnnotations.order, "a b", "/x", "x".repeat(100)],
  [settingAnnotations.containerOrder, "Web", "web,", "a;b"],
  [settingAnnotations.unverified, "yes", "True"],
]

/** What is refused is what the controller could not read, with the same words. */
export async function tryAnnotations(place: AdmissionPlace, kind: string): Promise<void> {
  const plain = workloadOf(kind, "plain", {})
  await place.create(plain)
  const changed = (annotations: Json) => edited(plain, () => {}, annotations)
  for (const [name, ...values] of good)
    for (const value of values) {
      expect(await place.wouldPut(changed({ [name]: value })), `${name}: ${value}`).toBe("")
      expect(parseSettings({ [name]: value }).ok, `${name}: ${value}`).toBe(true)
    }
  for (const [name, ...values] of bad)
    for (const value of values) {
      const parsed = parseSettings({ [name]: value })
      expect(parsed.ok).toBe(false)
      const { problem } = parsed as { problem: string }
      expect(await place.wouldPut(changed({ [name]: value })), `${name}: ${value}`).toContain(problem)
      expect(await place.wouldCreate(workloadOf(kind, "new", { [name]: value }))).toContain(problem)
    }
  const misspelt = settingAnnotations.order.replace("order", "ordre")
  expect(await place.wouldPut(changed({ [misspelt]: "zone" }))).toContain(
    `annotation ${misspelt} is not known: write one`,
  )
}

/** A malformed value that was there before the policy keeps no other write from its object. */
export async function tryOldAnnotations({ wouldPut }: AdmissionPlace, object: Json, name: string): Promise<void> {
  const revision = { "deployment.kubernetes.io/revision": "2" }
  expect(await wouldPut(edited(object, () => {}, revision))).toBe("")
  expect(await wouldPut(edited(object, () => {}, { [name]: "worse" }))).toContain(`${name} is "worse": write`)
}
