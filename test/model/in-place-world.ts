import type { Model, Step } from "./search.ts"

/**
 * What the models of an update in place share: objects that a native controller sees late, our own writes, which may
 * arrive late, and moves of users.
 *
 * `seen` of an object is what the cache of the native controller shows, `coming` are the versions that its watch will
 * bring, one after the other. Each kind has a watch of its own, so two caches are behind by different times.
 */
export type Watched<Version> = { seen: Version; coming: Version[] }

export const truth = <Version>({ seen, coming }: Watched<Version>): Version => coming.at(-1) ?? seen
export const isCaughtUp = ({ coming }: Watched<unknown>): boolean => coming.length === 0

export function write<Version>(object: Watched<Version>, change: Partial<Version>): void {
  object.coming.push({ ...truth(object), ...change })
}

export function deliver<Version>(object: Watched<Version>): void {
  object.seen = object.coming.shift() ?? object.seen
}

/** Worlds are plain data; a copy through JSON takes three times as long. */
// biome-ignore lint/suspicious/noExplicitAny: the copy has the type of what was copied.
const copyOf = (value: any): any => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(copyOf)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copyOf(each)]))
}

/** Numbers for worlds: the first is 0, and a world that was met before keeps its number. */
export function numbering<World extends { broken: unknown }>(): (world: World) => number {
  const known = new Map<string, number>()
  return world => {
    const text = JSON.stringify({ ...world, broken: undefined })
    const number = known.get(text) ?? known.size
    known.set(text, number)
    return number
  }
}

export type Take<World> = (by: string, name: string, says: string, change: (next: World) => void, fate?: string) => void

/** Collects the steps from one world. */
export function steps<World extends { broken: string[] }>(
  world: World,
  tell: (take: Take<World>) => void,
): Step<World>[] {
  const found: Step<World>[] = []
  tell((by, name, says, change, fate) => {
    const next: World = copyOf(world)
    next.broken = []
    change(next)
    found.push({ by, name, fate, next, says: () => `${by} ${says}${fate ? `, ${fate}` : ""}` })
  })
  return found
}

/**
 * Finds worlds that are never settled though the user has no further wish, no write is lost and the native controller
 * keeps up. A world on the way to a settled one is not asked again.
 */
export function neverSettles<World extends { broken: string[] }>(
  model: Model<World>,
  isSettled: (world: World) => boolean,
  {
    ours = ["hold", "patch", "flip", "label", "release", "yield"],
    reads = ["read"],
  }: { ours?: readonly string[]; reads?: readonly string[] } = {},
): (world: World) => boolean {
  const fine = new Set<number>()
  return start => {
    let world = start
    const path: number[] = []
    const take = (...names: string[]): boolean => {
      const isNamed = ({ name, fate }: Step<World>) => names.includes(name) && !fate
      const step = model.steps(world).find(isNamed)
      if (step) world = step.next
      return step !== undefined
    }
    for (let round = 0; round < 40; round++) {
      const key = model.keyOf(world)
      if (fine.has(key) || isSettled(world)) {
        for (const each of [...path, key]) fine.add(each)
        return false
      }
      path.push(key)
      while (take("see"));
      take("reconcile")
      for (const read of reads) {
        take(read)
        take("reconcile")
      }
      take("count")
      while (take("restart"));
      take(...ours)
    }
    return true
  }
}
