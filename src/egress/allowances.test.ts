import { describe, expect, test } from "vitest"
import { parseAllowance, readAllowances } from "./allowances.ts"

describe("--allow-egress", () => {
  test.each([
    ["shop=prometheus.monitoring.svc:9090", { namespace: "shop", host: "prometheus.monitoring.svc", port: 9090 }],
    ["*=Hooks.Example.COM.:443", { namespace: "*", host: "hooks.example.com", port: 443 }],
    ["shop=10.0.0.7:80", { namespace: "shop", host: "10.0.0.7", port: 80 }],
    ["shop=0x7f.1:80", { namespace: "shop", host: "127.0.0.1", port: 80 }],
    ["shop=[FD00::1]:65535", { namespace: "shop", host: "fd00::1", port: 65_535 }],
    ["shop=localhost:1", { namespace: "shop", host: "localhost", port: 1 }],
  ])("%s", (text, allowance) => expect(parseAllowance(text)).toEqual({ ok: true, allowance }))

  test.each([
    ["", "NAMESPACE is missing"],
    ["prometheus.monitoring:9090", "write NAMESPACE=HOST:PORT, or *=HOST:PORT for all namespaces"],
    ["=a.b:1", "NAMESPACE is not the name of a namespace"],
    ["Shop=a.b:1", "NAMESPACE is not the name of a namespace"],
    ["sh*=a.b:1", "NAMESPACE is not the name of a namespace"],
    [`${"a".repeat(64)}=a.b:1`, "NAMESPACE is not the name of a namespace"],
    ["a b=a.b:1", "write lower-case letters, digits and hyphens, or * for all"],
    ["shop=", "HOST is missing"],
    ["shop=:80", "HOST is missing"],
    ["shop=http://a.b:80", "HOST has a scheme: write HOST:PORT without it"],
    ["shop=a.b:80/path", "HOST:PORT has a path"],
    ["shop=*.example.com:443", "only NAMESPACE may be *"],
    ["shop=a.b", "PORT is missing: write shop=a.b:PORT"],
    ["shop=[::1]", "PORT is missing"],
    ["shop=a.b:", "PORT is not a number from 1 to 65535"],
    ["shop=a.b:0", "PORT is not a number"],
    ["shop=a.b:65536", "PORT is not a number"],
    ["shop=a.b:http", "PORT is not a number"],
    ["shop=a.b:80 ", "PORT is not a number"],
    ["shop=::1:80", "write [ADDRESS]:PORT"],
    ["shop=fd00::1", "write [ADDRESS]:PORT"],
    ["shop=user@a.b:80", "HOST is neither a name nor an address"],
    ["shop=a.b?:80", "HOST is neither a name nor an address"],
    ["shop=a_b.c:80", "HOST is neither a name nor an address"],
    ["shop=a.b\n:80", "HOST is neither a name nor an address"],
    ["shop=1.2.3.4.5:80", "HOST is neither a name nor an address"],
    ["shop=prometheus:9090", "HOST has no dot: write the whole name, SERVICE.NAMESPACE.svc for a Service"],
  ])("refused: %j", (text, says) => {
    expect(parseAllowance(text)).toEqual({ ok: false, error: expect.stringContaining(says) })
    expect(() => readAllowances([text])).toThrow(says)
  })
})

test("an allowance is for one namespace, or all, and one port of one host", () => {
  const allowances = readAllowances(["shop=a.test:80", "*=b.test:443"])
  const cases: [namespace: string, host: string, port: number, isAllowed: boolean][] = [
    ["shop", "a.test", 80, true],
    ["bank", "a.test", 80, false],
    ["*", "a.test", 80, false],
    ["shop", "a.test", 81, false],
    ["shop", "b.test", 80, false],
    ["bank", "b.test", 443, true],
    ["shop", "a.test 80 x", 80, false],
  ]
  for (const [namespace, host, port, isAllowed] of cases)
    expect([namespace, host, port, allowances.has({ namespace, host, port })]).toEqual([
      namespace,
      host,
      port,
      isAllowed,
    ])
})
