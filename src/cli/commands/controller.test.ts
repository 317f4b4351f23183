import { describe, expect, test } from "vitest"
import type { Controller } from "#runtime/controller.ts"
import { read } from "./controller.ts"

const controllers = ["serviceimage", "alternateimagesource", "canary"].map(name => ({ name }) as Controller)
const given = (options: Record<string, unknown>, isPod = false) =>
  read({ options: { leaderElect: true, logLevel: "info", pullsPerRegistry: "20", ...options } }, isPod, controllers)

describe("controller", () => {
  test("outside a cluster it serves nothing unless a flag asks for it, and then on loopback", () => {
    expect(given({})).toMatchObject({ leaderElect: true, leaseNamespace: undefined, metrics: undefined, controllers })
    expect(given({ metricsPort: "9090" }).metrics).toEqual({ host: "127.0.0.1", port: 9090 })
    expect(given({ metricsPort: "9090", metricsHost: "::1" }).metrics).toEqual({ host: "::1", port: 9090 })
  })
  test("in a pod it serves where the kubelet asks", () => {
    expect(given({}, true).metrics).toEqual({ host: expect.stringMatching(/^(::|0\.0\.0\.0)$/), port: 8080 })
    expect(given({ metricsPort: "0" }, true).metrics).toBeUndefined()
  })
  test("--kinds picks controllers in any spelling", () => {
    const names = (kinds: string) => given({ kinds }).controllers.map(({ name }) => name)
    expect(names("ServiceImage")).toEqual(["serviceimage"])
    expect(names("si, Canary")).toEqual(["serviceimage", "canary"])
    expect(names("ais")).toEqual(["alternateimagesource"])
    expect(names("serviceimages.autoimagemanager.io")).toEqual(["serviceimage"])
  })
  test("a candidate is warm unless told otherwise", () => {
    expect([given({}).warm, given({ warm: "true" }).warm, given({ warm: "false" }).warm]).toEqual([true, true, false])
  })
  test("--allow-registry is gathered", () => {
    expect(given({}).allowRegistries).toEqual([])
    const registries = ["127.0.0.1:5000", "http://registry.inside:80"]
    expect(given({ allowRegistry: registries }).allowRegistries).toEqual(registries)
  })
  test("what Canaries may reach is gathered", () => {
    expect(given({})).toMatchObject({ allowEgress: [], sharedNamespaces: [], metricsServer: undefined })
    const allowEgress = ["shop=prometheus.monitoring.svc:9090", "*=10.0.0.7:443"]
    const metricsServer = "http://prometheus.monitoring.svc:9090"
    expect(given({ allowEgress, sharedNamespace: ["monitoring"], metricsServer })).toMatchObject({
      allowEgress,
      sharedNamespaces: ["monitoring"],
      metricsServer,
    })
  })
  test("--allow-provider is gathered", () => {
    expect(given({}).allowProviders).toEqual([])
    expect(given({ allowProvider: ["smi:v1alpha2"] }).allowProviders).toEqual(["smi:v1alpha2"])
    expect(() => given({ allowProvider: ["linkerd"] })).toThrow(
      "--allow-provider: linkerd is no provider that is off: write smi:v1alpha2 or istio",
    )
  })
  test("--pulls-per-registry is a number", () => {
    expect([given({}), given({ pullsPerRegistry: "5" })].map(each => each.pullsPerRegistry)).toEqual([20, 5])
    expect(() => given({ pullsPerRegistry: "0" })).toThrow("--pulls-per-registry: 0 is not a number from 1 to 9999")
  })
  test("what it does not understand is refused with what there is", () => {
    expect(() => given({ kinds: "Widget" })).toThrow(
      "there is no controller for Widget: write serviceimage,alternateimagesource,canary",
    )
    expect(() => given({ kinds: "" })).toThrow("there is no controller for")
    expect(() => given({ metricsPort: "99999" })).toThrow("99999 is not a port")
    expect(() => given({ metricsPort: "http" })).toThrow("http is not a port")
    expect(() => given({ allowRegistry: ["registry"] })).toThrow(
      "--allow-registry: registry is not a registry: write HOST:PORT",
    )
    expect(() => given({ leaseNamespace: "Kube" })).toThrow("--lease-namespace: Kube is not a namespace")
    expect(() => given({ allowEgress: ["prometheus.monitoring.svc:9090"] })).toThrow(
      /^--allow-egress: .*NAMESPACE is missing: write NAMESPACE=HOST:PORT/,
    )
    expect(() => given({ allowEgress: ["shop=prometheus.monitoring.svc"] })).toThrow("PORT is missing")
    expect(() => given({ sharedNamespace: ["Shop"] })).toThrow("--shared-namespace: Shop is not a namespace")
    expect(() => given({ metricsServer: "prometheus:9090" })).toThrow(
      '--metrics-server: "prometheus:9090": write a URL with http:// or https://',
    )
    expect(() => given({ metricsServer: "http://prometheus:9090" })).toThrow(
      '--metrics-server: "http://prometheus:9090": HOST has no dot: write the whole name, SERVICE.NAMESPACE.svc',
    )
    expect(() => given({ metricsServer: "http://me:secret@prometheus.example.com" })).toThrow("leave user and password")
  })
})
