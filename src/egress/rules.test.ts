import { describe, expect, test } from "vitest"
import { parseAllowance, readAllowances } from "./allowances.ts"
import { type EndpointSeen, mayConnect, type Rules, routeOf, type ServiceSeen } from "./rules.ts"

const pod = (address: string, changed: Partial<NonNullable<EndpointSeen["pod"]>> = {}): EndpointSeen => ({
  address,
  port: 9090,
  pod: { namespace: "shop", addresses: [address], isHostNetwork: false, ...changed },
})
const service = (changed: Partial<ServiceSeen> = {}): ServiceSeen => ({
  type: "ClusterIP",
  hasSelector: true,
  endpoints: [pod("10.1.0.7"), pod("10.1.0.8")],
  ...changed,
})

/** Services by `NAMESPACE/NAME`. All have port 80 only. */
const services: Record<string, ServiceSeen> = {
  "shop/prometheus": service(),
  "shop/dual": service({ endpoints: [pod("fd00::7")] }),
  "shop/global": service({ endpoints: [pod("2606:4700::7")] }),
  "shop/external": service({ type: "ExternalName", hasSelector: false }),
  "shop/manual": service({ hasSelector: false }),
  "shop/empty": service({ endpoints: [] }),
  "shop/foreign": service({ endpoints: [pod("10.1.0.7"), pod("10.1.0.9", { namespace: "bank" })] }),
  "shop/no-pod": service({ endpoints: [pod("10.1.0.7"), { address: "10.96.0.1", port: 443 }] }),
  "shop/forged": service({ endpoints: [pod("10.96.0.1", { addresses: ["10.1.0.7"] })] }),
  "shop/loopback": service({ endpoints: [pod("127.0.0.1")] }),
  "shop/metadata": service({ endpoints: [pod("169.254.169.254")] }),
  "shop/metadata-of-alibaba": service({ endpoints: [pod("100.100.100.200")] }),
  "shop/metadata-of-aws": service({ endpoints: [pod("fd00:ec2::254")] }),
  "shop/on-node": service({ endpoints: [pod("10.88.0.1", { isHostNetwork: true })] }),
  "com/example": service({ endpoints: [pod("10.1.0.5", { namespace: "com" })] }),
  "bank/vault": service({ endpoints: [pod("10.1.0.9", { namespace: "bank" })] }),
}

const rules: Rules = {
  allowances: readAllowances([
    "shop=prometheus.monitoring.svc:9090",
    "*=hooks.internal.test:443",
    "shop=10.0.0.1:80",
    "shop=manual.shop.svc:80",
  ]),
  serviceAt({ namespace, name, port }) {
    const seen = Object.hasOwn(services, `${namespace}/${name}`) ? services[`${namespace}/${name}`] : undefined
    return seen && port !== 80 ? { ...seen, endpoints: undefined } : seen
  },
  isOfCluster: address => address.startsWith("2606:4700:c::"),
}

const shown = (verdict: ReturnType<typeof mayConnect>) => (verdict.ok ? verdict.by : verdict.message)

describe("a namespace may connect to", () => {
  test.each([
    // Public addresses, by name or as they are.
    ["shop", "example.com", 443, "1.1.1.1", "PublicAddress"],
    ["shop", "example.com", 80, "2606:4700::1", "PublicAddress"],
    ["shop", "1.1.1.1", 9090, "1.1.1.1", "PublicAddress"],
    ["shop", "a.b.c.example.com", 443, "1.1.1.1", "PublicAddress"],
    ["shop", "service.svc.example.com", 443, "1.1.1.1", "PublicAddress"],
    ["shop", "prometheus.monitoring", 80, "1.1.1.1", "PublicAddress"], // as written, it is a host like any other
    ["com", "other.com", 443, "1.1.1.1", "PublicAddress"],
    // A Service of its own namespace, in each spelling.
    ["shop", "prometheus", 80, "10.1.0.7", "Service"],
    ["shop", "prometheus.shop", 80, "10.1.0.8", "Service"],
    ["shop", "prometheus.shop.svc", 80, "10.1.0.7", "Service"],
    ["shop", "prometheus.shop.svc.cluster.local", 80, "10.1.0.7", "Service"],
    ["shop", "dual", 80, "fd00::7", "Service"],
    ["shop", "global", 80, "2606:4700::7", "Service"],
    ["com", "example.com", 80, "10.1.0.5", "Service"],
    // What an administrator allows, on any address.
    ["shop", "prometheus.monitoring.svc", 9090, "10.96.0.9", "Allowance"],
    ["shop", "prometheus.monitoring.svc", 9090, "169.254.169.254", "Allowance"],
    ["bank", "hooks.internal.test", 443, "127.0.0.1", "Allowance"],
    ["shop", "10.0.0.1", 80, "10.0.0.1", "Allowance"],
    ["shop", "manual.shop.svc", 80, "10.96.0.10", "Allowance"],
  ])("%s → %s:%s at %s by %s", (namespace, host, port, address, by) =>
    expect(shown(mayConnect({ namespace, host, port, address }, rules))).toBe(by),
  )
})

