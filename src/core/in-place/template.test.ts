import { describe, expect, test } from "vitest"
import { changeFrom, changeOf, isSameTemplate, type PodTemplate } from "./template.ts"

// biome-ignore lint/suspicious/noExplicitAny: a template is edited as JSON
type Json = any

const calm: Json = {
  metadata: { labels: { app: "web" }, annotations: { owner: "shop" } },
  spec: {
    initContainers: [
      { name: "migrate", image: "shop/migrate:1" },
      { name: "proxy", image: "shop/proxy:1", restartPolicy: "Always" },
    ],
    containers: [
      {
        name: "app",
        image: "shop/app:1",
        env: [{ name: "TEAM", valueFrom: { fieldRef: { fieldPath: "metadata.labels['team']" } } }],
      },
      { name: "side", image: "shop/side:1" },
    ],
    volumes: [{ name: "data", image: { reference: "shop/data:1" } }],
  },
}

const edited = (edit: (template: Json) => void): PodTemplate => {
  const template = structuredClone(calm)
  edit(template)
  return template
}

const inPlace = (touched: object) => ({ is: "InPlace", containers: [], labels: [], annotations: [], ...touched })

const cases: Record<string, [edit: (template: Json) => void, expected: object]> = {
  "nothing changed": [() => {}, { is: "None" }],
  "the hash of a ReplicaSet": [t => (t.metadata.labels["pod-template-hash"] = "x"), { is: "None" }],
  "an image": [t => (t.spec.containers[0].image = "shop/app:2"), inPlace({ containers: ["app"] })],
  "two images": [
    t => {
      t.spec.containers[0].image = "shop/app:2"
      t.spec.containers[1].image = "shop/side:2"
    },
    inPlace({ containers: ["app", "side"] }),
  ],
  "a restartable init container": [t => (t.spec.initContainers[1].image = "p:2"), inPlace({ containers: ["proxy"] })],
  "what a pod has a value of its own for": [
    t => {
      t.metadata.labels["autoimagemanager.io/update-state"] = "x"
      t.metadata.annotations["autoimagemanager.io/in-place"] = "x"
    },
    { is: "None" },
  ],
  "an annotation": [t => (t.metadata.annotations.owner = "ops"), inPlace({ annotations: ["owner"] })],
  "a label that is removed": [t => delete t.metadata.labels.app, inPlace({ labels: ["app"] })],
  "an ordinary init container": [
    t => (t.spec.initContainers[0].image = "m:2"),
    { is: "NotInPlace", path: "spec.initContainers[migrate].image" },
  ],
  "a field of a container": [
    t => (t.spec.containers[1].args = ["-v"]),
    { is: "NotInPlace", path: "spec.containers[side].args" },
  ],
  "an image and a field": [
    t => {
      t.spec.containers[0].image = "shop/app:2"
      t.spec.containers[0].ports = []
    },
    { is: "NotInPlace", path: "spec.containers[app].ports" },
  ],
  "an image volume": [t => (t.spec.volumes[0].image.reference = "d:2"), { is: "NotInPlace", path: "spec.volumes" }],
  "a container more": [
    t => t.spec.containers.push({ name: "b", image: "b" }),
    { is: "NotInPlace", path: "spec.containers" },
  ],
  "containers reordered": [t => t.spec.containers.reverse(), { is: "NotInPlace", path: "spec.containers" }],
  "a label that a container reads": [
    t => (t.metadata.labels.team = "blue"),
    inPlace({ labels: ["team"], restarts: ["app"] }),
  ],
  "a label that a container reads, with its image": [
    t => {
      t.metadata.labels.team = "blue"
      t.spec.containers[0].image = "shop/app:2"
    },
    inPlace({ containers: ["app"], labels: ["team"] }),
  ],
  "kubectl rollout restart": [
    t => (t.metadata.annotations["kubectl.kubernetes.io/restartedAt"] = "now"),
    { is: "NotInPlace", path: "metadata.annotations[kubectl.kubernetes.io/restartedAt]" },
  ],
}

describe("what a running pod can be given", () => {
  for (const [name, [edit, expected]] of Object.entries(cases))
    test(name, () => expect(changeOf(calm, edited(edit))).toMatchObject(expected))
})

test("templates are the same whatever hash a ReplicaSet has given them", () => {
  expect(
    isSameTemplate(
      calm,
      edited(t => (t.metadata.labels["pod-template-hash"] = "x")),
    ),
  ).toBe(true)
  expect(
    isSameTemplate(
      calm,
      edited(t => (t.spec.containers[0].image = "shop/app:2")),
    ),
  ).toBe(false)
  expect(isSameTemplate({ spec: {} }, { metadata: { labels: {}, annotations: {} }, spec: {} })).toBe(true)
})

test("pods of several templates: what any of them needs, and nothing that one of them cannot get", () => {
  const [app, side] = ["app", "side"].map((name, index) => edited(t => (t.spec.containers[index].image = `${name}:0`)))
  expect(changeFrom([app!, side!, calm], calm)).toMatchObject(inPlace({ containers: ["app", "side"] }))
  const other = edited(t => (t.spec.containers[1].args = ["-v"]))
  expect(changeFrom([app!, other], calm)).toMatchObject({ is: "NotInPlace" })
  expect(changeFrom([], calm)).toEqual({ is: "None" })
})
