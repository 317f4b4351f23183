import { Readable } from "node:stream"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Inventory } from "#explain/inventory.ts"
import { planned } from "#explain/serviceimage/planned.ts"
import { readRollouts, targetsIn } from "#explain/serviceimage/reading.ts"
import { type Surveyed, survey } from "#explain/serviceimage/survey.ts"
import { closest } from "#lib/closest.ts"
import { formatInstant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Failure, type Run } from "../command.ts"
import { readText } from "../input.ts"
import { alternateImageSources, canaries, ours, parseReferences, serviceImages } from "../kinds.ts"
import { demand, look } from "../look.ts"
import { planKind } from "../plan-kind.ts"
import { planSources } from "../plan-sources.ts"
import { planText } from "../render/plan.ts"
import { toYaml } from "../render/yaml.ts"
import { planWorkload, workloadsToPlan } from "../workloads/plan.ts"
import { admit, readManifests, targetOf } from "../would-be.ts"
import { noneYet } from "./get.ts"

const shownMost = 5

export const run: Run = async (input, given) => {
  let world = given
  if (workloadsToPlan(input.arguments)) return planWorkload(input, world)
  const { resource, names } = parseReferences(input.arguments, ours)
  if (resource === alternateImageSources) return planSources(input, world, names)
  const isOfDump = input.options.from !== undefined
  if (resource === canaries && !isOfDump) return (await import("../canary/plan.ts")).planCanaries(input, world, names)
  if (resource !== serviceImages) return planKind(input, world, { resource, names })
  const format = input.options.output as "json" | "yaml" | undefined
  const file = input.options.file as string | undefined
  if (file !== undefined && input.arguments.length === 0) {
    const text = await readText(file, world)
    // Stdin can be read once.
    world = { ...world, stdin: Readable.from([text]) }
    const { hasKind, planCanaries } = await import("../canary/plan.ts")
    const hasCanary = hasKind(text, canaries.kind)
    if (hasCanary && !hasKind(text, serviceImages.kind)) return planCanaries(input, world, [])
    if (hasCanary) world.say(`Canaries of ${file} are planned by: aim plan canary -f ${file}`)
  }
  const written = file === undefined ? [] : await readManifests(file, world)
  const more = written.map(targetOf)
  const targets = (seen: Inventory) => [...targetsIn(seen), ...more]
  const { inventory, now } = await look(input, world, readRollouts(targets))
  demand(inventory, serviceImages)

  const befores = new Map<string, ServiceImage | undefined>()
  for (const each of written) {
    const { object, before, warnings } = admit(each, inventory, now)
    for (const warning of warnings) world.say(`Warning: ${warning}`)
    befores.set(object.metadata.name, before)
    inventory.add(object as KubeObject)
  }
  const surveyed = survey(inventory, now)
  if (surveyed.podsMissing)
    world.say(`Pods could not be read (${surveyed.podsMissing}), so each object counts as one pod.`)
  const chosen = choose(surveyed.rollouts, names.length > 0 ? names : [...befores.keys()])
  const plans = chosen.map(rollout =>
    planned(rollout, surveyed, {
      most: format ? Number.POSITIVE_INFINITY : shownMost,
      before: befores.get(rollout.serviceImage.metadata.name),
    }),
  )
  const impossible = chosen
    .filter(({ serviceImage: { metadata } }) => befores.has(metadata.name))
    .flatMap(whyImpossible)
  const exitCode = impossible.length > 0 ? 1 : 0
  if (format) {
    const whole = plans.map(({ lookAgainAt, ...plan }, index) => ({
      ...plan,
      ...(lookAgainAt !== undefined && { lookAgainAt: formatInstant(lookAgainAt) }),
      status: chosen[index]!.plan.status,
    }))
    return { text: format === "json" ? `${JSON.stringify(whole, null, 2)}\n` : toYaml(whole), exitCode }
  }
  if (plans.length === 0) world.say(noneYet(serviceImages))
  const text = plans.map(plan => planText(plan, { view: world.view, now, program: world.program })).join("\n")
  if (file === undefined) return { text, exitCode }
  return { text, exitCode, next: [...impossible, "Nothing was applied."].join("\n") }
}

/** Why a manifest could never complete, if that is known already. Only for manifests that are not applied yet. */
function whyImpossible({ serviceImage, plan, fleet }: Surveyed): string[] {
  const { name } = serviceImage.metadata
  const invalid = plan.status.conditions.find(({ type, status }) => type === "Invalid" && status === "True")
  if (invalid) return [`si/${name} cannot be carried out: ${invalid.message}`]
  const members = [...(fleet?.keys() ?? [])].map(key => fleet!.get(key)!)
  if (members.length === 0 || members.some(({ problem }) => problem === undefined)) return []
  return [`si/${name} cannot be carried out: no object has the field or container that spec.target.image names`]
}

function choose(rollouts: readonly Surveyed[], names: readonly string[]): Surveyed[] {
  const known = rollouts.map(({ serviceImage }) => serviceImage.metadata.name)
  const missing = names.find(name => !known.includes(name))
  if (missing !== undefined) {
    const meant = closest(missing, known)
    throw new Failure(`there is no ServiceImage ${missing}${meant ? `; did you mean si/${meant}?` : ""}`)
  }
  return rollouts.filter(({ serviceImage }) => names.length === 0 || names.includes(serviceImage.metadata.name))
}
