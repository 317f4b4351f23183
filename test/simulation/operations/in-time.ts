import type { World } from "#test/support/scenario.ts"

/** Requests take no virtual time, but their answers may wait for a promise or two. */
export async function requestInTime(world: World, promise: Promise<unknown>): Promise<void> {
  let isDone = false
  const done = promise.finally(() => {
    isDone = true
  })
  await world.until("an answer", () => isDone)
  await done
}
