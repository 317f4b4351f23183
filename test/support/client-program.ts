// Sends requests at a constant rate and counts what becomes of them. `traffic.ts` starts it in the network of a cluster
// and reads the lines it prints. It ends by itself: when enough was sent, when its time is over, or with its stdin.
import { Agent, get } from "node:http"
import { createInterface } from "node:readline"
import type { ClientLine, ClientOptions, Cookie, Counted, Failure } from "./clients.ts"

const options = JSON.parse(process.argv[2] ?? "{}") as ClientOptions
const { path, headers, perSecond, connections, requestsMost, secondsMost, answerSeconds } = options
let { addresses } = options
// With one agent for each, requests go over all connections in turn; an agent alone would use the same one again. A request
// waits for its connection: on a busy machine an answer comes late, and an agent without a limit then opens another one,
// which may lead to another pod.
const agents = Array.from({ length: connections }, () => new Agent({ keepAlive: true, maxSockets: 1 }))

const counts = new Map<string, Counted>()
const cookies = new Map<string, Cookie>()
const failures = new Map<string, Failure>()
let [sent, answered, isOver] = [0, 0, false]
const started = performance.now()
const open = new Set<Promise<void>>()
const openMost = 100

function count<T extends object>(where: Map<string, T & { count: number }>, what: T) {
  const key = JSON.stringify(what)
  const known = where.get(key) ?? { ...what, count: 0 }
  known.count++
  where.set(key, known)
}

/** A few lines say what thousands would: what failed, how often, from when to when. */
function countFailure(address: string, reason: string, asked: Date) {
  const key = `${address} ${reason}`
  const at = asked.toISOString()
  const known = failures.get(key) ?? { address, reason, count: 0, first: at, last: at }
  known.count++
  if (at > known.last) known.last = at
  if (at < known.first) known.first = at
  failures.set(key, known)
}

/** The example server answers in JSON; any other answer with 200 is a version as it stands. */
function read(status: number, text: string): { version: string; pod: string } | undefined {
  try {
    const { version, pod } = JSON.parse(text)
    if (typeof version === "string") return { version, pod }
  } catch {
    // No JSON.
  }
  return status === 200 ? { version: text.trim(), pod: "" } : undefined
}

async function ask(address: string, agent: Agent | false) {
  const [host, port] = address.split(":")
  const asked = new Date()
  const isAnswered = await new Promise<boolean>(resolve => {
    const failed = (reason: string) => {
      countFailure(address, reason, asked)
      resolve(false)
    }
    const request = get({ host, port, path, headers, agent, timeout: answerSeconds * 1000 }, answer => {
      let text = ""
      answer.setEncoding("utf8").on("data", part => {
        text += part
      })
      answer.once("end", () => {
        const status = answer.statusCode ?? 0
        const from = read(status, text)
        if (from) {
          count(counts, { ...from, status })
          for (const cookie of answer.headers["set-cookie"] ?? []) count(cookies, { cookie, version: from.version })
          resolve(true)
        } else failed(`${status} ${text.slice(0, 100)}`)
      })
      answer.once("error", error => failed(`while it answered: ${error.message}`))
    })
    request.once("timeout", () => request.destroy(new Error(`no answer within ${answerSeconds} s`)))
    request.once("error", error => failed(error.message))
  })
  if (isAnswered) answered++
}

function tick() {
  const seconds = (performance.now() - started) / 1000
  // On a busy machine several are due at once: the rate stays, as long as this program can follow. One that cannot would
  // open ever more connections, and servers close those on which nothing was asked for some time.
  const due = Math.min(Math.floor(seconds * perSecond) + 1, requestsMost)
  while (sent < due && open.size < openMost && addresses.length > 0) {
    const asking = ask(addresses[sent % addresses.length]!, agents[sent % agents.length] ?? false)
    open.add(asking)
    asking.finally(() => open.delete(asking))
    sent++
  }
  if (isOver || sent >= requestsMost || seconds >= secondsMost) end()
}

const print = (line: ClientLine) => process.stdout.write(`${JSON.stringify(line)}\n`)
const timer = setInterval(tick, Math.max(1, Math.min(20, 1000 / perSecond)))
const progress = setInterval(() => print({ answered }), 100)

async function end() {
  clearInterval(timer)
  await Promise.all(open)
  clearInterval(progress)
  const result = {
    sent,
    answers: [...counts.values()],
    cookies: [...cookies.values()],
    failures: [...failures.values()],
  }
  process.stdout.write(`${JSON.stringify({ result } satisfies ClientLine)}\n`, () => process.exit(0))
}

createInterface({ input: process.stdin })
  .on("line", line => {
    addresses = JSON.parse(line)
  })
  .on("close", () => {
    isOver = true
  })
