/** Runs `work` over the items, at most `limit` at once, and waits for all. The first failure stops further starts. */
export async function forEachLimited<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  let failure: { error: unknown } | undefined
  const worker = async () => {
    for (let next = rest.next(); !failure && !next.done; next = rest.next()) {
      try {
        await work(next.value)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: limit }, worker))
  if (failure) throw failure.error
}
