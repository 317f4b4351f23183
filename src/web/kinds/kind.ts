import type { KindNames } from "#api/names.ts"
import type { Clock } from "#runtime/clock.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { standingOf } from "#runtime/standing.ts"
import { shown, timed } from "../text.ts"
import type { ActionName, ConditionShown, Details, Row, RowBase, View } from "../wire.ts"

/** What a kind shows of itself. A list is watched for every kind, and nothing else unless `follows` says so. */
export type KindPage = {
  resource: Resource
  view: View
  /** The word of the command line. */
  short: string
  actions: readonly ActionName[]
  /** Only objects with these labels are shown. */
  labelSelector?: string
  /** What is kept of an object, where its kind has large ones. */
  keep?(object: KubeObject): KubeObject
  /** Rows and details of one list, with what they remember. */
  open(clock: Pick<Clock, "now">): Cutter
}

export type Cutter = {
  row(object: KubeObject): Row
  /** What its details have beside row, actions and conditions; without what other feeds know. */
  details(object: KubeObject): Partial<Details>
  forget?(key: string): void
}

/** The fields that every row has. */
export function baseOf({ metadata }: KubeObject, { plural }: Pick<KindNames, "plural">) {
  const { name, namespace = "", creationTimestamp } = metadata
  return {
    kind: plural,
    namespace: shown(namespace, 253),
    name: shown(name, 253),
    id: shown(namespace ? `${namespace}/${name}` : name),
    ...timed("createdAt", creationTimestamp),
  }
}

/** How an object stands by its conditions, in the words of every kind of ours. */
export function standingRow(object: KubeObject): Pick<RowBase, "attention" | "reason" | "message" | "since"> & {
  state: "NotSeenYet" | "Stalled" | "Ready" | "NotReady"
} {
  const { state, reason, message, since } = standingOf(object)
  return {
    attention: state === "Stalled" ? "Act" : "None",
    state,
    reason: shown(reason, 64),
    message: shown(message),
    ...(since !== undefined && { since }),
  }
}

type Condition = { type?: unknown; status?: unknown; reason?: unknown; message?: unknown; lastTransitionTime?: unknown }
const conditionsMost = 16

export function conditionsOf(object: KubeObject): ConditionShown[] {
  const { status } = object as { status?: { conditions?: readonly Condition[] } }
  return (status?.conditions ?? []).slice(0, conditionsMost).map(each => ({
    type: shown(each.type, 64),
    status: shown(each.status, 16),
    reason: shown(each.reason, 64),
    message: shown(each.message),
    ...timed("since", each.lastTransitionTime as string | undefined),
  }))
}

export const partOf = (object: KubeObject, part: "spec" | "status") =>
  ((object as unknown as Record<string, unknown>)[part] ?? {}) as Record<string, unknown>
