import { isIP } from "node:net"
import type { Json } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { Findings } from "./findings.ts"

const policyTypes = ["Ingress", "Egress"]

export function validateNetworkPolicy({ spec }: Json): Cause[] {
  const found = new Findings()
  found.selector("spec.podSelector", spec.podSelector)
  const sides = { ingress: "from", egress: "to" }
  for (const [side, peers] of Object.entries(sides))
    for (const [index, rule] of (spec[side] ?? []).entries()) {
      const at = `spec.${side}[${index}]`
      for (const [i, port] of (rule.ports ?? []).entries()) validatePort(`${at}.ports[${i}]`, port, found)
      for (const [i, peer] of (rule[peers] ?? []).entries()) validatePeer(`${at}.${peers}[${i}]`, peer, found)
    }
  if (spec.policyTypes.length > policyTypes.length)
    found.invalid("spec.policyTypes", spec.policyTypes, "may not specify more than two policyTypes")
  else
    for (const [index, type] of spec.policyTypes.entries())
      if (!policyTypes.includes(type)) found.unsupported(`spec.policyTypes[${index}]`, type, policyTypes)
  return found.causes
}

function validatePort(at: string, { protocol, port, endPort }: Json, found: Findings) {
  const protocols = ["TCP", "UDP", "SCTP"]
  if (!protocols.includes(protocol)) found.unsupported(`${at}.protocol`, protocol, protocols)
  const hasEnd = endPort !== undefined
  if (port === undefined) {
    if (hasEnd) found.invalid(`${at}.endPort`, endPort, "may not be specified when `port` is not specified")
    return
  }
  if (hasEnd && typeof port === "string")
    found.invalid(`${at}.endPort`, endPort, "may not be specified when `port` is non-numeric")
  found.portOrName(`${at}.port`, port)
  if (!hasEnd || typeof port === "string") return
  if (endPort < port) found.invalid(`${at}.endPort`, port, "must be greater than or equal to `port`")
  found.port(`${at}.endPort`, endPort)
}

function validatePeer(at: string, { podSelector, namespaceSelector, ipBlock }: Json, found: Findings) {
  if (podSelector) found.selector(`${at}.podSelector`, podSelector)
  if (namespaceSelector) found.selector(`${at}.namespaceSelector`, namespaceSelector)
  if (ipBlock) validateBlock(`${at}.ipBlock`, ipBlock, found)
  if (!podSelector && !namespaceSelector && !ipBlock) found.required(at, "must specify a peer")
  else if (ipBlock && (podSelector || namespaceSelector))
    found.forbidden(at, "may not specify both ipBlock and another peer")
}

function validateBlock(at: string, { cidr, except }: Json, found: Findings) {
  if (!cidr) return found.required(`${at}.cidr`)
  const whole = rangeOf(`${at}.cidr`, cidr, found)
  if (!whole) return
  for (const [index, text] of (except ?? []).entries()) {
    const field = `${at}.except[${index}]`
    const part = rangeOf(field, text, found)
    if (part && !isInside(part, whole)) found.invalid(field, text, "must be a strict subset of `cidr`")
  }
}

/** Addresses that share their first bits. */
type Range = { bits: bigint; width: 32 | 128; length: number }

/** The range that a text means, even if it is not in canonical form; undefined if it cannot be parsed. */
function rangeOf(field: string, text: string, found: Findings): Range | undefined {
  const [, written = "", digits = ""] = /^([^/%]*)\/(\d+)$/.exec(text) ?? []
  const address = written.includes(":") ? written : written.replaceAll(/\b0+(?=\d)/g, "")
  const width = isIP(address) === 4 ? 32 : 128
  const length = Number(digits)
  if (isIP(address) === 0 || length > width) {
    found.invalid(field, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    return undefined
  }
  const bits = width === 32 ? bitsOf4(address) : bitsOf6(address)
  const rest = BigInt(width - length)
  if (address !== written || digits !== String(length))
    found.invalid(field, text, "must not have leading 0s in IP or prefix length")
  else if (width === 128 && bits >> 32n === 0xffffn)
    found.invalid(field, text, "must not have an IPv4-mapped IPv6 address")
  else if ((bits >> rest) << rest !== bits)
    found.invalid(field, text, "must not have bits set beyond the prefix length")
  return { bits, width, length }
}

function isInside(part: Range, whole: Range): boolean {
  const rest = BigInt(whole.width - whole.length)
  return part.width === whole.width && part.length > whole.length && part.bits >> rest === whole.bits >> rest
}

const bitsOf4 = (address: string) => address.split(".").reduce((bits, part) => (bits << 8n) | BigInt(part), 0n)

function bitsOf6(address: string): bigint {
  // A URL writes every part in hexadecimal, even an IPv4 address at the end.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::")
  const [left, right] = [head, tail].map(half => half.split(":").filter(part => part !== ""))
  const parts = [...left!, ...Array(8 - left!.length - right!.length).fill("0"), ...right!]
  return parts.reduce((bits, part) => (bits << 16n) | BigInt(`0x${part}`), 0n)
}
