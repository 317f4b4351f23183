import { BlockList, isIPv4, isIPv6 } from "node:net"

/**
 * Addresses that no public server has. A tenant can name any host and give it any address, and this program runs
 * inside the cluster: an address that is not clearly public is refused.
 */
const special: [what: string, ...ranges: string[]][] = [
  ["an unspecified", "0.0.0.0/8"],
  ["a loopback", "127.0.0.0/8"],
  // Metadata servers of clouds: mostly link-local, but Azure uses a public address.
  ["a link-local", "169.254.0.0/16", "168.63.129.16/32"],
  ["a private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"],
  ["a multicast", "224.0.0.0/4"],
  [
    "a reserved",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
  ],
]

const kinds = special.map(([what, ...ranges]) => ({ what, list: listOf("ipv4", ranges) }))
/** All public addresses; loopback, mapped, link-local, private and multicast addresses are outside. */
const global6 = listOf("ipv6", ["2000::/3"])
/** Exceptions inside it: addresses that wrap an IPv4 address (Teredo, 6to4), are for documentation, or are not routed. */
const except6 = listOf("ipv6", ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"])
/** How a network without IPv4 reaches IPv4: the address that counts is in the last four bytes. */
const translated = listOf("ipv6", ["64:ff9b::/96"])

/** What kind of address it is (`a private`), if we must not connect to it; undefined for a public one. */
export function forbiddenAddress(address: string): string | undefined {
  if (isIPv4(address)) return kinds.find(({ list }) => list.check(address, "ipv4"))?.what
  // A zone always makes an address local.
  if (!isIPv6(address) || address.includes("%")) return "no"
  if (translated.check(address, "ipv6")) return forbiddenAddress(lastFourBytes(address))
  return global6.check(address, "ipv6") && !except6.check(address, "ipv6") ? undefined : "a local or reserved"
}

/** Metadata servers that clouds have put inside private ranges. */
const metadata4 = listOf("ipv4", ["100.100.100.200/32"])
const metadata6 = listOf("ipv6", ["fd00:ec2::254/128", "fd20:ce::254/128"])
const uniqueLocal = listOf("ipv6", ["fc00::/7"])

/**
 * Whether a pod can have this address: a public or a private one. A node reports the addresses of its pods, and one that
 * was taken over could report any.
 */
export function canBeAPods(address: string): boolean {
  const forbidden = forbiddenAddress(address)
  if (forbidden === undefined) return true
  if (isIPv4(address)) return forbidden === "a private" && !metadata4.check(address, "ipv4")
  return isIPv6(address) && uniqueLocal.check(address, "ipv6") && !metadata6.check(address, "ipv6")
}

function lastFourBytes(address: string): string {
  // The URL parser normalises every spelling of an address: hexadecimal groups, none dotted.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(":")
  const value = groups.slice(-2).map(group => Number.parseInt(group || "0", 16))
  return value.flatMap(group => [group >> 8, group & 0xff]).join(".")
}

function listOf(family: "ipv4" | "ipv6", ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network, bits] = range.split("/") as [string, string]
    list.addSubnet(network, Number(bits), family)
  }
  return list
}
