import { createServer } from "node:http"
import { duplexPair } from "node:stream"
import fc from "fast-check"
import { expect, test } from "vitest"
import { systemClock } from "#runtime/clock.ts"
import { readAllowances } from "./allowances.ts"
import type { Destination } from "./connect.ts"
import { createEgress } from "./request.ts"
import type { EndpointSeen, ServiceSeen } from "./rules.ts"

/**
 * Whatever name servers, servers and tenants write, connections go to public addresses, to pods behind a Service of the
 * namespace that asks, and to hosts and ports that were allowed to it. Nothing is dialled for real: each connection ends
 * in one server that answers from a script.
 */

const namespaces = ["shop", "bank", "com"]
const names = ["a.example.com", "b.example.com", "web.com", "inside.test"]
const services = ["web", "api"]
const ports = [80, 443, 9090]

const byte = fc.integer({ min: 0, max: 255 })
const publicAddress = fc.oneof(
  byte.map(last => `1.1.1.${last}`),
  byte.map(last => `2606:4700::${last.toString(16)}`),
)
/** Ranges of their own for each source, so that an address shows where it came from. */
const privateOfName = (name: number) =>
  fc.oneof(
    byte.map(last => `10.${name}.0.${last}`),
    byte.map(last => `127.${name}.0.${last}`),
    byte.map(last => `169.254.${name}.${last}`),
    byte.map(last => `fd00:${name}::${last.toString(16)}`),
    byte.map(last => `2606:4700:c:${name}::${last.toString(16)}`), // public, and the cluster's
  )
const podAddress = (namespace: number) => byte.map(last => `10.10${namespace}.0.${last}`)

const endpoint: fc.Arbitrary<EndpointSeen> = fc
  .record({
    /** Of which namespace the address is, and of which the pod claims to be. */
    owner: fc.nat(namespaces.length - 1),
    claims: fc.option(fc.constantFrom(...namespaces)),
    isListed: fc.boolean(),
    isHostNetwork: fc.integer({ min: 0, max: 9 }).map(chance => chance === 0),
    port: fc.constantFrom(8080, 10_250),
  })
  .chain(({ owner, claims, isListed, isHostNetwork, port }) =>
    podAddress(owner).map(address => ({
      address,
      port,
      // A reference may lie about its namespace. The pod that our cache has for it then has another address.
      ...(claims !== null && {
        pod: {
          namespace: claims,
          addresses: isListed && claims === namespaces[owner] ? [address] : ["10.200.0.1"],
          isHostNetwork,
        },
      }),
    })),
  )
const honest = (namespace: number): fc.Arbitrary<EndpointSeen> =>
  podAddress(namespace).map(address => ({
    address,
    port: 8080,
    pod: { namespace: namespaces[namespace]!, addresses: [address], isHostNetwork: false },
  }))
const service = (namespace: number): fc.Arbitrary<ServiceSeen> =>
  fc.record({
    type: fc.constantFrom("ClusterIP", "ClusterIP", "LoadBalancer", "ExternalName"),
    hasSelector: fc.constantFrom(true, true, false),
    endpoints: fc.oneof(
      { weight: 3, arbitrary: fc.array(honest(namespace), { maxLength: 3 }) },
      { weight: 1, arbitrary: fc.array(fc.oneof(honest(namespace), endpoint), { maxLength: 3 }) },
    ),
  })

const literals = ["127.0.0.1", "10.9.9.9", "169.254.169.254", "[::1]", "[fd00:ec2::254]", "0x7f.1", "localhost"]
const ofService = fc
  .tuple(fc.constantFrom(...services), fc.constantFrom(...namespaces), fc.nat(3), fc.boolean())
  .map(([name, namespace, form, dot]) => {
    const host = [name, `${name}.${namespace}`, `${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`]
    return `${host[form]}${dot ? "." : ""}`
  })
const host = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...names) },
  { weight: 3, arbitrary: ofService },
  { weight: 1, arbitrary: fc.constantFrom(...literals) },
)
const url = fc
  .tuple(fc.constantFrom("http", "https"), host, fc.option(fc.constantFrom(...ports)))
  .map(([scheme, host, port]) => `${scheme}://${host}${port === null ? "" : `:${port}`}/`)

const answer = fc.oneof(
  fc.record({ status: fc.constantFrom(301, 302, 307, 308), headers: url.map(location => ({ location })) }),
  fc.record({
    status: fc.constant(401),
    headers: url.map(realm => ({ "www-authenticate": `Bearer realm="${realm}"` })),
  }),
  fc.record({ status: fc.constantFrom(200, 404, 500), headers: fc.constant({ "set-cookie": "a=b" }) }),
)

