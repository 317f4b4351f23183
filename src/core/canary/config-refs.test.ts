import { expect, test } from "vitest"
import {
  configMark,
  configRefsOf,
  configsNamedIn,
  contentChecksum,
  isLeftOut,
  snapshotSuffix,
  snapshotsIn,
  withMark,
} from "./config-refs.ts"

test("what a template names, from everywhere, each once", () => {
  const refs = configRefsOf({
    volumes: [
      { configMap: { name: "a" } },
      { secret: { secretName: "b", optional: true } },
      { projected: { sources: [{ secret: { name: "c" } }, { configMap: { name: "f", optional: true } }] } },
    ],
    initContainers: [{ envFrom: [{ configMapRef: { name: "d" } }] }],
    containers: [
      {
        env: [{ valueFrom: { secretKeyRef: { name: "b" } } }, { valueFrom: { configMapKeyRef: { name: "e" } } }, {}],
        envFrom: [{ secretRef: { name: "g", optional: true } }, { configMapRef: { name: "a", optional: true } }],
      },
    ],
  })
  expect(refs.map(({ key, isOptional }) => (isOptional ? `${key}?` : key))).toEqual([
    "configmap/a",
    "configmap/d",
    "configmap/e",
    "configmap/f?",
    // Optional in one place and not in another: pods do not start without it.
    "secret/b",
    "secret/c",
    "secret/g?",
  ])
})

test("a template without any names nothing", () => {
  expect(configRefsOf({ containers: [{}] })).toEqual([])
})

test("names beyond the bound are left out", () => {
  const volumes = Array.from({ length: 200 }, (_, index) => ({ configMap: { name: `m${index}` } }))
  expect(configRefsOf({ volumes })).toHaveLength(64)
  expect(configRefsOf({ volumes: [{ configMap: { name: "m".repeat(129) } }] })).toEqual([])
})

test("a checksum is of all content, whatever its order", () => {
  const sum = contentChecksum({ data: { a: "1", b: "2" } })
  expect(contentChecksum({ data: { b: "2", a: "1" } })).toBe(sum)
  expect(sum).toMatch(/^[0-9a-f]{16}$/)
  for (const other of [{ data: { a: "1" } }, { data: { a: "1" }, binaryData: { b: "2" } }, {}])
    expect(contentChecksum(other)).not.toBe(sum)
  expect(contentChecksum({ data: {} })).toBe(contentChecksum({}))
  expect(contentChecksum({ data: { a: "1", b: "2" } }, "uid")).not.toBe(sum)
})

const left: Record<string, [Record<string, string> | undefined, string | undefined, boolean]> = {
  "a ConfigMap": [undefined, undefined, false],
  "ours": [{ "autoimagemanager.io/config-tracking": "disabled" }, undefined, true],
  "Flagger's": [{ "flagger.app/config-tracking": "disabled" }, "Opaque", true],
  "another value": [{ "flagger.app/config-tracking": "enabled" }, undefined, false],
  "a Secret of a person": [undefined, "Opaque", false],
  "a certificate of a person": [undefined, "kubernetes.io/tls", false],
  "a certificate that is renewed": [{ "cert-manager.io/certificate-name": "web" }, "kubernetes.io/tls", true],
  "a Secret from a vault": [{ "reconcile.external-secrets.io/data-hash": "1" }, "Opaque", true],
  "a ConfigMap with such an annotation": [{ "cert-manager.io/certificate-name": "web" }, undefined, false],
  "a token": [undefined, "kubernetes.io/service-account-token", true],
  "credentials of a registry": [undefined, "kubernetes.io/dockerconfigjson", true],
} // biome-ignore format: a table
for (const [name, [annotations, type, is]] of Object.entries(left))
  test(`left out or not: ${name}`, () => expect(isLeftOut(annotations, type)).toBe(is))

test("a mark is written, changed and taken off, and nothing else changes", () => {
  const template = { metadata: { labels: { app: "web" }, annotations: { a: "b" } }, spec: { containers: [] } }
  const marked = withMark(template, "1")
  expect(marked.metadata).toEqual({ labels: { app: "web" }, annotations: { a: "b", [configMark]: "1" } })
  expect(configsNamedIn(marked).mark).toBe("1")
  expect(withMark(withMark(marked, "2"), "")).toEqual(template)
})

test("a snapshot is of one Canary and one content, and pods are read by the names of snapshots", () => {
  const suffix = snapshotSuffix("web", "1234")
  expect(suffix).toMatch(/^[0-9a-f]{16}$/)
  expect(new Set([suffix, snapshotSuffix("api", "1234"), snapshotSuffix("web", "1235")]).size).toBe(3)
  const volumes = [`settings-${suffix}`, "settings", "kube-root-ca.crt"].map(name => ({ configMap: { name } }))
  expect(snapshotsIn({ volumes })).toEqual([`settings-${suffix}`])
})
