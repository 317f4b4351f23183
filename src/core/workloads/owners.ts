/**
 * From objects to those that their owner references lead to, up or down, the nearest first. References are what tenants
 * wrote: they may go round in a circle or on without end. So nothing is visited twice, and no level beyond the last.
 */
export function* ownerWalk<T>(
  starts: Iterable<T>,
  { next, idOf }: { next: (object: T) => Iterable<T>; idOf: (object: T) => string },
): Iterable<T> {
  const seen = new Set<string>()
  let level = starts
  for (let depth = 0; depth < levelsMost; depth++) {
    const beyond: T[] = []
    for (const object of level) {
      const id = idOf(object)
      if (seen.has(id)) continue
      seen.add(id)
      yield object
      for (const other of next(object)) beyond.push(other)
    }
    if (beyond.length === 0) return
    level = beyond
  }
}

/** Pod, ReplicaSet, Deployment, and as many again of other operators. */
export const levelsMost = 8

/**
 * The object that owns all the others above this one. Where the references come to no end, nothing does, and the object
 * stands for itself.
 */
export function topOwner<T>(object: T, ownerOf: (object: T) => T | undefined, idOf: (object: T) => string): T {
  const next = (each: T) => {
    const owner = ownerOf(each)
    return owner === undefined ? [] : [owner]
  }
  let top = object
  for (const each of ownerWalk([object], { next, idOf })) top = each
  return ownerOf(top) === undefined ? top : object
}
