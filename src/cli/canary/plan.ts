import type { Kind } from "#api/kind.ts"
import { type Manifest, parseManifests } from "#api/manifest.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { validate } from "#api/validate.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { type Outlook, outlookOf } from "#explain/canary/outlook.ts"
import { endOf, progressOf, type SeenCanary } from "#operations/canary/progress.ts"
import { fetchAll } from "#operations/fetch.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, Failure, type Input, type World } from "../command.ts"
import { noneYet } from "../commands/get.ts"
import { inputName, readText } from "../input.ts"
import { canaries } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { canaryPlanText } from "../render/canary-plan.ts"
import { toYaml } from "../render/yaml.ts"
import { type Beside, lookAround, type Workload } from "./around.ts"

export type PlannedCanary = Outlook & {
  name: string
  namespace: string
  provider: string
  interval: string
  isSkipped: boolean
  /** Where it is now; absent for one that is not applied. */
  state?: { phase: string; reason: string; message: string }
}

/** `aim plan canary/NAME` and `aim plan -f FILE`: what a run does, and what does not work. Nothing is written. */
export async function planCanaries(input: Input, world: World, names: readonly string[]): Promise<Answer> {
  const file = input.options.file as string | undefined
  const namespace = await namespaceOf(input, world)
  const written = file === undefined ? undefined : readWritten(file, await readText(file, world), namespace)
  const beside: Beside = written ?? { templates: [], providers: [], workloads: [] }
  const client = await world.connect(connectionOf(input))
  try {
    const objects = written
      ? written.canaries
      : ((await fetchAll<KubeObject>(client, canaries, names, { namespace })) as unknown as Canary[])
    const plans: PlannedCanary[] = []
    for (const object of objects) {
      // As the server stores it, also where it was stored before a default was there.
      const canary = (validate(Canary, object).object ?? object) as Canary
      plans.push(planned({ ...canary, metadata: object.metadata }, await lookAround(client, canary, beside), !written))
    }
    const exitCode = written && plans.some(({ findings }) => findings.some(isFatal)) ? 1 : 0
    const format = input.options.output as "json" | "yaml" | undefined
    if (format) return { text: format === "json" ? `${JSON.stringify(plans, null, 2)}\n` : toYaml(plans), exitCode }
    if (plans.length === 0) world.say(noneYet(canaries, namespace))
    const text = plans.map(plan => canaryPlanText(plan, world)).join("\n")
    return { text, exitCode, ...(written && { next: "Nothing was applied." }) }
  } finally {
    client.close()
  }
}

const isFatal = ({ kind }: Outlook["findings"][number]) => kind === "Refused"

function planned(canary: Canary, around: Parameters<typeof outlookOf>[1], isApplied: boolean): PlannedCanary {
  const { metadata, spec } = canary
  const progress = isApplied ? progressOf(canary as unknown as SeenCanary) : undefined
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    provider: spec.provider ?? "",
    interval: spec.analysis.interval,
    isSkipped: spec.skipAnalysis,
    ...(progress && {
      state: { phase: progress.phase, reason: endOf(progress) ? "" : progress.reason, message: progress.message },
    }),
    ...outlookOf(canary, around),
  }
}

type Written = Beside & { canaries: Canary[] }

/** The kinds of a file that this is about; others are ignored. */
export const hasKind = (text: string, kind: string): boolean =>
  parseManifests(text).manifests.some(({ value }) => (value as { kind?: unknown } | undefined)?.kind === kind)

function readWritten(file: string, text: string, namespace: string): Written {
  const where = inputName(file)
  const { manifests, errors } = parseManifests(text)
  if (errors[0]) throw new Failure(`${where}:${errors[0].line}: ${errors[0].message}`)
  const canaries = of<Canary>(Canary)
  if (canaries.length === 0) throw new Failure(`${where} has no Canary`)
  return {
    canaries,
    templates: of<MetricTemplate>(MetricTemplate),
    providers: of<AlertProvider>(AlertProvider),
    workloads: manifests.flatMap(({ value }) => (isWorkload(value) ? [value] : [])),
  }

  function of<T>(kind: Kind): T[] {
    return manifests.filter(({ value }) => isOf(value, kind)).map(each => admitted(kind, each) as T)
  }

  function admitted(kind: Kind, { value, lineOf }: Manifest): unknown {
    const { object, errors: problems, warnings } = validate(kind, { ...(value as object), status: undefined })
    if (!object)
      throw new Failure(
        [...problems, ...warnings]
          .map(({ path, message }) => `${where}:${lineOf(path)}: ${path}: ${message}`)
          .join("\n"),
      )
    return { ...object, metadata: { namespace, ...(object as KubeObject).metadata } }
  }
}

/** Its other fields are the server's to check. */
function isWorkload(value: unknown): value is Workload {
  const { kind, metadata } = (value ?? {}) as Partial<KubeObject>
  return typeof metadata?.name === "string" && workloadKind(kind ?? "") !== undefined
}

function isOf(value: unknown, { kind, apiVersion }: Kind): boolean {
  const object = value as { kind?: unknown; apiVersion?: unknown } | undefined
  if (object?.kind !== kind) return false
  if (object.apiVersion === apiVersion) return true
  throw new Failure(`${kind} of ${object.apiVersion}: convert it first, with aim convert -f FILE`)
}