describe("a namespace may not connect to", () => {
  const allow = (entry: string) => `an administrator may allow it with --allow-egress ${entry}`
  test.each([
    // Addresses that are not public, whatever name they have.
    ["shop", "example.com", 80, "10.0.0.1", `has a private address: ${allow("shop=example.com:80")}`],
    ["shop", "example.com", 80, "127.0.0.1", "has a loopback address"],
    ["shop", "example.com", 80, "169.254.169.254", "has a link-local address"],
    ["shop", "example.com", 80, "168.63.129.16", "has a link-local address"],
    ["shop", "example.com", 80, "::1", "has a local or reserved address"],
    ["shop", "example.com", 80, "::ffff:10.0.0.1", "has a local or reserved address"],
    ["shop", "example.com", 80, "64:ff9b::a00:1", "has a private address"],
    ["shop", "example.com", 80, "fe80::1%eth0", "has no address"],
    ["shop", "example.com", 80, "2606:4700:c::1", "has a cluster's own address"],
    ["shop", "localhost", 80, "127.0.0.1", `has a loopback address: ${allow("shop=localhost:80")}`],
    ["shop", "a.localhost", 80, "127.0.0.1", "has a loopback address"],
    ["shop", "10.1.0.7", 80, "10.1.0.7", `10.1.0.7 has a private address: ${allow("shop=10.1.0.7:80")}`],
    ["shop", "fd00::7", 80, "fd00::7", allow("shop=[fd00::7]:80")],
    // Services of other namespaces, in each spelling.
    ["shop", "vault.bank", 80, "10.1.0.9", "has a private address"],
    ["shop", "vault.bank.svc", 80, "10.1.0.9", `another namespace than shop: ${allow("shop=vault.bank.svc:80")}`],
    ["shop", "vault.bank.svc", 80, "1.1.1.1", "is a Service of another namespace"],
    ["shop", "vault.bank.svc.cluster.local", 80, "1.1.1.1", "is a Service of another namespace"],
    ["shop", "vault", 80, "10.1.0.9", "namespace shop has no Service vault, which vault names"],
    ["shop", "kubernetes.default.svc", 443, "10.96.0.1", "is a Service of another namespace"],
    // Names inside the cluster that are no Service.
    ["shop", "web-0.web.shop.svc", 80, "1.1.1.1", "is inside the cluster and not a Service"],
    ["shop", "shop.svc", 80, "1.1.1.1", "is inside the cluster and not a Service"],
    ["shop", "10-1-0-7.shop.pod.cluster.local", 80, "1.1.1.1", "is inside the cluster and not a Service"],
    ["shop", "_http", 80, "1.1.1.1", "is inside the cluster and not a Service"],
    ["shop", "constructor.shop.svc", 80, "1.1.1.1", "has no Service constructor"],
    // Its own Services, where other things than its pods may stand behind them.
    ["shop", "external", 80, "1.1.1.1", "Service external of namespace shop is an ExternalName"],
    ["shop", "manual", 80, "10.1.0.7", "has no selector, so that it may lead anywhere"],
    ["shop", "foreign", 80, "10.1.0.7", "has an endpoint that is not a pod of its namespace"],
    ["shop", "no-pod", 80, "10.1.0.7", "has an endpoint that is not a pod of its namespace"],
    ["shop", "forged", 80, "10.96.0.1", "has an endpoint that is not a pod of its namespace"],
    ["shop", "loopback", 80, "127.0.0.1", "has an endpoint that is not a pod of its namespace"],
    ["shop", "metadata", 80, "169.254.169.254", "has an endpoint that is not a pod of its namespace"],
    ["shop", "metadata-of-alibaba", 80, "100.100.100.200", "has an endpoint that is not a pod of its namespace"],
    ["shop", "metadata-of-aws", 80, "fd00:ec2::254", "has an endpoint that is not a pod of its namespace"],
    ["shop", "on-node", 80, "10.88.0.1", "has a pod that uses the network of its node"],
    ["shop", "empty", 80, "10.1.0.7", "has no ready pods"],
    ["shop", "prometheus", 81, "10.1.0.7", "Service prometheus of namespace shop has no port 81"],
    // The address that a name server gives is not that of the cache.
    ["shop", "prometheus", 80, "10.1.0.99", "none of its pods has the address"],
    ["shop", "prometheus.shop", 80, "1.1.1.1", "none of its pods has the address"],
    // What is allowed to another namespace, at another port or by another name.
    ["bank", "prometheus.monitoring.svc", 9090, "10.96.0.9", allow("bank=prometheus.monitoring.svc:9090")],
    ["shop", "prometheus.monitoring.svc", 9091, "10.96.0.9", allow("shop=prometheus.monitoring.svc:9091")],
    ["shop", "prometheus.monitoring.svc.cluster.local", 9090, "10.96.0.9", "is a Service of another namespace"],
    ["shop", "hooks.internal.test", 80, "10.0.0.1", "has a private address"],
    ["shop", "10.0.0.2", 80, "10.0.0.2", "has a private address"],
  ])("%s → %s:%s at %s", (namespace, host, port, address, says) =>
    expect(shown(mayConnect({ namespace, host, port, address }, rules))).toContain(says),
  )

  test("the address is not reported: it may be known to the cluster's name server only", () => {
    const verdict = mayConnect({ namespace: "shop", host: "example.com", port: 80, address: "10.20.30.40" }, rules)
    expect(shown(verdict)).not.toContain("10.20")
  })
})

