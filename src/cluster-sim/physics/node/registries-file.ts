import { parse } from "yaml"
import { closest } from "#lib/closest.ts"
import { parseDuration } from "#lib/duration.ts"
import type { Instant } from "#lib/instant.ts"
import type { Json } from "../../object.ts"
import { parseImage } from "./image-reference.ts"
import type { Challenge, Fault, ImageContent, RegistryOptions } from "./registries.ts"

/**
 * Parses a registries file (docs/registries-file.md explains every field):
 *
 *   registries:
 *     ghcr.io:
 *       latency: 80ms
 *       bandwidth: 20MB/s
 *       images:              # with this, the registry has nothing else
 *         shop/web:
 *           "1.0": {}
 *           "1.1": { size: 80MB, exits: { after: 20s, code: 1 } }
 *     docker.io:
 *       fault: { status: 429, retryAfter: 30s, for: 10m }
 *
 * All errors are reported at once, each with its place in the file.
 */
export function parseRegistriesFile(text: string, { now }: { now: Instant }): RegistryOptions[] {
  let content: Json
  try {
    // Every scalar stays text: a tag 1.10 must not become the number 1.1.
    content = parse(text, { schema: "failsafe" })
  } catch (error) {
    throw new RegistriesFileError([(error as Error).message.split("\n")[0]?.replace(/:$/, "") ?? "it is not YAML"])
  }
  const problems: string[] = []
  const reader = new Reader(problems, now)
  const registries = reader.file(content)
  if (problems.length > 0) throw new RegistriesFileError(problems)
  return registries
}

class RegistriesFileError extends Error {
  override name = "RegistriesFileError"
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join("\n"))
    this.problems = problems
  }
}

const connectionFaults = ["refused", "unreachable", "no-such-host", "timeout", "reset", "tls", "plain-http"] as const
const challenges: readonly Challenge[] = ["none", "basic", "token", "scope"]

type Read<T> = (value: Json, path: string) => T | undefined

class Reader {
  readonly #problems: string[]
  readonly #now: Instant

  constructor(problems: string[], now: Instant) {
    this.#problems = problems
    this.#now = now
  }

