import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Instant } from "#lib/instant.ts"
import { progressOf, type SeenCanary } from "#operations/canary/progress.ts"
import { fetchAll } from "#operations/fetch.ts"
import { paceKeeper } from "#operations/pace-keeper.ts"
import { type Rollout, rolloutOf, type Seen } from "#operations/rollout.ts"
import { sourceOf } from "#operations/source.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { standingOf } from "#runtime/standing.ts"
import { connectionOf, type Run, UsageError, type View, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { alternateImageSources, canaries, ours, parseReferences, serviceImages, shortOf } from "../kinds.ts"
import { painterFor, type Shown } from "../live.ts"
import { namespaceOf } from "../namespace.ts"
import { canaryBlock, canaryLines } from "../render/canary.ts"
import { standingBlock, standingLine, titleOf } from "../render/kind.ts"
import { sourceBlock, sourceLines } from "../render/source.ts"
import { fittedText, pictureOf, statusBlock, statusLines } from "../render/status.ts"
import { machineReadable } from "../render/table.ts"
import { serverNow } from "../server-now.ts"
import { workloadsIn } from "../workloads/words.ts"
import { noneYet, tableOf } from "./get.ts"

type Format = "wide" | "name" | "json" | "yaml"

export const run: Run = async (input, world) => {
  const workloads = workloadsIn(input.arguments)
  if (workloads) return (await import("../workloads/status.ts")).statusOfWorkloads(input, world, workloads)
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
    const how = { view: world.view, now: serverNow(client, world), wide: true }
    const isRollouts = resource === serviceImages
    if (input.options.watch) {
      await (isRollouts ? watch(client, names, world) : watchOthers(client, { resource, names, namespace }, world))
      return { text: "", exitCode: 0 }
    }
    if (format === "wide") return { text: tableOf(resource, objects, { ...how, everywhere }), exitCode: 0 }
    if (format) return { text: machineReadable(objects, { format, resource, single: names.length === 1 }), exitCode: 0 }
    if (objects.length === 0) world.say(noneYet(resource, namespace))
    const text = isRollouts ? picture(objects.map(rolloutOf), how) : othersPicture(resource, objects, world, how.now)
    return { text, exitCode: 0 }
  } finally {
    client.close()
  }
}

/** One object of another kind than ServiceImage: as lines, and as a block for a terminal. */
function linesOf(resource: Resource, object: KubeObject, { program }: World, now?: Instant): string {
  if (resource === canaries) return canaryLines(progressOf(object as unknown as SeenCanary), { program, ...at(now) })
  if (resource === alternateImageSources) return sourceLines(sourceOf(object as AlternateImageSource))
  return `${standingLine(shortOf(resource), { ...object.metadata, ...standingOf(object) })}\n`
}

function blockOf(resource: Resource, object: KubeObject, { view, program }: World, now?: Instant): string {
  if (resource === canaries)
    return canaryBlock(progressOf(object as unknown as SeenCanary), view, { program, ...at(now) })
  if (resource === alternateImageSources) return sourceBlock(sourceOf(object as AlternateImageSource), view)
  return `${standingBlock({ ...object.metadata, ...standingOf(object) }, view).join("\n")}\n`
}

const at = (now: Instant | undefined) => (now === undefined ? {} : { now })

const othersPicture = (resource: Resource, objects: readonly KubeObject[], world: World, now?: Instant) =>
  world.view.isTerminal
    ? objects.map(object => blockOf(resource, object, world, now)).join("\n")
    : objects.map(object => linesOf(resource, object, world, now)).join("")

type Chosen = { resource: Resource; names: readonly string[]; namespace: string | undefined }

async function watchOthers(client: Client, { resource, names, namespace }: Chosen, world: World): Promise<void> {
  const { clock, random, signal } = world
  // While it watches, the cluster does not say what time it is.
  const aheadMs = serverNow(client, world) - clock.now()
  const painter = painterFor<Shown & { object: KubeObject }>(world, {
    frame: (shown, now) =>
      shown.length > 0
        ? othersPicture(
            resource,
            shown.map(({ object }) => object),
            world,
            now + aheadMs,
          )
        : noneYet(resource, namespace),
  })
  const name = names.length === 1 ? names[0] : undefined
  const { trouble: onTrouble, contact: onContact } = painter
  const of = { client, resource, name, namespace, clock, random, signal, onTrouble, onContact }
  try {
    for await (const objects of follow<KubeObject>(of))
      painter.show(
        [...objects.values()]
          .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
          .map(object => {
            const lines = linesOf(resource, object, world)
            return { object, title: titleOf(shortOf(resource), object.metadata), lines, told: () => lines }
          }),
      )
  } finally {
    painter.end()
  }
}

const picture = (rollouts: readonly Rollout[], { view, now }: { view: View; now: Instant }) =>
  view.isTerminal
    ? rollouts.map(rollout => statusBlock(rollout, view, now)).join("\n")
    : rollouts.map(rollout => statusLines(rollout)).join("")

/** Until Ctrl-C, which is the normal end and not a failure. */
async function watch(client: Client, names: readonly string[], world: World): Promise<void> {
  const { clock, random, signal, view } = world
  const pace = paceKeeper(clock)
  // While it watches, the cluster does not say what time it is.
  const aheadMs = serverNow(client, world) - clock.now()
  const painter = painterFor<Shown & { rollout: Rollout }>(world, {
    frame(shown, at, taken) {
      if (shown.length === 0) return noneYet(serviceImages)
      const pictures = shown.map(({ rollout }) => pictureOf(rollout, view, at + aheadMs, pace.outlooks(rollout)))
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
      for (const rollout of rollouts) pace.note(rollout)
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
