import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto"

/** X.509 certificates for servers of this machine and their clients: as much of it as that takes, and no more. */

export type Certificate = { readonly cert: string; readonly key: string }

export type Authority = {
  /** For clients to trust, in PEM. */
  readonly cert: string
  /** A server's certificate for these names and addresses (IPv4). */
  forServer(subject: Subject, names: readonly string[]): Certificate
  forClient(subject: Subject): Certificate
}

export type Subject = { name: string; organizations?: readonly string[] }

export type AuthorityOptions = { name: string; now: number; days: number }

/** A new authority with a key that exists only here. */
export function createAuthority({ name, now, days }: AuthorityOptions): Authority {
  // A name of its own: a certificate of an earlier authority is then a stranger's at first sight.
  const root = { name: `${name} ${randomBytes(4).toString("hex")}` }
  const keys = newKeys()
  // Clocks differ a little.
  const validity = sequence(time(now - 3_600_000), time(now + days * 86_400_000))
  const make = (subject: Subject, publicKey: KeyObject, extensions: Buffer[]) =>
    certificate({ issuer: root, subject, publicKey, validity, extensions, signer: keys.privateKey })
  const issue = (subject: Subject, extensions: Buffer[]): Certificate => {
    const own = newKeys()
    const key = own.privateKey.export({ type: "pkcs8", format: "pem" }).toString()
    return { cert: make(subject, own.publicKey, extensions), key }
  }
  return {
    cert: make(root, keys.publicKey, [
      extension("2.5.29.19", sequence(tagged(0x01, Buffer.from([0xff]))), true),
      extension("2.5.29.15", tagged(0x03, Buffer.from([1, 0x06])), true), // signs certificates and revocations
    ]),
    forServer: (subject, names) =>
      issue(subject, [usage("1.3.6.1.5.5.7.3.1"), extension("2.5.29.17", sequence(...names.map(alternative)))]),
    forClient: subject => issue(subject, [usage("1.3.6.1.5.5.7.3.2")]),
  }
}

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" })

type Parts = {
  issuer: Subject
  subject: Subject
  publicKey: KeyObject
  validity: Buffer
  extensions: readonly Buffer[]
  signer: KeyObject
}

function certificate({ issuer, subject, publicKey, validity, extensions, signer }: Parts): string {
  const algorithm = sequence(identifier("1.2.840.10045.4.3.2")) // ECDSA with SHA-256
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x7f) | 0x40 // positive, and as long as it looks
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, serial),
    algorithm,
    distinguished(issuer),
    validity,
    distinguished(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions)),
  )
  const signature = tagged(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", body, signer)]))
  const lines = sequence(body, algorithm, signature).toString("base64").replace(/.{64}/g, "$&\n").trimEnd()
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

function distinguished({ name, organizations = [] }: Subject): Buffer {
  const attribute = (type: string, value: string) =>
    tagged(0x31, sequence(identifier(type), tagged(0x0c, Buffer.from(value))))
  return sequence(...organizations.map(each => attribute("2.5.4.10", each)), attribute("2.5.4.3", name))
}

const extension = (type: string, value: Buffer, isCritical = false) =>
  sequence(identifier(type), ...(isCritical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value))

const usage = (type: string) => extension("2.5.29.37", sequence(identifier(type)))

const alternative = (name: string) =>
  /^\d+(\.\d+){3}$/.test(name)
    ? tagged(0x87, Buffer.from(name.split(".").map(Number)))
    : tagged(0x82, Buffer.from(name))

/** Seconds in universal time, with all digits of the year. */
const time = (instant: number) =>
  tagged(0x18, Buffer.from(`${new Date(instant).toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`))

// ---- DER

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size: number[] = []
  for (let rest = length; rest > 0; rest >>= 8) size.unshift(rest & 0xff)
  const head = length < 0x80 ? [tag, length] : [tag, 0x80 | size.length, ...size]
  return Buffer.concat([Buffer.from(head), content])
}

const sequence = (...parts: readonly Buffer[]) => tagged(0x30, Buffer.concat(parts))

/** An object identifier from its dotted form. */
function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number)
  const bytes = rest.flatMap(number => {
    const groups = [number & 0x7f]
    for (let more = number >>> 7; more > 0; more >>>= 7) groups.unshift((more & 0x7f) | 0x80)
    return groups
  })
  return tagged(0x06, Buffer.from([first * 40 + second, ...bytes]))
}
