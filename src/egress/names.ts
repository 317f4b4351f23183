import { Resolver } from "node:dns/promises"
import { readFile } from "node:fs/promises"
import { isIP } from "node:net"
import type { Clock } from "#runtime/clock.ts"

/** All addresses of a name, or rejects. */
export type Lookup = (hostname: string, how: LookupOptions) => Promise<readonly string[]>

export type LookupOptions = {
  /** An administrator named this host: it may be known only to this machine or this cluster. */
  isAllowed: boolean
  signal: AbortSignal
}

export type NamesOptions = {
  clock: Clock
  /** `ADDRESS:PORT` of name servers instead of those in `configFile`. */
  servers?: readonly string[]
  hostsFile?: string
  configFile?: string
  timeoutMs?: number
  tries?: number
}

/**
 * Asks name servers without getaddrinfo, which occupies one of two threads of this process until it has an answer and
 * cannot be cancelled: eight names of one tenant would block all other tenants.
 *
 * A name is used as written. With the search list, `quay.io` would first be looked up in the cluster, where a namespace
 * `io` with a service `quay` would answer. The search list and the hosts file are for hosts that an administrator allowed.
 */
export function nameLookup(options: NamesOptions): Lookup {
  const {
    clock,
    servers,
    hostsFile = "/etc/hosts",
    configFile = "/etc/resolv.conf",
    timeoutMs = 1500,
    tries = 2,
  } = options
  return async (hostname, { isAllowed, signal }) => {
    if (/(^|\.)localhost\.?$/.test(hostname)) return ["127.0.0.1", "::1"]
    // One for each name: this is the only way to cancel one without the others.
    const resolver = new Resolver({ timeout: timeoutMs, tries })
    if (servers) resolver.setServers(servers)
    const cancel = () => resolver.cancel()
    signal.addEventListener("abort", cancel, { once: true })
    try {
      if (!isAllowed) return await addressesOf(resolver, hostname, clock)
      const listed = addressesIn(await textOf(hostsFile), hostname)
      if (listed.length > 0) return listed
      let trouble: unknown
      for (const name of spellingsOf(hostname, await textOf(configFile))) {
        signal.throwIfAborted()
        try {
          return await addressesOf(resolver, name, clock)
        } catch (error) {
          trouble ??= error
        }
      }
      throw trouble
    } finally {
      signal.removeEventListener("abort", cancel)
    }
  }
}

/** Some name servers do not answer about IPv6 instead of answering that there is none: one known family is enough. */
const otherFamilyMs = 300

async function addressesOf(resolver: Resolver, name: string, clock: Clock): Promise<string[]> {
  const found: string[][] = [[], []]
  const answers = [resolver.resolve4(name), resolver.resolve6(name)].map(async (answer, family) => {
    found[family] = await answer
  })
  const both = Promise.allSettled(answers)
  try {
    await Promise.any(answers)
  } catch (error) {
    throw (error as AggregateError).errors[0]
  }
  const patience = Promise.withResolvers<void>()
  const cancel = clock.after(otherFamilyMs, patience.resolve)
  await Promise.race([both, patience.promise])
  cancel()
  return found.flat()
}

/** The addresses of a name in a hosts file. */
export function addressesIn(text: string, hostname: string): string[] {
  const wanted = plain(hostname)
  return linesOf(text).flatMap(([address = "", ...names]) =>
    isIP(address) && names.some(name => plain(name) === wanted) ? [address] : [],
  )
}

/** The names to look up for one name, by `search` and `ndots` of a resolv.conf. */
export function spellingsOf(hostname: string, config: string): string[] {
  if (hostname.endsWith(".")) return [hostname]
  const lines = linesOf(config)
  const search = lines.findLast(([word]) => word === "search" || word === "domain")?.slice(1) ?? []
  const options = lines.flatMap(([word, ...rest]) => (word === "options" ? rest : []))
  const ndots = Number(/^ndots:(\d+)$/.exec(options.findLast(option => option.startsWith("ndots:")) ?? "")?.[1] ?? 1)
  const longer = search.slice(0, searchMost).map(domain => `${hostname}.${domain.replace(/\.$/, "")}`)
  const isComplete = hostname.split(".").length - 1 >= ndots
  return isComplete ? [hostname, ...longer] : [...longer, hostname]
}

const searchMost = 6

const linesOf = (text: string) =>
  text
    .split("\n")
    .map(line =>
      line
        .replace(/[#;].*/, "")
        .trim()
        .split(/\s+/),
    )
    .filter(([word]) => word)

const plain = (name: string) => name.toLowerCase().replace(/\.$/, "")

const textOf = (file: string) => readFile(file, "utf8").catch(() => "")