test("a Service is reached at its pods, and at their port", () => {
  expect(routeOf({ namespace: "shop", host: "prometheus", port: 80 }, rules)).toEqual({
    ok: true,
    by: "Service",
    places: [
      { address: "10.1.0.7", port: 9090 },
      { address: "10.1.0.8", port: 9090 },
    ],
  })
})

test("another domain of the cluster", () => {
  const other = { ...rules, clusterDomain: "k8s.example.com" }
  const at = (host: string) => shown(mayConnect({ namespace: "shop", host, port: 80, address: "10.1.0.7" }, other))
  expect(at("prometheus.shop.svc.k8s.example.com")).toBe("Service")
  expect(at("vault.bank.svc.k8s.example.com")).toContain("another namespace")
  expect(at("hooks.k8s.example.com")).toContain("has a private address")
})

describe("what a refusal says to allow, allows it", () => {
  test.each([
    ["example.com", "10.0.0.1"],
    ["fd00::7", "fd00::7"],
    ["localhost", "127.0.0.1"],
    ["vault.bank.svc", "10.1.0.9"],
    ["vault.bank", "10.1.0.9"],
    ["external", "10.1.0.9"],
    ["web-0.web.shop.svc", "10.1.0.9"],
  ])("%s", (host, address) => {
    const asked = { namespace: "shop", port: 80, address }
    const before = shown(mayConnect({ ...asked, host }, rules))
    const [, flag = "", whole] = /--allow-egress ([^ ,]+)(?:, if the URL names it (\S+))?$/.exec(before) ?? []
    expect(parseAllowance(flag)).toMatchObject({ ok: true })
    const after = { ...rules, allowances: readAllowances([flag]) }
    expect(shown(mayConnect({ ...asked, host: whole ?? host }, after))).toBe("Allowance")
  })
})
