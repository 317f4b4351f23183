import { expect, test } from "vitest"
import { parseRegistriesFile } from "./registries-file.ts"

const read = (text: string) => parseRegistriesFile(text, { now: 1000 })

test("a file with everything in it", () => {
  expect(
    read(`
registries:
  ghcr.io:
    latency: 80ms
    bandwidth: 20MB/s
    images:
      shop/web:
        "1.0": {}
        1.10:
          size: 80MB
          platforms: [linux/amd64]
          readyAfter: 5s
          exits: { after: 20s, code: 3 }
          stopsAfter: 2s
          fault: 503
      shop/api:
        "1": { exits: { after: 1m, reason: OOMKilled }, ignoresTerm: true, neverReady: true }
  index.docker.io:
    fault: { status: 429, retryAfter: 30s, for: 10m, times: 3 }
    images:
      nginx: { "1.25": }
  127.0.0.1:5000:
    fault: refused
    accounts: { anna: secret }
`),
  ).toEqual([
    {
      host: "ghcr.io",
      latencyMs: 80,
      bytesPerSecond: 20_000_000,
      images: {
        "shop/web": {
          "1.0": {},
          "1.10": {
            sizeBytes: 80_000_000,
            platforms: ["linux/amd64"],
            readyAfterMs: 5000,
            exits: { afterMs: 20_000, exitCode: 3 },
            stopsAfterMs: 2000,
            fault: { kind: "status", status: 503 },
          },
        },
        "shop/api": {
          1: { exits: { afterMs: 60_000, exitCode: 137, reason: "OOMKilled" }, ignoresTerm: true, neverReady: true },
        },
      },
    },
    {
      host: "docker.io",
      fault: { kind: "status", status: 429, retryAfterSeconds: 30, until: 601_000, times: 3 },
      images: { "library/nginx": { 1.25: {} } },
    },
    { host: "127.0.0.1:5000", fault: { kind: "refused" }, accounts: { anna: "secret" } },
  ])
})

const wrong: Record<string, [text: string, problems: string[]]> = {
  "a slip of the fingers": [
    "registries: { ghcr.io: { latencyy: 1s } }",
    ["registries.ghcr.io.latencyy is no field; latency?"],
  ],
  "a path instead of a host": [
    "registries: { ghcr.io/shop: {} }",
    ["registries.ghcr.io/shop names a host (docker.io, 127.0.0.1:5000), not ghcr.io/shop"],
  ],
  "a password that is none": [
    "registries: { ghcr.io: { accounts: { anna: [a] } } }",
    ["registries.ghcr.io.accounts.anna is a password, not a list"],
  ],
  "several things at once": [
    "registries: { ghcr.io: { latency: fast, bandwidth: 20, fault: refuse } }",
    [
      'registries.ghcr.io.latency is a duration such as 250ms, 20s or 1m30s, not "fast"',
      'registries.ghcr.io.bandwidth is a speed such as 20MB/s, not "20"',
      'registries.ghcr.io.fault is one of refused, unreachable, no-such-host, timeout, reset, tls, plain-http, not "refuse"; refused?',
    ],
  ],
  "a fault that is none": [
    "registries: { ghcr.io: { fault: { status: 200 } } }",
    ['registries.ghcr.io.fault.status is a number from 400 to 599, not "200"'],
  ],
  "a fault of two kinds": [
    "registries: { ghcr.io: { fault: { status: 500, kind: reset } } }",
    [
      "registries.ghcr.io.fault has either a status (429) or a kind (refused, unreachable, no-such-host, timeout, reset, tls, plain-http)",
    ],
  ],
  "a repository in capitals": [
    "registries: { ghcr.io: { images: { Shop: {} } } }",
    [
      "registries.ghcr.io.images.Shop is no name of a repository: invalid reference format: repository name (Shop) must be lowercase",
    ],
  ],
  "an exit without a time": [
    'registries: { ghcr.io: { images: { web: { "1": { exits: { code: 1 } } } } } }',
    ["registries.ghcr.io.images.web.1.exits.after is missing: how long after its start (20s)"],
  ],
  "not a map": ["- a", ["the file is a map, not a list"]],
  "not YAML": [
    "registries: {",
    ["Flow map in block collection must be sufficiently indented and end with a } at line 1, column 14"],
  ],
}

for (const [name, [text, problems]] of Object.entries(wrong))
  test(`is refused: ${name}`, () => {
    const error = (() => {
      try {
        return read(text)
      } catch (caught) {
        return caught as { problems: string[] }
      }
    })()
    expect(error).toMatchObject({ problems })
  })
