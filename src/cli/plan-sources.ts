import { type AlternateImageSource, type Reason, reasons } from "#api/v1alpha1/alternateimagesource/index.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import { decisionsOf, type Survey, survey } from "#explain/alternateimagesource/survey.ts"
import { whySource } from "#explain/alternateimagesource/why.ts"
import { type Inventory, kindOf } from "#explain/inventory.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, type Input, UsageError, type World } from "./command.ts"
import { checkNamespace } from "./names.ts"
import { notThere } from "./question.ts"
import { sourcePlanText } from "./render/source.ts"
import { toYaml } from "./render/yaml.ts"
import { lookAtSources } from "./why-sources.ts"

/** What the controller does next for one AlternateImageSource, from its own planner. */
export type PlannedSource = {
  name: string
  namespace: string
  reason: Reason
  message: string
  /** How many containers it covers. */
  targets: number
  /** What gets another image now. Without `pods`, the workload itself. */
  next: { workload: string; container: string; from: string; to: string; reason: string; pods?: number }[]
  /** What fails or is pulled from elsewhere, and gets no other image now. */
  waits: {
    workload: string
    container: string
    image: string
    reason: Reason
    /** Registries are asked about these images first. */
    asks: readonly string[]
    lookAgainAt?: Instant
  }[]
}

/** `aim plan ais`, with any number of names: all of one namespace; of a dump, of every namespace unless one is given. */
export async function planSources(input: Input, world: World, names: readonly string[]): Promise<Answer> {
  if (input.options.file !== undefined)
    throw new UsageError("--file: only ServiceImages can be planned before they are applied: leave out ais")
  const given = input.options.namespace as string | undefined
  const asked = {
    resource: alternateImageSources,
    name: names.length === 1 ? names[0] : undefined,
    namespace: given === undefined ? undefined : checkNamespace(given, "--namespace"),
  }
  const { inventory, now, namespace } = await lookAtSources(input, world, asked)
  const all = sourcesIn(inventory).filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
  const missing = names.find(name => !all.some(({ metadata }) => metadata.name === name))
  if (missing !== undefined) throw notThere(inventory, { ...asked, name: missing, namespace })
  const chosen = all.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
  const surveys = new Map<string, Survey>()
  const plans = chosen.map(source => {
    const { namespace: space = "" } = source.metadata
    const seen = surveys.get(space) ?? survey(inventory, space, now)
    surveys.set(space, seen)
    return planned(seen, source)
  })
  const format = input.options.output as "json" | "yaml" | undefined
  if (format) {
    const whole = plans.map(dated)
    return { text: format === "json" ? `${JSON.stringify(whole, null, 2)}\n` : toYaml(whole), exitCode: 0 }
  }
  if (plans.length === 0)
    world.say(`No AlternateImageSources${namespace === undefined ? "" : ` in namespace ${namespace}`}.`)
  return { text: plans.map(plan => sourcePlanText(plan, { view: world.view, now })).join("\n"), exitCode: 0 }
}

const sourcesIn = (inventory: Inventory) => [
  ...inventory.of<AlternateImageSource & KubeObject>(kindOf(alternateImageSources)).values(),
]

function planned(seen: Survey, source: AlternateImageSource): PlannedSource {
  const { reason } = whySource(seen, source)
  const plan: PlannedSource = {
    name: source.metadata.name,
    namespace: seen.namespace,
    reason,
    message: reasons[reason],
    targets: seen.sources.scene(source).roster.length,
    next: [],
    waits: [],
  }
  for (const { group, repairs, retarget, reason, asks, lookAgainAt } of decisionsOf(seen, source)) {
    const { type, name } = group.workload
    const at = { workload: `${type.kind}/${name}`, container: group.container }
    if (retarget) plan.next.push({ ...at, from: retarget.from, to: retarget.to, reason: retarget.reason })
    const moves = Map.groupBy(repairs, ({ pod, to }) => `${pod.image} ${to}`)
    for (const [{ pod, to, reason: why }, ...others] of moves.values() as Iterable<[Move, ...Move[]]>)
      plan.next.push({ ...at, from: pod.image, to, reason: why, pods: 1 + others.length })
    if (!retarget && repairs.length === 0 && reason !== "Watching")
      plan.waits.push({
        ...at,
        image: group.failing[0]?.image ?? group.image,
        reason,
        asks,
        ...(lookAgainAt !== undefined && { lookAgainAt }),
      })
  }
  return plan
}

type Move = ReturnType<typeof decisionsOf>[number]["repairs"][number]

/** Times as Kubernetes writes them. */
const dated = ({ waits, ...plan }: PlannedSource) => ({
  ...plan,
  waits: waits.map(({ lookAgainAt, ...wait }) => ({
    ...wait,
    ...(lookAgainAt !== undefined && { lookAgainAt: formatInstant(lookAgainAt) }),
  })),
})
