import { readFile } from "node:fs/promises"
import { parseManifests } from "#api/manifest.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { validate } from "#api/validate.ts"
import type { Inventory } from "#controllers/serviceimage/inventory.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { kindOf } from "#controllers/serviceimage/survey.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Failure } from "./command.ts"

/** A ServiceImage of a file, with the way to say where in it something is wrong. */
export type Written = { value: Record<string, unknown>; at(path: string): string }

/** The ServiceImages of a file of manifests; what else is in it is none of our business. */
export async function readManifests(file: string): Promise<Written[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`${file}: ${error.code === "ENOENT" ? "there is no such file" : error.message}`)
  })
  const { manifests, errors } = parseManifests(text)
  if (errors[0]) throw new Failure(`${file}:${errors[0].line}: ${errors[0].message}`)
  const found = manifests
    .filter(({ value }) => (value as { kind?: unknown } | undefined)?.kind === ServiceImage.kind)
    .map(({ value, lineOf }) => ({
      value: value as Record<string, unknown>,
      at: (path: string) => `${file}:${lineOf(path)}: ${path}`,
    }))
  if (found.length === 0) throw new Failure(`${file} has no ServiceImage in it`)
  return found
}

/** As the server would store it: judged, with defaults, and with what is there already of its metadata and status. */
export function admit(
  { value, at }: Written,
  seen: Inventory,
  now: Instant,
): { object: ServiceImage; before: ServiceImage | undefined; warnings: string[] } {
  const name = (value.metadata as { name?: string } | undefined)?.name ?? ""
  const before = seen.of<ServiceImage & KubeObject>(kindOf(serviceImages)).get(name)
  const { errors, warnings, object } = validate(ServiceImage, { ...value, status: undefined }, { old: before })
  if (!object) throw new Failure(errors.map(({ path, message }) => `${at(path)}: ${message}`).join("\n"))
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