  file(content: Json): RegistryOptions[] {
    const top = this.#fields(content, "", { registries: value => value }, "the file")
    return Object.entries(this.#map(top.registries ?? {}, "registries")).flatMap(([host, value]) => {
      const path = `registries.${host}`
      if (host.includes("/")) this.#wrong(path, `names a host (docker.io, 127.0.0.1:5000), not ${host}`)
      const own = this.#fields(value ?? {}, path, {
        bandwidth: (each, at) => this.#bandwidth(each, at),
        latency: (each, at) => this.#duration(each, at),
        fault: (each, at) => this.#fault(each, at),
        accounts: (each, at) => this.#accounts(each, at),
        images: (each, at) => this.#images(host, each, at),
      })
      const { bandwidth, latency, fault, accounts, images } = own
      return [
        {
          host: host === "index.docker.io" ? "docker.io" : host,
          ...(bandwidth !== undefined && { bytesPerSecond: bandwidth as number }),
          ...(latency !== undefined && { latencyMs: latency as number }),
          ...(fault !== undefined && { fault: fault as Fault }),
          ...(accounts !== undefined && { accounts: accounts as Record<string, string> }),
          ...(images !== undefined && { images: images as NonNullable<RegistryOptions["images"]> }),
        },
      ]
    })
  }

  #accounts(value: Json, path: string): Record<string, string> {
    const accounts = this.#map(value, path)
    for (const [user, password] of Object.entries(accounts))
      if (typeof password !== "string") this.#wrong(`${path}.${user}`, `is a password, not ${shown(password)}`)
    return accounts
  }

  #images(host: string, value: Json, path: string) {
    const images: Record<string, Record<string, ImageContent & { fault?: Fault }>> = {}
    for (const [repository, tags] of Object.entries(this.#map(value, path))) {
      const at = `${path}.${repository}`
      const parsed = parseImage(`${host}/${repository}:x`)
      if ("invalid" in parsed) {
        this.#wrong(at, `is no name of a repository: ${parsed.invalid}`)
        continue
      }
      const contents: Record<string, ImageContent & { fault?: Fault }> = {}
      for (const [tag, image] of Object.entries(this.#map(tags, at))) {
        if ("invalid" in parseImage(`${host}/${repository}:${tag}`)) this.#wrong(`${at}.${tag}`, "is no name of a tag")
        contents[tag] = this.#image(image, `${at}.${tag}`)
      }
      images[parsed.repository] = contents
    }
    return images
  }

  #image(value: Json, path: string): ImageContent & { fault?: Fault } {
    const own = this.#fields(value === "" || value == null ? {} : value, path, {
      digest: (each, at) => this.#digest(each, at),
      size: (each, at) => this.#size(each, at),
      platforms: (each, at) => this.#platforms(each, at),
      fault: (each, at) => this.#fault(each, at),
      readyAfter: (each, at) => this.#duration(each, at),
      neverReady: (each, at) => this.#boolean(each, at),
      exits: (each, at) => this.#exits(each, at),
      stopsAfter: (each, at) => this.#duration(each, at),
      ignoresTerm: (each, at) => this.#boolean(each, at),
      errorPercent: (each, at) => this.#number(each, at, 0, 100),
      latency: (each, at) => this.#duration(each, at),
    })
    const { digest, size, platforms, fault, readyAfter, neverReady, exits, stopsAfter, ignoresTerm } = own as Json
    const { errorPercent, latency } = own as Json
    const content: Json = {
      digest,
      sizeBytes: size,
      platforms,
      fault,
      readyAfterMs: readyAfter,
      neverReady,
      exits,
      stopsAfterMs: stopsAfter,
      ignoresTerm,
      errorPercent,
      latencyMs: latency,
    }
    return Object.fromEntries(Object.entries(content).filter(([, each]) => each !== undefined))
  }

  #exits(value: Json, path: string) {
    const { after, code, reason } = this.#fields(value, path, {
      after: (each, at) => this.#duration(each, at),
      code: (each, at) => this.#number(each, at, 0, 255),
      reason: (each, at) => this.#one(each, at, ["OOMKilled"]),
    }) as Json
    if (after === undefined) this.#wrong(`${path}.after`, "is missing: how long after its start (20s)")
    const exitCode = code ?? (reason === "OOMKilled" ? 137 : 1)
    return { afterMs: after ?? 0, exitCode, ...(reason && { reason }) }
  }

  /** `429`, `refused`, or with more fields `{ status: 429, for: 10m }`. */
  #fault(value: Json, path: string): Fault | undefined {
    if (typeof value === "string") {
      if (/^\d+$/.test(value)) return this.#status(value, path)
      const kind = this.#one(value, path, connectionFaults)
      return kind && { kind }
    }
    const before = this.#problems.length
    const { status, kind, retryAfter, challenge, times, ...rest } = this.#fields(value, path, {
      status: (each, at) => this.#status(each, at),
      kind: (each, at) => this.#one(each, at, connectionFaults),
      retryAfter: (each, at) => this.#duration(each, at),
      challenge: (each, at) => this.#one(each, at, challenges),
      for: (each, at) => this.#duration(each, at),
      times: (each, at) => this.#number(each, at, 1, 1e9),
    }) as Json
    if ((status === undefined) === (kind === undefined) && this.#problems.length === before)
      this.#wrong(path, `has either a status (429) or a kind (${connectionFaults.join(", ")})`)
    const ends = {
      ...(rest.for !== undefined && { until: this.#now + rest.for }),
      ...(times !== undefined && { times }),
    }
    if (kind) return { kind, ...ends }
    if (!status) return undefined
    const more = {
      ...(retryAfter !== undefined && { retryAfterSeconds: retryAfter / 1000 }),
      ...(challenge && { challenge }),
    }
    return { ...status, ...more, ...ends }
  }

  #status(value: Json, path: string): Fault | undefined {
    const status = this.#number(value, path, 400, 599)
    return status === undefined ? undefined : { kind: "status", status }
  }

  #digest(value: Json, path: string): string | undefined {
    if (/^sha256:[0-9a-f]{64}$/.test(value)) return value
    return this.#wrong(path, "is sha256: and 64 hexadecimal digits")
  }

  #platforms(value: Json, path: string): string[] | undefined {
    const isList = Array.isArray(value) && value.every(each => /^[a-z0-9]+\/[a-z0-9]+(\/\w+)?$/.test(each))
    return isList ? value : this.#wrong(path, "is a list such as [linux/amd64, linux/arm64]")
  }

  #boolean(value: Json, path: string): boolean | undefined {
    if (value === "true" || value === "false") return value === "true"
    return this.#wrong(path, `is true or false, not ${shown(value)}`)
  }

  #number(value: Json, path: string, least: number, most: number): number | undefined {
    const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : Number.NaN
    if (number >= least && number <= most) return number
    return this.#wrong(path, `is a number from ${least} to ${most}, not ${shown(value)}`)
  }

  #duration(value: Json, path: string): number | undefined {
    const ms = typeof value === "string" ? parseDuration(value) : undefined
    return ms ?? this.#wrong(path, `is a duration such as 250ms, 20s or 1m30s, not ${shown(value)}`)
  }

  #size(value: Json, path: string): number | undefined {
    const bytes = parseSize(value)
    return bytes ?? this.#wrong(path, `is a size such as 80MB or 512MiB, not ${shown(value)}`)
  }

  #bandwidth(value: Json, path: string): number | undefined {
    const matched = typeof value === "string" ? /^(.*)\/s$/.exec(value) : undefined
    const bytes = matched ? parseSize(matched[1]) : undefined
    return bytes || this.#wrong(path, `is a speed such as 20MB/s, not ${shown(value)}`)
  }

  #one<T extends string>(value: Json, path: string, words: readonly T[]): T | undefined {
    if (words.includes(value)) return value
    const near = typeof value === "string" ? closest(value, words) : undefined
    return this.#wrong(path, `is one of ${words.join(", ")}, not ${shown(value)}${near ? `; ${near}?` : ""}`)
  }

  #map(value: Json, path: string): Record<string, Json> {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value
    this.#wrong(path, `is a map, not ${shown(value)}`)
    return {}
  }

  #fields(value: Json, path: string, known: Record<string, Read<unknown>>, what = path): Record<string, unknown> {
    const read: Record<string, unknown> = {}
    for (const [name, each] of Object.entries(this.#map(value, what))) {
      const at = path ? `${path}.${name}` : name
      const field = known[name]
      if (field) read[name] = field(each, at)
      else {
        const near = closest(name, Object.keys(known))
        this.#wrong(at, `is no field${near ? `; ${near}?` : ` here; there are ${Object.keys(known).join(", ")}`}`)
      }
    }
    return read
  }

  #wrong(path: string, message: string): undefined {
    this.#problems.push(`${path} ${message}`)
    return undefined
  }
}

const units: Record<string, number> = {
  "": 1,
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
}

function parseSize(text: Json): number | undefined {
  const matched = typeof text === "string" ? /^(\d+(?:\.\d+)?)\s*([kMGKi]*B?)$/.exec(text) : undefined
  const unit = matched && units[matched[2] ?? ""]
  return unit ? Math.round(Number(matched[1]) * unit) : undefined
}

const shown = (value: Json) => (typeof value === "string" ? `"${value}"` : Array.isArray(value) ? "a list" : "a map")
