import { countOf } from "#core/tiers.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Clock } from "#runtime/clock.ts"
import { connectionOf, type Run, UsageError, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { parseReferences, serviceImages } from "../kinds.ts"
import { addSample, outlook, type Sample } from "../rate.ts"
import { type Outlooks, statusBlock, statusLines } from "../render/status.ts"
import { machineReadable, rolloutTable } from "../render/table.ts"
import { isGoing, type Rollout, rolloutOf, type Seen, type TierProgress } from "../rollout.ts"
import { fetchAll, noneYet } from "./get.ts"

type Format = "wide" | "name" | "json" | "yaml"

export const run: Run = async (input, world) => {
  const { resource, names } = parseReferences(input.arguments)
  const format = input.options.output as Format | undefined
  if (input.options.watch && format)
    throw new UsageError(`--watch draws for people and -o ${format} is for programs: leave one of them out`)
  const client = await world.connect(connectionOf(input))
  try {
    // Also before watching: a name that is not there is told at once, with the one that was meant.
    const objects = await fetchAll(client, resource, names)
    if (input.options.watch) {
      await watch(client, names, world)
      return { text: "", exitCode: 0 }
    }
    if (format === "wide")
      return { text: rolloutTable(objects, { view: world.view, now: world.clock.now(), wide: true }), exitCode: 0 }
    if (format) return { text: machineReadable(objects, { format, resource, single: names.length === 1 }), exitCode: 0 }
    if (objects.length === 0) world.say(noneYet)
    return { text: picture(objects.map(rolloutOf), world), exitCode: 0 }
  } finally {
    client.close()
  }
}

const picture = (
  rollouts: readonly Rollout[],
  { view, clock }: Pick<World, "view" | "clock">,
  outlooks?: (rollout: Rollout) => Outlooks,
) =>
  view.isTerminal
    ? rollouts.map(rollout => statusBlock(rollout, view, clock.now(), outlooks?.(rollout))).join("\n")
    : rollouts.map(rollout => statusLines(rollout)).join("")

/** Until Ctrl-C, which is how one leaves it and therefore no failure. */
async function watch(client: Client, names: readonly string[], world: World): Promise<void> {
  const { clock, random, signal, view } = world
  const painter = view.isTerminal ? screen(world) : journal(world)
  const name = names.length === 1 ? names[0] : undefined
  const onTrouble = () => world.say("lost the connection to the cluster, trying again")
  try {
    const states = follow<Seen>({ client, resource: serviceImages, name, clock, random, signal, onTrouble })
    for await (const objects of states)
      painter.show(
        [...objects.values()]
          .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
          .map(rolloutOf),
      )
  } finally {
    painter.end()
  }
}

/** Remembers what the watch showed of each tier, for its rate. Another operation begins anew. */
function paceKeeper(clock: Clock) {
  let kept = new Map<string, Sample[]>()
  const keyOf = ({ name, operation }: Rollout, { tier }: TierProgress) => `${name}/${operation?.id}/${tier}`
  return {
    note(rollouts: readonly Rollout[]) {
      const next: typeof kept = new Map()
      for (const rollout of rollouts)
        for (const tier of rollout.tiers) {
          const key = keyOf(rollout, tier)
          // The time in which a tier was not at work says nothing about how fast it works.
          const before = isGoing(tier) ? (kept.get(key) ?? []) : []
          next.set(key, addSample(before, { at: clock.now(), done: tier.upToDate }))
        }
      kept = next
    },
    outlooks:
      (rollout: Rollout): Outlooks =>
      tier => {
        const aim = tier.step ? countOf(`${tier.step.percent}%`, tier.total) : tier.total
        return outlook(kept.get(keyOf(rollout, tier)) ?? [], { left: aim - tier.upToDate, now: clock.now() })
      },
  }
}

const frameMs = 100
const tickMs = 1000

/** Redraws at most ten times a second however fast events come, and once a second for the passing time. */
function screen(world: World) {
  const { clock } = world
  const pace = paceKeeper(clock)
  let rollouts: readonly Rollout[] = []
  let drawnAt = Number.NEGATIVE_INFINITY
  let cancel = () => {}
  const draw = () => {
    cancel()
    drawnAt = clock.monotonic()
    world.draw(rollouts.length > 0 ? picture(rollouts, world, pace.outlooks) : noneYet)
    cancel = clock.after(tickMs, draw)
  }
  return {
    show(next: readonly Rollout[]) {
      rollouts = next
      pace.note(next)
      cancel()
      cancel = clock.after(Math.max(0, drawnAt + frameMs - clock.monotonic()), draw)
    },
    end() {
      cancel()
    },
  }
}

/** For pipes and logs: a rollout's lines again whenever they read differently. */
function journal(world: World) {
  const told = new Map<string, string>()
  const pace = paceKeeper(world.clock)
  return {
    show(rollouts: readonly Rollout[]) {
      pace.note(rollouts)
      for (const rollout of rollouts) {
        const lines = statusLines(rollout)
        // Compared without the rates: these change with time alone, and nothing would have happened.
        if (told.get(rollout.name) !== lines) world.draw(statusLines(rollout, pace.outlooks(rollout)))
        told.set(rollout.name, lines)
      }
      for (const name of told.keys())
        if (!rollouts.some(rollout => rollout.name === name)) {
          told.delete(name)
          world.draw(`si/${name} deleted\n`)
        }
    },
    end() {},
  }
}
