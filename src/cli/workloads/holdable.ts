import { type HeldKind, holdKinds } from "#core/in-place/hold.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { LabelSelector } from "#lib/label-selector.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { type KubeObject, type Resource, resourceOf } from "#runtime/resource.ts"
import { UsageError } from "../command.ts"
import { fetchTarget, parseTarget } from "../restart/target.ts"

/** What `aim hold` and `aim release` share: workloads that can be held, by the words of a command. */

export type Workload = KubeObject & { spec: { selector: LabelSelector; template: PodTemplate } }
type Kind = { name: HeldKind; resource: Resource; word: string }
export type Found = { kind: Kind; object: Workload }

export const holdable = (Object.keys(holdKinds) as HeldKind[]).map((name): Kind => {
  const kind = workloadKind(name)!
  return { name, resource: resourceOf(kind), word: kind.shortNames[0]! }
})
export const holdableWords = holdable.map(({ word }) => `${word}/NAME`).join(", ")

export async function findHoldable(client: Client, names: readonly string[], namespace: string): Promise<Found[]> {
  const found: Found[] = []
  for (const name of names) {
    const target = { ...parseTarget(name), namespace }
    const kind = holdable.find(({ resource }) => resource.kind === target.resource.kind)
    if (!kind) throw new UsageError(`${name} is never held: write one of ${holdableWords}`)
    found.push({ kind, object: (await fetchTarget(client, target)) as Workload })
  }
  return found
}

const attempts = 10

/** Patches what was read last; after a conflict it is read again. */
export async function patched(
  client: Client,
  { kind: { resource }, object: { metadata } }: Found,
  bodyOf: (workload: Workload) => object | undefined,
): Promise<Workload> {
  for (let attempt = 1; ; attempt++) {
    const seen = await client.get<Workload>(resource, metadata)
    const body = bodyOf(seen)
    if (!body) return seen
    try {
      return await client.patch<Workload>(resource, metadata, { type: "merge", body })
    } catch (error) {
      if (!isFailure(error, "Conflict") || attempt === attempts) throw error
    }
  }
}
