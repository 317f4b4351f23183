import type { OldEndpoints, Operation, ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { maxEndpointsMessage } from "#api/v1alpha1/serviceimage/index.ts"
import { plain } from "#core/canary/plain.ts"
import { type OldEndpoint, oldEndpoints } from "#core/fleet/old-endpoints.ts"
import { forEachLimited } from "#lib/batch.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { counted } from "#lib/text.ts"
import type { Wiring } from "#runtime/controller.ts"
import { endpointSlices } from "#runtime/resource.ts"
import { readSlice, type SliceFacts } from "../reachable.ts"

/** What was found behind Services, in a rollout that has been complete since then. */
export type FoundEndpoints = OldEndpoints & { readonly completedAt: string }

/** Old pods leave the EndpointSlices a moment after their workload is up to date. */
const firstMs = 5000
/** A process that starts later does not look for what another one has found to be well. */
const firstMsMost = 60_000
const againMs = { least: 60_000, most: 3_600_000 }
/** After this long it is no longer news, and each look is a read. */
const giveUpMs = 4 * 3_600_000

/** What is known of the endpoints since this operation is complete. */
export function knownEndpoints(
  { status }: Pick<ServiceImage, "status">,
  { id }: Pick<Operation, "id">,
  found: FoundEndpoints | undefined,
): OldEndpoints | undefined {
  const { completedAt, oldEndpoints: kept, operation } = status ?? {}
  if (completedAt === undefined || operation?.id !== id || operation.phase !== "Complete") return undefined
  if (found?.completedAt === completedAt) {
    const { completedAt: _, ...known } = found
    return known
  }
  return kept && kept.checkedAt >= completedAt ? kept : undefined
}

/**
 * When the endpoints of a complete rollout are looked at: once, and again at growing intervals only while some lead to
 * another version. So a rollout that is well costs one look, whatever happens afterwards.
 */
export function endpointsDueAt(
  completedAt: string | undefined,
  known: OldEndpoints | undefined,
  now: Instant,
): Instant | undefined {
  const since = parseInstant(completedAt)
  if (since === undefined) return undefined
  if (!known) return now < since + firstMsMost ? since + firstMs : undefined
  if (known.pods === 0) return undefined
  const at = parseInstant(known.checkedAt) ?? 0
  const age = at - since
  return age > giveUpMs ? undefined : at + Math.min(againMs.most, Math.max(againMs.least, age))
}

/** As a part of Complete's message. */
export const endpointsSentence = (known: OldEndpoints | undefined): string =>
  known && known.pods > 0 ? `; ${known.message} at ${known.checkedAt}` : ""

/** So many namespaces are read at most, and pages of slices in each: the rest is not looked at, and the message says so. */
const namespacesMost = 50
const pageSize = 500
const readsAtOnce = 4

type Around = {
  readonly namespaces: Iterable<string>
  readonly images: readonly string[]
  imagesAt(pod: string): readonly string[] | undefined
}

/** Reads the EndpointSlices of the namespaces. Rejects where one cannot be read: then nothing is known. */
export async function readEndpoints(
  { client, clock, signal }: Pick<Wiring, "client" | "clock" | "signal">,
  { namespaces, images, imagesAt }: Around,
): Promise<OldEndpoints> {
  const all = [...namespaces].filter(each => each !== "").sort()
  const slices: SliceFacts[] = []
  let isWhole = all.length <= namespacesMost
  await forEachLimited(all.slice(0, namespacesMost), readsAtOnce, async namespace => {
    // From the server's own cache: a look at another moment would be as good.
    const page = { namespace, limit: pageSize, resourceVersion: "0" }
    const { items, metadata } = await client.list(endpointSlices, page, signal)
    if (metadata.continue) isWhole = false
    for (const item of items) slices.push(readSlice(item))
  })
  const found = oldEndpoints(slices, images, imagesAt)
  const message = plain(wordsOf(found, isWhole ? undefined : all.length), maxEndpointsMessage)
  return { checkedAt: formatInstant(clock.now()), pods: new Set(found.map(({ pod }) => pod)).size, message }
}

function wordsOf(found: readonly OldEndpoint[], namespaces: number | undefined): string {
  const [first] = found
  if (!first) return ""
  const pods = new Set(found.map(({ pod }) => pod)).size
  const services = new Set(found.map(({ service }) => service)).size
  const lead = services === 1 ? "a Service leads" : `${services} Services lead`
  const part = namespaces === undefined ? "" : `in a part of ${namespaces} namespaces `
  return `${part}${lead} to ${counted(pods, "pod")} with another version (${first.service} to ${first.pod} with ${first.image})`
}