const world = fc.record({
  lookups: fc.tuple(
    ...names.map((_, name) =>
      // Another answer at each question.
      fc.array(
        fc.oneof(
          { weight: 2, arbitrary: fc.array(publicAddress, { maxLength: 3 }) },
          { weight: 1, arbitrary: fc.array(fc.oneof(publicAddress, privateOfName(name + 1)), { maxLength: 3 }) },
        ),
        { minLength: 1, maxLength: 4 },
      ),
    ),
  ),
  services: fc.tuple(...namespaces.map((_, at) => fc.tuple(...services.map(() => fc.option(service(at)))))),
  allow: fc.array(
    fc.record({
      namespace: fc.constantFrom(...namespaces, "*"),
      host: fc.oneof(
        fc.constantFrom(...names),
        ofService.filter(host => host.replace(/\.$/, "").includes(".")),
        fc.constantFrom(...literals),
      ),
      port: fc.constantFrom(...ports),
    }),
    { maxLength: 3 },
  ),
  answers: fc.array(answer, { minLength: 1, maxLength: 4 }),
  requests: fc.array(
    fc.record({
      namespace: fc.constantFrom(...namespaces),
      url,
      /** Ask for what this allowance names, if there is one. */
      follows: fc.nat(5),
      isUnchecked: fc.boolean(),
      method: fc.constantFrom("GET", "POST"),
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

const plain = (host: string) => new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")

test("no connection goes to an address that is not allowed to the namespace that asks", async () => {
  const reached = { Public: 0, Service: 0, Allowance: 0, unchecked: 0 }
  await fc.assert(
    fc.asyncProperty(world, async ({ lookups, services: seen, allow, answers, requests }) => {
      let dialled: Destination[] = []
      const questions = new Map<string, number>()
      let answered = 0
      const server = createServer((request, response) => {
        expect(request.headers.cookie).toBeUndefined()
        expect(request.headers.authorization).toBeUndefined()
        const { status, headers } = answers[answered++ % answers.length]!
        return response.writeHead(status, headers).end()
      })
      const { request } = createEgress({
        clock: systemClock,
        rules: {
          allowances: readAllowances(allow.map(({ namespace, host, port }) => `${namespace}=${host}:${port}`)),
          serviceAt: ({ namespace, name }) =>
            seen[namespaces.indexOf(namespace)]?.[services.indexOf(name)] ?? undefined,
          isOfCluster: address => address.startsWith("2606:4700:c:"),
        },
        async lookup(name) {
          if (name === "localhost") return ["127.0.0.1"]
          const turn = questions.get(name) ?? 0
          questions.set(name, turn + 1)
          // A cluster's name server knows Services, too, by the addresses of Services.
          const script = lookups[names.indexOf(name)] ?? [["10.96.0.1"]]
          return script[turn % script.length] ?? []
        },
        async dial(to) {
          dialled.push(to)
          const [ours, theirs] = duplexPair()
          server.emit("connection", theirs)
          return ours
        },
      })

      for (const { namespace, url: chosen, follows, isUnchecked, method } of requests) {
        dialled = []
        const followed = allow[follows]
        const url = followed ? `${chosen.split("://")[0]}://${followed.host}:${followed.port}/` : chosen
        const { hostname, protocol, port: written } = new URL(url)
        const asked = plain(hostname)
        const port = Number(written || (protocol === "https:" ? 443 : 80))
        const result = await request({ namespace, url, method, isUnchecked, timeoutMs: 10_000 })
        expect(dialled.length).toBeLessThanOrEqual(1) // one attempt, no redirect
        expect(result.ok).toBe(dialled.length === 1)
        for (const to of dialled) {
          const isAllowed = allow.some(
            entry => [namespace, "*"].includes(entry.namespace) && plain(entry.host) === asked && entry.port === port,
          )
          // A certificate is for the name that was asked, and is checked except where allowed.
          expect(to.secureFor).toBe(protocol === "https:" ? asked : undefined)
          if (to.isUnchecked) expect(isAllowed && isUnchecked).toBe(true)
          if (to.isUnchecked) reached.unchecked++
          if (isAllowed) {
            expect(to.port).toBe(port)
            reached.Allowance++
          } else if (/^(1\.1\.1\.|2606:4700::)/.test(to.address)) {
            expect(to.port).toBe(port)
            reached.Public++
          } else {
            const [name = "", its = namespace] = asked.split(".")
            const found = seen[namespaces.indexOf(namespace)]?.[services.indexOf(name)]
            expect(its).toBe(namespace)
            expect(found).toMatchObject({ hasSelector: true })
            expect(found!.type).not.toBe("ExternalName")
            expect(to.address).toMatch(new RegExp(`^10\\.10${namespaces.indexOf(namespace)}\\.`))
            const behind = found!.endpoints!.find(({ address, port }) => address === to.address && port === to.port)
            expect(behind?.pod).toMatchObject({ namespace, isHostNetwork: false })
            expect(behind!.pod!.addresses).toContain(to.address)
            reached.Service++
          }
        }
      }
    }),
    { numRuns: Number(process.env.AIM_RUNS ?? 1500) },
  )
  // The worlds are not so hostile that nothing was ever reached.
  for (const count of Object.values(reached)) expect(count).toBeGreaterThan(20)
})
