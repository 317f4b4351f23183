import { parseManifests } from "#api/manifest.ts"
import { ServiceImage, type Target } from "#api/v1alpha1/serviceimage/index.ts"
import { type Problem, validate } from "#api/validate.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { type Inventory, kindOf } from "#explain/inventory.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Failure, type World } from "./command.ts"
import { inputName, readText } from "./input.ts"

/** A ServiceImage of a file, with the lines of its fields for messages. */
export type Written = { value: Record<string, unknown>; at(path: string): string }

/** The ServiceImages of a file of manifests, or of stdin; other kinds are ignored. */
export async function readManifests(file: string, world: Pick<World, "stdin">): Promise<Written[]> {
  const name = inputName(file)
  const { manifests, errors } = parseManifests(await readText(file, world))
  if (errors[0]) throw new Failure(`${name}:${errors[0].line}: ${errors[0].message}`)
  const found = manifests
    .filter(({ value }) => (value as { kind?: unknown } | undefined)?.kind === ServiceImage.kind)
    .map(({ value, lineOf }) => ({
      value: value as Record<string, unknown>,
      at: (path: string) => `${name}:${lineOf(path)}: ${path}`,
    }))
  if (found.length === 0)
    throw new Failure(`${name} has neither a ServiceImage nor a Canary: nothing else is planned from a file`)
  return found
}

/** Its target, with the defaults of the server. Invalid manifests are refused here, before a cluster is read. */
export function targetOf({ value, at }: Written): Target {
  const verdict = validate(ServiceImage, { ...value, status: undefined })
  if (!verdict.object) throw refusal(verdict, at)
  return verdict.object.spec.target
}

/** All problems. A misspelt field is only dropped, and is often the reason why another one is missing. */
const refusal = ({ errors, warnings }: { errors: Problem[]; warnings: Problem[] }, at: Written["at"]) =>
  new Failure([...errors, ...warnings].map(({ path, message }) => `${at(path)}: ${message}`).join("\n"))

/** As the server would store it: validated, with defaults, and with the existing metadata and status. */
export function admit(
  { value, at }: Written,
  seen: Inventory,
  now: Instant,
): { object: ServiceImage; before: ServiceImage | undefined; warnings: string[] } {
  const name = (value.metadata as { name?: string } | undefined)?.name ?? ""
  const before = seen.of<ServiceImage & KubeObject>(kindOf(serviceImages)).get(name)
  const verdict = validate(ServiceImage, { ...value, status: undefined }, { old: before })
  const { warnings, object } = verdict
  if (!object) throw refusal(verdict, at)
  const { generation = 0 } = before?.metadata ?? {}
  const isSame = before !== undefined && JSON.stringify(before.spec) === JSON.stringify(object.spec)
  const metadata = {
    uid: "",
    creationTimestamp: formatInstant(now),
    ...before?.metadata,
    ...object.metadata,
    annotations: { ...before?.metadata.annotations, ...object.metadata.annotations },
    generation: isSame ? generation : generation + 1,
  }
  const would = { ...object, metadata, ...(before?.status && { status: before.status }) } as ServiceImage
  return { object: would, before, warnings: warnings.map(({ path, message }) => `${at(path)}: ${message}`) }
}
