import type { Fault, ImageContent } from "../../../src/cluster-sim/physics/node/index.ts"

/** An image as it is made for the real node, and as the simulated registry describes it. */
export type Image = { name: string; script: string; simulated: ImageContent }

const idle = "while :; do sleep 3600 & wait $!; done"
const polite = "trap 'exit 0' TERM"
const serve = "httpd -p 8080 -h /srv/www"
const sizeBytes = 1_000_000

/** Every one of them under the tag `1`. */
export const images: readonly Image[] = [
  { name: "web", script: `${polite}; ${serve}; ${idle}`, simulated: { sizeBytes } },
  { name: "next", script: `${polite}; ${serve}; ${idle}; : next`, simulated: { sizeBytes } },
  {
    name: "slow",
    script: `${polite}; sleep 4 & wait $!; ${serve}; ${idle}`,
    simulated: { sizeBytes, readyAfterMs: 4000 },
  },
  { name: "deaf", script: `${polite}; ${idle}`, simulated: { sizeBytes, neverReady: true } },
  {
    name: "crash",
    script: `${polite}; sleep 1 & wait $!; exit 3`,
    simulated: { sizeBytes, exits: { afterMs: 1000, exitCode: 3 } },
  },
  {
    name: "once",
    script: `${polite}; sleep 1 & wait $!; exit 0`,
    simulated: { sizeBytes, exits: { afterMs: 1000, exitCode: 0 } },
  },
  { name: "stubborn", script: `trap '' TERM; ${idle}`, simulated: { sizeBytes, ignoresTerm: true } },
]

/** What the faulty registry answers for a repository of this name. */
export const faults: Readonly<Record<string, { status: number; headers?: Record<string, string>; simulated: Fault }>> =
  {
    "status-401": { status: 401, simulated: { kind: "status", status: 401, challenge: "none" } },
    "status-403": { status: 403, simulated: { kind: "status", status: 403 } },
    "status-404": { status: 404, simulated: { kind: "status", status: 404 } },
    "status-429": {
      status: 429,
      headers: { "retry-after": "30" },
      simulated: { kind: "status", status: 429, retryAfterSeconds: 30 },
    },
    "status-500": { status: 500, simulated: { kind: "status", status: 500 } },
    "status-503": { status: 503, simulated: { kind: "status", status: 503 } },
  }
