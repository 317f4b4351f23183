import { expect, test } from "vitest"
import { findingsOf } from "../findings.ts"
import type { RouteContext, RouteObject, Split } from "../router.ts"
import { serviceNamesOf } from "../services.ts"
import { canaryOf } from "../test-canary.ts"
import { routerOf, withoutEffect } from "./index.ts"
import { smi } from "./smi.ts"

type Spec = NonNullable<Parameters<typeof canaryOf>[0]>

const canary = (spec: Spec = {}) => canaryOf({ provider: "smi:v1alpha2", ...spec })
const context = (spec: Spec = {}): RouteContext => ({
  canary: canary(spec),
  services: serviceNamesOf(canaryOf()),
  hashes: { source: "a", target: "b" },
})
const to = (weight: number): Split => ({ weight, isMirrored: false })
const backends = ({ spec }: RouteObject) =>
  (spec as { backends: { service: string; weight: number }[] }).backends
    .map(({ service, weight }) => `${service} ${weight}`)
    .join(", ")

test("one that is made has both Services, also where one has no share, and names the Service or the host", () => {
  const made = smi.routed(context(), undefined, to(0))
  expect(made).toMatchObject({ apiVersion: "split.smi-spec.io/v1alpha2", kind: "TrafficSplit" })
  expect(made.spec).toEqual({
    service: "web",
    backends: [
      { service: "web-primary", weight: 100 },
      { service: "web-canary", weight: 0 },
    ],
  })
  const next = smi.routed(context({ service: { hosts: ["web.mesh"] } }), made, to(30))
  expect(next.spec).toMatchObject({ service: "web.mesh" })
  expect([backends(next), smi.splitIn(context(), next)]).toEqual(["web-primary 70, web-canary 30", to(30)])
  expect(smi.isAccepted(context(), next)).toEqual({ ok: true })
  expect(smi.restored(context(), next)).toBeUndefined()
})

test("one that was there is divided in stages and given back as it was", () => {
  const before: RouteObject = {
    ...{ apiVersion: "split.smi-spec.io/v1alpha2", kind: "TrafficSplit", metadata: { name: "web", namespace: "shop" } },
    spec: {
      service: "web.mesh",
      backends: [
        { service: "web", weight: 9 },
        { service: "other", weight: 1 },
      ],
    },
  }
  const all = [before]
  for (let count = 0; count < 3; count++) all.push(smi.routed(context(), all.at(-1)!, to(50)))
  expect(all.map(backends)).toEqual([
    "web 9, other 1",
    "web 900, web-primary 0, web-canary 0, other 100",
    "web 0, web-primary 450, web-canary 450, other 100",
    "web-primary 450, web-canary 450, other 100",
  ])
  const back = [all.at(-1)!]
  for (let count = 0; count < 3; count++) back.push(smi.restored(context(), back.at(-1)!)!)
  expect(back.at(-1)).toEqual(before)
  const foreign = { ...before, spec: { service: "web", backends: [{ service: "other", weight: 1 }] } }
  expect(smi.isAccepted(context(), foreign)).toMatchObject({
    ok: false,
    why: expect.stringContaining("no backend web"),
  })
})

test("it is off unless it is allowed, and what it cannot do is refused", () => {
  expect(routerOf(canary(), ["smi:v1alpha2"])).toBe(smi)
  expect(routerOf(canary(), [])).toEqual({
    reason: "NotSupported",
    field: "provider",
    message:
      "provider smi:v1alpha2 is off, unless an administrator runs aim controller --allow-provider smi:v1alpha2: write one of gatewayapi, gatewayapi:v1, gatewayapi:v1beta1, contour, traefik, kubernetes",
  })
  expect(findingsOf(canary())).toMatchObject([{ field: "spec.provider", kind: "Missing" }])
  const asked = { iterations: 1, mirror: true, match: [{ headers: { a: { exact: "b" } } }] }
  const affinity = { stepWeights: [10], sessionAffinity: { cookieName: "c" } }
  const fields = (analysis: object) => smi.problemsOf(canary({ analysis })).map(({ field }) => field)
  expect([fields(asked), fields(affinity), fields({ stepWeights: [10] })]).toEqual([
    ["analysis.match", "analysis.mirror"],
    ["analysis.sessionAffinity"],
    [],
  ])
  expect(withoutEffect(canary({ service: { hosts: ["a"], timeout: "5s" } }))).toEqual(["service.timeout"])
})
