import { lookup } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import type { Answer } from "#core/cluster-fleet/transport.ts"
import { canBeAPods } from "#egress/address.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { httpsTransport } from "#runtime/client/https-transport.ts"
import { type Client, createClient } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { readSpokeKubeconfig } from "./kubeconfig.ts"
import { given, trouble } from "./trouble.ts"

/** What leads to a cluster, as the hub's objects say it. */
export type ClusterAccess = {
  /** The keys of the Secret, in base64; undefined if there is none. */
  secret: Readonly<Record<string, string>> | undefined
  /** The fingerprint of server and authority that the cluster was registered with. Undefined: not pinned. */
  registered?: string | undefined
}

export type ConnectionsOptions = {
  clock: Clock
  random: Random
  /** Undefined: no such cluster is reached directly. Reads the Secret by its name. */
  access(cluster: string): Promise<ClusterAccess | undefined>
  /** `HOST:PORT` of servers on loopback or link-local addresses that an administrator allowed. */
  allowed?: readonly string[]
  /** Called before each write leaves; throws if this process does not lead. */
  guard?: () => void
}

export type Connection = { client: Client; warning?: string }

export type Connections = {
  to(cluster: string): Promise<Answer<Connection>>
  /** The credential was refused: the Secret is read again before the next request. */
  forget(cluster: string): void
  close(): void
}

/** The keys under which the Secret of a cluster may hold its kubeconfig; the second is Cluster API's. */
const kubeconfigKeys = ["kubeconfig", "value"]
/** A Secret that was changed is read again after this long, and at once after a 401. */
const freshMs = 5 * 60_000
const expiresSoonMs = 7 * 24 * 3_600_000

/**
 * Clients of the clusters that are reached directly. A client belongs to one server, one authority and one credential: when
 * the Secret has another of them, the client is ended and another one made, so a credential is never sent elsewhere (S20).
 */
export function createConnections(options: ConnectionsOptions): Connections {
  const { clock, random, allowed = [], guard } = options
  const held = new Map<string, { text: string; pin: string | undefined; readAt: number; connection: Connection }>()

  function open(cluster: string, text: string, pin: string | undefined): Answer<Connection> {
    const read = readSpokeKubeconfig(text)
    if (!read.ok) return trouble("BadCredential", read.error)
    const { config, registered, expiresAt } = read.value
    if (pin !== undefined && pin !== registered)
      return trouble(
        "BadCredential",
        `the kubeconfig of ${cluster} leads to another server or authority than it was registered with: run aim cluster add ${cluster} again`,
      )
    const url = new URL(config.server)
    const host = url.hostname.replace(/^\[|\]$/g, "")
    const isAllowed = allowed.includes(`${url.hostname}:${url.port || 443}`)
    if (!isAllowed && isIP(host) && !canBeAPods(host)) return trouble("BadCredential", addressRefused(url))
    const transport = httpsTransport({ ...config, ...(!isAllowed && { lookup: checkedLookup(url) }) })
    const client = createClient({ transport, clock, random, userAgent: "aim-hub", ...(guard && { guard }) })
    const warning = expiryWarning(expiresAt, clock.now())
    return given({ client, ...(warning !== undefined && { warning }) })
  }

  function forget(cluster: string) {
    held.get(cluster)?.connection.client.close()
    held.delete(cluster)
  }

  return {
    async to(cluster) {
      const known = held.get(cluster)
      if (known && clock.monotonic() - known.readAt < freshMs) return given(known.connection)
      const access = await options.access(cluster)
      if (!access) return trouble("UnknownCluster", `no SpokeCluster ${cluster} is reached directly`)
      const key = kubeconfigKeys.find(key => access.secret?.[key] !== undefined)
      if (!access.secret)
        return trouble("UnknownCluster", `the Secret with the kubeconfig of ${cluster} does not exist`)
      if (key === undefined) return trouble("BadCredential", `the Secret of ${cluster} has no key ${kubeconfigKeys[0]}`)
      const text = Buffer.from(access.secret[key] ?? "", "base64").toString("utf8")
      const readAt = clock.monotonic()
      if (known?.text === text && known.pin === access.registered) {
        known.readAt = readAt
        return given(known.connection)
      }
      forget(cluster)
      const opened = open(cluster, text, access.registered)
      if (opened.ok) held.set(cluster, { text, pin: access.registered, readAt, connection: opened.value })
      return opened
    },
    forget,
    close() {
      for (const cluster of [...held.keys()]) forget(cluster)
    },
  }
}

const addressRefused = (url: URL) =>
  `${url.hostname} is a loopback, link-local or reserved address: an administrator may allow it with --allow-cluster-address ${url.hostname}:${url.port || 443}`

/** Every address of the name is checked, and the one that is connected to is one of them. */
function checkedLookup(url: URL): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, "")
      if (addresses.length === 0 || !addresses.every(({ address }) => canBeAPods(address)))
        return callback(new Error(addressRefused(url)), "")
      if (options.all) return callback(null, addresses)
      const [first] = addresses
      callback(null, first?.address ?? "", first?.family)
    })
  }
}

function expiryWarning(expiresAt: Instant | undefined, now: Instant): string | undefined {
  if (expiresAt === undefined || expiresAt - now > expiresSoonMs) return undefined
  return `the credential ${expiresAt > now ? "expires" : "expired"} at ${formatInstant(expiresAt)}`
}
