/**
 * Walks from objects along their owner references, up or down, the nearest first. Tenants write the references, so they
 * may form a circle or an endless chain. Nothing is visited twice, and the number of levels is limited.
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

/** Pod, ReplicaSet, Deployment, and as many again for other operators. */
export const levelsMost = 8

/**
 * The object at the top of the chain of owners. Where the references never end there is none, and the object stands for
 * itself.
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
