import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { countOf } from "#core/fleet/tiers.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Clock } from "#runtime/clock.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { connectionOf, type Run, UsageError, type View, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { alternateImageSources, ours, parseReferences, serviceImages } from "../kinds.ts"
import { painterFor, type Shown } from "../live.ts"
import { namespaceOf } from "../namespace.ts"
import { addSample, outlook, type Sample } from "../rate.ts"
import { sourceBlock, sourceLines } from "../render/source.ts"
import { fittedText, type Outlooks, pictureOf, statusBlock, statusLines } from "../render/status.ts"
import { machineReadable, rolloutTable, sourceTable } from "../render/table.ts"
import { isGoing, type Rollout, rolloutOf, type Seen, type TierProgress } from "../rollout.ts"
import { type Source, sourceOf } from "../source.ts"
import { fetchAll, noneYet, noSourceYet } from "./get.ts"

type Format = "wide" | "name" | "json" | "yaml"

export const run: Run = async (input, world) => {
  const { resource, names } = parseReferences(input.arguments, ours)
  const format = input.options.output as Format | undefined
  const everywhere = input.options.allNamespaces === true
  if (input.options.watch && format)
    throw new UsageError(`--watch is for people and -o ${format} is for programs: leave one of them out`)
  if (everywhere && names.length > 0)
    throw new UsageError("a name is in one namespace: write -n NAMESPACE instead of -A")
  const namespace = resource.namespaced && !everywhere ? await namespaceOf(input, world) : undefined
  const client = await world.connect(connectionOf(input))
  try {
    // Also before watching: a missing name is reported at once, with the closest one.
    const objects = await fetchAll(client, resource, names, { namespace })
    const how = { view: world.view, now: world.clock.now(), wide: true }
    const isRollouts = resource === serviceImages
    if (input.options.watch) {
      await (isRollouts ? watch(client, names, world) : watchSources(client, { names, namespace }, world))
      return { text: "", exitCode: 0 }
    }
    const sources = objects as unknown as AlternateImageSource[]
    if (format === "wide")
      return {
        text: isRollouts ? rolloutTable(objects, how) : sourceTable(sources, { ...how, everywhere }),
        exitCode: 0,
      }
    if (format) return { text: machineReadable(objects, { format, resource, single: names.length === 1 }), exitCode: 0 }
    if (objects.length === 0) world.say(isRollouts ? noneYet : noSourceYet(namespace))
    const text = isRollouts ? picture(objects.map(rolloutOf), world) : sourcePicture(sources.map(sourceOf), world.view)
    return { text, exitCode: 0 }
  } finally {
    client.close()
  }
}

const sourcePicture = (sources: readonly Source[], view: View) =>
  view.isTerminal
    ? sources.map(source => sourceBlock(source, view)).join("\n")
    : sources.map(source => sourceLines(source)).join("")

type Chosen = { names: readonly string[]; namespace: string | undefined }

async function watchSources(client: Client, { names, namespace }: Chosen, world: World): Promise<void> {
  const { clock, random, signal, view } = world
  const painter = painterFor<Shown & { source: Source }>(world, {
    frame: shown =>
      shown.length > 0
        ? sourcePicture(
            shown.map(({ source }) => source),
            view,
          )
        : noSourceYet(namespace),
  })
  const name = names.length === 1 ? names[0] : undefined
  const { trouble: onTrouble, contact: onContact } = painter
  const of = { client, resource: alternateImageSources, name, namespace, clock, random, signal, onTrouble, onContact }
  try {
    for await (const objects of follow<AlternateImageSource & KubeObject>(of))
      painter.show(
        [...objects.values()]
          .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
          .map(sourceOf)
          .map(source => {
            const lines = sourceLines(source)
            return { source, title: `ais/${source.name} -n ${source.namespace}`, lines, told: () => lines }
          }),
      )
  } finally {
    painter.end()
  }
}

const picture = (rollouts: readonly Rollout[], { view, clock }: Pick<World, "view" | "clock">) =>
  view.isTerminal
    ? rollouts.map(rollout => statusBlock(rollout, view, clock.now())).join("\n")
    : rollouts.map(rollout => statusLines(rollout)).join("")

/** Until Ctrl-C, which is the normal end and not a failure. */
async function watch(client: Client, names: readonly string[], world: World): Promise<void> {
  const { clock, random, signal, view } = world
  const pace = paceKeeper(clock)
  const painter = painterFor<Shown & { rollout: Rollout }>(world, {
    frame(shown, at, taken) {
      if (shown.length === 0) return noneYet
      const pictures = shown.map(({ rollout }) => pictureOf(rollout, view, at, pace.outlooks(rollout)))
      return fittedText(pictures, view.rows === undefined ? undefined : view.rows - 1 - taken)
    },
  })
  const name = names.length === 1 ? names[0] : undefined
  const { trouble: onTrouble, contact: onContact } = painter
  try {
    const states = follow<Seen>({ client, resource: serviceImages, name, clock, random, signal, onTrouble, onContact })
    for await (const objects of states) {
      const rollouts = [...objects.values()]
        .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
        .map(rolloutOf)
      pace.note(rollouts)
      painter.show(
        rollouts.map(rollout => ({
          rollout,
          title: `si/${rollout.name}`,
          lines: statusLines(rollout),
          told: () => statusLines(rollout, pace.outlooks(rollout)),
        })),
      )
    }
  } finally {
    painter.end()
  }
}

/** Remembers the progress of each tier, for its rate. A new operation starts over. */
function paceKeeper(clock: Clock) {
  let kept = new Map<string, Sample[]>()
  const keyOf = ({ name, operation }: Rollout, { tier }: TierProgress) => `${name}/${operation?.id}/${tier}`
  return {
    note(rollouts: readonly Rollout[]) {
      const next: typeof kept = new Map()
      for (const rollout of rollouts)
        for (const tier of rollout.tiers) {
          const key = keyOf(rollout, tier)
          // Time in which a tier was idle does not count for its rate.
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
