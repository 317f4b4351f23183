/** The only source of randomness. A seeded one makes a whole run repeatable. */
export type Random = {
  /** In [0, 1). */
  next(): number
  uuid(): string
}

export const systemRandom: Random = { next: () => Math.random(), uuid: () => crypto.randomUUID() }

/** Mulberry32: small, fast, and good enough to scatter retries. Never use it for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const hex = (digits: number) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join("")
  return { next, uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}` }
}

/** `ms` scattered by ±`share`, so that a fleet of clients that failed together does not come back together. */
export const jitter = (random: Random, ms: number, share = 0.2) => ms * (1 + share * (2 * random.next() - 1))
