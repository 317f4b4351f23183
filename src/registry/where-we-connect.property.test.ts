import { createServer } from "node:http"
import { duplexPair } from "node:stream"
import fc from "fast-check"
import { expect, test } from "vitest"
import type { Destination } from "#egress/connect.ts"
import { systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createRegistryClient } from "./client.ts"

/**
 * Whatever name servers and registries answer, connections go to public addresses, and to hosts and ports that were
 * allowed. Nothing is dialled for real: each connection ends in one server that answers from a script.
 */

const ports = [443, 80, 5000]
const names = ["a.example.com", "b.example.com", "c.example.com"]

const byte = fc.integer({ min: 0, max: 255 })
const publicAddress = fc.oneof(
  byte.map(last => `1.1.1.${last}`),
  byte.map(last => `2606:4700::${last.toString(16)}`),
)
/** Where each name can lie: private ranges of its own, so that a connection tells by which name it was reached. */
const privateAddress = (name: number) =>
  fc.oneof(
    byte.map(last => `10.${name}.0.${last}`),
    byte.map(last => `127.${name}.0.${last}`),
    byte.map(last => `169.254.${name}.${last}`),
    byte.map(last => `fd00:${name}::${last.toString(16)}`),
    byte.map(last => `::ffff:10.${name}.0.${last}`),
  )
const ownerOf = (address: string) => {
  const found = /^(?:::ffff:)?(?:10|127|169\.254|fd00)[.:](\d)[.:]/.exec(address)?.[1]
  return found === undefined ? undefined : names[Number(found) - 1]
}

const literals = ["127.0.0.1", "10.9.9.9", "169.254.169.254", "[::1]", "0x7f.1", "localhost"]
const host = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...names) },
  { weight: 1, arbitrary: fc.constantFrom(...literals) },
)
const port = fc.constantFrom(...ports)
const url = fc
  .tuple(fc.constantFrom("http", "https"), host, port, fc.boolean())
  .map(([scheme, name, port, short]) => `${scheme}://${name}${short ? "" : `:${port}`}/token`)

const answer = fc.oneof(
  fc.record({
    status: fc.constant(401),
    headers: url.map(realm => ({ "www-authenticate": `Bearer realm="${realm}"` })),
  }),
  fc.record({ status: fc.constantFrom(301, 302, 307, 308), headers: url.map(location => ({ location })) }),
  fc.record({ status: fc.constantFrom(200, 403, 404, 405, 429, 500), headers: fc.constant({}) }),
)

const world = fc.record({
  lookups: fc.tuple(
    ...names.map((_, name) =>
      // Another answer at each question.
      fc.array(fc.array(fc.oneof(publicAddress, privateAddress(name + 1)), { maxLength: 3 }), {
        minLength: 1,
        maxLength: 4,
      }),
    ),
  ),
  allow: fc.uniqueArray(
    fc.record({ scheme: fc.constantFrom("http://", "https://", ""), name: fc.constantFrom(...names), port }),
    { maxLength: 3, selector: ({ name, port }) => `${name}:${port}` },
  ),
  answers: fc.array(answer, { minLength: 1, maxLength: 6 }),
  images: fc.array(fc.tuple(host, port, fc.boolean()), { minLength: 1, maxLength: 3 }),
})

test("no connection goes to an address that is not allowed", async () => {
  const connections = { everywhere: 0, inside: 0 }
  await fc.assert(
    fc.asyncProperty(world, async ({ lookups, allow, answers, images }) => {
      const dialled: (Destination & { name: string })[] = []
      let lastName = ""
      const questions = new Map<string, number>()
      let answered = 0
      const server = createServer((request, response) => {
        if (request.url?.startsWith("/token")) return response.end('{"token":"t"}')
        const { status, headers } = answers[answered++ % answers.length]!
        return response.writeHead(status, headers).end()
      })
      const client = createRegistryClient({
        clock: systemClock,
        random: seededRandom(1),
        allow: allow.map(({ scheme, name, port }) => `${scheme}${name}:${port}`),
        async lookup(name) {
          lastName = name
          if (name === "localhost") return ["127.0.0.1"]
          const turn = questions.get(name) ?? 0
          questions.set(name, turn + 1)
          const script = lookups[names.indexOf(name)] ?? []
          return script[turn % script.length] ?? []
        },
        async dial(to) {
          dialled.push({ ...to, name: lastName })
          const [ours, theirs] = duplexPair()
          server.emit("connection", theirs)
          return ours
        },
      })
      for (const [name, port, short] of images)
        await client.resolve({ host: short ? name : `${name}:${port}`, path: "app", tag: "v1" })

      for (const { name, address, port, secureFor } of dialled) {
        const isPublic = /^(1\.1\.1\.|2606:4700::)/.test(address)
        connections.everywhere++
        if (!isPublic) connections.inside++
        const owner = isPublic ? name : ownerOf(address)
        const entry = allow.find(entry => entry.name === owner && entry.port === port)
        if (!isPublic) expect({ address, port, entry }).toMatchObject({ entry: { name: owner } })
        // Plain text is for those that were allowed so, wherever they are; a certificate is for the name that was asked.
        if (entry?.scheme !== "http://") expect(secureFor).toBe(owner)
      }
    }),
    { numRuns: Number(process.env.AIM_RUNS ?? 1500) },
  )
  // The worlds are not so hostile that nothing was ever reached.
  expect(connections.inside).toBeGreaterThan(20)
  expect(connections.everywhere).toBeGreaterThan(connections.inside)
})
