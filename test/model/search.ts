/** One step of a model: its name, and the state it leads to. */
export type Step<World> = {
  readonly by: string
  readonly name: string
  /** Where the same step may go in several ways: which one. */
  readonly fate?: string | undefined
  readonly next: World
  /** The step in words; asked only of those that a reader gets to see. */
  says(): string
}

export type Model<World> = {
  readonly start: World
  /** Every step that may come next. */
  steps(world: World): Step<World>[]
  /** Two worlds with the same key have the same future. */
  keyOf(world: World): number
}

export type Result = {
  readonly states: number
  /** How often each step and each fate was met: one that never was proves nothing. */
  readonly taken: ReadonlyMap<string, number>
  /** A shortest way to a bad world, in words. */
  readonly trace?: readonly string[]
}

/** Visits every world that can be reached, nearest first, and stops at the first bad one. */
export function search<World>(model: Model<World>, isBad: (world: World) => boolean): Result {
  const start = model.keyOf(model.start)
  const cameFrom = new Map([[start, start]])
  const taken = new Map<string, number>()
  const count = (name: string) => taken.set(name, (taken.get(name) ?? 0) + 1)
  let frontier = [model.start]
  while (frontier.length > 0) {
    const beyond: World[] = []
    for (const world of frontier) {
      const key = model.keyOf(world)
      for (const step of model.steps(world)) {
        count(step.name)
        if (step.fate) count(step.fate)
        if (isBad(step.next))
          return { states: cameFrom.size, taken, trace: [...pathTo(model, cameFrom, key), step.says()] }
        const reached = model.keyOf(step.next)
        if (cameFrom.has(reached)) continue
        cameFrom.set(reached, key)
        beyond.push(step.next)
      }
    }
    frontier = beyond
  }
  return { states: cameFrom.size, taken }
}

/** Only the keys of worlds are kept; how one led to the next is found by taking the steps again. */
function pathTo<World>(model: Model<World>, cameFrom: ReadonlyMap<number, number>, last: number): string[] {
  const keys = [last]
  for (let key = last; key !== cameFrom.get(key); key = cameFrom.get(key)!) keys.unshift(cameFrom.get(key)!)
  let world = model.start
  return keys.slice(1).map(key => {
    const step = model.steps(world).find(({ next }) => model.keyOf(next) === key)!
    world = step.next
    return step.says()
  })
}

export const readable = (trace: readonly string[]): string =>
  trace.map((says, index) => `${String(index + 1).padStart(3)}. ${says}`).join("\n")
