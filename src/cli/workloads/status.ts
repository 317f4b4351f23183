import { type Sight, sightsOf } from "#explain/workloads/facts.ts"
import { podStandings } from "#explain/workloads/pods.ts"
import { standingOf } from "#explain/workloads/standing.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, type Input, UsageError, type World } from "../command.ts"
import { followSeveral } from "../follow-several.ts"
import { painterFor, type Shown } from "../live.ts"
import { namespaceOf } from "../namespace.ts"
import { machineReadable } from "../render/table.ts"
import { type ShownWorkload, workloadBlock, workloadLines } from "../render/workload.ts"
import { toYaml } from "../render/yaml.ts"
import { serverNow } from "../server-now.ts"
import { listsOf, lookAtWorkloads } from "./look.ts"
import type { Workloads } from "./words.ts"

/** `aim status deploy/web`: the truth about its last change, held or not. */
export async function statusOfWorkloads(input: Input, world: World, asked: Workloads): Promise<Answer> {
  const { resource, names } = asked
  const format = input.options.output as "wide" | "name" | "json" | "yaml" | undefined
  const everywhere = input.options.allNamespaces === true
  if (input.options.watch && format)
    throw new UsageError(`--watch is for people and -o ${format} is for programs: leave one of them out`)
  if (everywhere && names.length > 0)
    throw new UsageError("a name is in one namespace: write -n NAMESPACE instead of -A")
  const namespace = everywhere ? undefined : await namespaceOf(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    const sights = await lookAtWorkloads(client, world, { resource, names, namespace })
    if (input.options.watch) {
      const lists = listsOf(
        { resource, names, namespace },
        sights.map(({ workload }) => workload),
      )
      await watch(client, world, { lists, names })
      return { text: "", exitCode: 0 }
    }
    if (format === "name") {
      const objects = sights.map(({ workload }) => workload)
      return { text: machineReadable(objects, { format, resource, single: false }), exitCode: 0 }
    }
    const shown = sights.map(shownOf)
    if (format === "json" || format === "yaml") {
      const all = shown.map(dated)
      const value = names.length === 1 ? all[0] : all
      return { text: format === "json" ? `${JSON.stringify(value, null, 2)}\n` : toYaml(value), exitCode: 0 }
    }
    if (shown.length === 0)
      world.say(`There is no ${resource.kind}${namespace === undefined ? "" : ` in namespace ${namespace}`}.`)
    return { text: picture(shown, world, format === "wide"), exitCode: 0 }
  } finally {
    client.close()
  }
}

/** While it is held, only its pods show how far it is. */
function shownOf(sight: Sight): ShownWorkload {
  const { kind = "", metadata } = sight.workload
  const standing = standingOf(sight.workload)
  const pods = podStandings(sight)
  const updated = standing.updated ?? pods.filter(({ state }) => state === "Updated").length
  return { kind, name: metadata.name, namespace: metadata.namespace ?? "", ...standing, updated, pods }
}

/** What `aim wait` follows: the workload alone. */
export const shownAlone = (object: KubeObject, kind: string): ShownWorkload => ({
  kind,
  name: object.metadata.name,
  namespace: object.metadata.namespace ?? "",
  ...standingOf({ ...object, kind }),
})

/** Times as Kubernetes writes them. */
const dated = ({ pods = [], ...shown }: ShownWorkload) => ({
  ...shown,
  pods: pods.map(({ changedAt, ...pod }) => ({ ...pod, ...(changedAt && { changedAt: formatInstant(changedAt) }) })),
})

const picture = (shown: readonly ShownWorkload[], { view }: World, all: boolean) =>
  view.isTerminal
    ? shown.map(each => workloadBlock(each, view, all)).join("\n")
    : shown.map(each => workloadLines(each, all)).join("")

type Watched = { lists: ReturnType<typeof listsOf>; names: readonly string[] }

/** Until Ctrl-C, which is the normal end and not a failure. */
async function watch(client: Client, world: World, { lists, names }: Watched): Promise<void> {
  const { clock, random, signal } = world
  const painter = painterFor<Shown & { of: ShownWorkload }>(world, {
    frame: shown =>
      picture(
        shown.map(({ of }) => of),
        world,
        false,
      ),
  })
  const { trouble: onTrouble, contact: onContact } = painter
  const kind = lists.workloads.resource.kind
  try {
    for await (const views of followSeveral(lists, { client, clock, random, signal, onTrouble, onContact })) {
      const now = serverNow(client, world)
      const [revisions, pods] = [[...views.revisions.values()], [...views.pods.values()]]
      const workloads = [...views.workloads.values()]
        .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
        .map(workload => ({ ...workload, kind }))
      painter.show(
        sightsOf(workloads, { revisions, pods, budgets: [], nodeImages: undefined, now }).map(sight => {
          const of = shownOf(sight)
          const lines = workloadLines(of, false)
          return { of, title: `${of.namespace}/${of.name}`, lines, told: () => lines }
        }),
      )
    }
  } finally {
    painter.end()
  }
}
