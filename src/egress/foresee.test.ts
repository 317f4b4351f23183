import { expect, test } from "vitest"
import { readAllowances } from "./allowances.ts"
import { foresee } from "./foresee.ts"

const flag = (place: string, isCertain = true) => ({
  need: "Allowance",
  flag: `--allow-egress shop=${place}`,
  isCertain,
})

const cases: Record<string, unknown> = {
  "https://hooks.slack.com/services/x": { need: "None" },
  "http://prometheus:9090": { need: "None" },
  "http://prometheus.shop:9090": { need: "None" },
  "http://prometheus.shop.svc.cluster.local": { need: "None" },
  "http://8.8.8.8/": { need: "None" },
  "http://prometheus.monitoring.svc:9090/x": flag("prometheus.monitoring.svc:9090"),
  "https://prometheus.monitoring.svc.cluster.local": flag("prometheus.monitoring.svc.cluster.local:443"),
  "http://flagger-loadtester.test/": flag("flagger-loadtester.test:80", false),
  "http://shop.com/": flag("shop.com:80", false),
  "http://10.0.0.7:9090": flag("10.0.0.7:9090"),
  "http://[fd00::1]:9090": flag("[fd00::1]:9090"),
  "http://localhost:9090": flag("localhost:9090"),
  "http://a.b.pod.cluster.local": flag("a.b.pod.cluster.local:80"),
  "http://user:secret@prometheus:9090": { need: "Change" },
  "ftp://prometheus": { need: "Change" },
}
for (const [url, want] of Object.entries(cases))
  test(url, () => expect(foresee({ namespace: "shop", url })).toMatchObject(want as object))

test("a certificate that is not checked needs an administrator, wherever it is", () => {
  const asked = { namespace: "shop", isUnchecked: true }
  expect(foresee({ ...asked, url: "https://grafana.example.com" })).toMatchObject(flag("grafana.example.com:443"))
  expect(foresee({ ...asked, url: "https://prometheus.shop.svc" })).toMatchObject(flag("prometheus.shop.svc:443"))
  // Its name has no dot, so that no flag can name it.
  expect(foresee({ ...asked, url: "https://prometheus" })).toMatchObject({ need: "Change" })
  expect(foresee({ ...asked, url: "http://prometheus" })).toEqual({ need: "None" })
})

test("what an administrator has allowed needs nothing more", () => {
  const url = "http://prometheus.monitoring.svc:9090"
  const allowances = readAllowances(["shop=prometheus.monitoring.svc:9090"])
  expect(foresee({ namespace: "shop", url, allowances })).toEqual({ need: "None" })
  expect(foresee({ namespace: "other", url, allowances })).toMatchObject({ need: "Allowance" })
})
