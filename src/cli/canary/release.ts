import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { proofOf } from "#core/canary/proof.ts"
import { serviceNamesOf } from "#core/canary/services.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import { type Hold, parseHold } from "#core/in-place/marks.ts"
import { heldMark } from "#core/in-place/names.ts"
import { unmarkOf } from "#core/in-place/release.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { canaries } from "../kinds.ts"
import { type Found, patched, type Workload } from "../workloads/holdable.ts"

/**
 * Ends the hold of a Canary: the workload's own controller goes on with its template, whatever the run had reached. It
 * needs no controller of aim. The label goes last: a write that takes both marks is no release to the policy.
 */
export async function releaseFromCanary(client: Client, found: Found, title: string): Promise<string> {
  const hold = parseHold(found.object.metadata.annotations?.[heldMark])
  const canary = hold?.name === undefined ? undefined : await canaryNamed(client, found, hold.name)
  const released = await patched(client, found, ({ metadata, spec }) => {
    const { annotations = {}, resourceVersion } = metadata
    if (annotations[heldMark] === undefined) return undefined
    const now = parseHold(annotations[heldMark])
    return { metadata: { resourceVersion, annotations: { [heldMark]: null } }, spec: givenBack(found, now, spec) }
  })
  await patched(
    client,
    { kind: found.kind, object: released },
    ({ metadata: { labels = {}, resourceVersion = "" } }) =>
      labels[heldMark] === undefined ? undefined : unmarkOf(resourceVersion),
  )
  return [`${title} is released`, afterwards(hold, canary, released)].join(": ")
}

/** The partition of a run is any number: what a Canary holds is its own stop, unless its owner wrote another strategy. */
function givenBack({ kind }: Found, hold: Hold | undefined, spec: Workload["spec"]): object {
  const { type = "RollingUpdate" } = (spec as { updateStrategy?: { type?: string } }).updateStrategy ?? {}
  const isStopped = kind.name === "StatefulSet" ? type === "RollingUpdate" : holdKinds[kind.name].isInForce(spec)
  return isStopped ? holdKinds[kind.name].released(hold, spec) : {}
}

/** What is not there, or may not be read, is not spoken of. */
const canaryNamed = (client: Client, { object }: Found, name: string): Promise<Canary | undefined> =>
  client.get(canaries, { name, namespace: object.metadata.namespace }).then(
    found => found as unknown as Canary,
    error => {
      if (isFailure(error, "NotFound", "Forbidden")) return undefined
      throw error
    },
  )

function afterwards(hold: Hold | undefined, canary: Canary | undefined, { spec, metadata }: Workload): string {
  const goesOn = "its own controller goes on with its template"
  if (!canary) return goesOn
  const title = `canary/${canary.metadata.name}`
  const { run } = canary.status ?? {}
  const isRejected = proofOf(canary).state === "Failed"
  const next = hold?.isStanding
    ? `no policy holds it, so ${title} proves no further change of it: delete the Canary and create it again for that`
    : `${title} holds the next change again`
  const selector = Object.entries(spec.selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  const { source } = serviceNamesOf(canary)
  return [
    isRejected ? `${goesOn}, which ${title} had rejected` : goesOn,
    ...(run ? [`run ${run.id} of ${title} ends, and its requests go back first, if a controller of aim runs`] : []),
    next,
    `if no controller of aim runs, Service ${source} goes on selecting the revision before, so run kubectl set selector service/${source} ${selector.join(",")} -n ${metadata.namespace}`,
  ].join("; ")
}
