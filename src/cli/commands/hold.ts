import { grantName } from "#core/grant.ts"
import { heldMark, inPlaceHolder, inPlaceStrategies, strategyAnnotation } from "#core/in-place/names.ts"
import { standingHold } from "#core/in-place/own-hold.ts"
import { parseSettings } from "#core/in-place/settings.ts"
import { workloadTarget } from "#core/workloads/workload-target.ts"
import { isKept, readWorkload } from "#explain/workloads/facts.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { connectionOf, Failure, type Run, type World } from "../command.ts"
import { namespaceOf } from "../namespace.ts"
import { dryRunOf } from "../operate.ts"
import { type Found, findHoldable, patched, type Workload } from "../workloads/holdable.ts"

/** `aim hold deploy/web`: for servers that do not hold a change in the write that makes it (decision 89). */
export const run: Run = async (input, world) => {
  const isDryRun = dryRunOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    const namespace = await namespaceOf(input, world)
    const found = await findHoldable(client, input.arguments, namespace)
    await mustBeGranted(client, namespace, world)
    for (const each of found) mustBeHoldable(each)
    const lines: string[] = []
    const held: Found[] = []
    for (const each of found) {
      const { line, isHeld } = await hold(client, each, isDryRun)
      lines.push(line)
      if (isHeld) held.push(each)
    }
    const next = held.length > 0 ? differencesFor(held, world.program) : undefined
    return { text: `${lines.join("\n")}\n`, exitCode: 0, ...(next !== undefined && { next }) }
  } finally {
    client.close()
  }
}

type Outcome = { line: string; isHeld: boolean }

async function hold(client: Client, found: Found, isDryRun: boolean): Promise<Outcome> {
  const { kind, object } = found
  const title = titleOf(found)
  if (isStanding(kind.name, object)) return { line: `${title} is held already, also between updates`, isHeld: false }
  if (await isHeldByServer(client, kind.resource, object))
    return { line: `${title} needs no hold: the server holds each change in the write that makes it`, isHeld: false }
  if (isDryRun) return { line: `${title} would be held (dry run: nothing was written)`, isHeld: false }
  await patched(client, found, seen => {
    if (isStanding(kind.name, seen)) return undefined
    mustBeHoldable({ kind, object: seen })
    return standingHold(kind.name, seen)
  })
  return { line: `${title} is held, also between updates`, isHeld: true }
}

const titleOf = ({ kind: { word }, object: { metadata } }: Found) =>
  `${word}/${metadata.name} of namespace ${metadata.namespace}`

const isStanding = (kind: string, object: KubeObject) => readWorkload({ ...object, kind }).rest !== undefined

/** Whatever a hold would make wait, or could not give back, comes first. */
function mustBeHoldable(found: Found): void {
  const why = isStanding(found.kind.name, found.object) ? undefined : obstacleOf(found)
  if (why !== undefined) throw new Failure(`${titleOf(found)} ${why}`)
}

function obstacleOf({ kind, object }: Found): string | undefined {
  const { name, namespace, annotations = {}, labels = {} } = object.metadata
  const typed = `${kind.word}/${name} -n ${namespace}`
  const parsed = parseSettings(annotations)
  if (!parsed.ok) return `is not held: ${parsed.problem}`
  if (parsed.settings.strategy === "Recreate")
    return `asks for no updates in place: kubectl annotate ${typed} ${strategyAnnotation}=${inPlaceStrategies[0]}`
  const holder = labels[heldMark]
  if (holder !== undefined && holder !== inPlaceHolder) return `is held by ${holder}`
  if (holder !== undefined) return `is held for an update: aim wait ${typed}, then hold it`
  if (!standingHold(kind.name, object))
    return "is stopped by its owner (a pause, a partition or OnDelete), which is never touched"
  return workloadTarget(kind.name, "").isUpToDate(object)
    ? undefined
    : `has a rollout under way: aim wait ${typed}, then hold it`
}

/** Asked by a dry run of a changed template, as `aim plan` does. Without the right to patch, the hold is refused as well. */
async function isHeldByServer(client: Client, resource: Resource, { metadata, kind = resource.kind }: Workload) {
  const template = { metadata: { annotations: { "autoimagemanager.io/plan": "asks-whether-it-is-held" } } }
  const { name, namespace } = metadata
  const patch = { type: "strategic", body: { spec: { template } } } as const
  const admitted = await client.patch<KubeObject>(resource, { name, namespace }, patch, { dryRun: true })
  return isKept(readWorkload({ ...admitted, kind }))
}

const bindings = ["rolebindings", "clusterrolebindings"].map(
  (plural): Resource => ({
    group: "rbac.authorization.k8s.io",
    version: "v1",
    plural,
    kind: plural === "rolebindings" ? "RoleBinding" : "ClusterRoleBinding",
    namespaced: plural === "rolebindings",
  }),
)

/** A hold must not outlast the right to end an update: without a grant, the workload would only wait. */
async function mustBeGranted(client: Client, namespace: string, { say }: World): Promise<void> {
  for (const resource of bindings) {
    try {
      await client.get(resource, { name: grantName, ...(resource.namespaced && { namespace }) })
      return
    } catch (error) {
      if (isFailure(error, "Forbidden")) {
        say(`Whether namespace ${namespace} has granted aim its workloads may not be read: aim grant ${namespace}`)
        return
      }
      if (!isFailure(error, "NotFound")) throw error
    }
  }
  throw new Failure(
    `aim may not change workloads of namespace ${namespace}, so they would only wait: aim grant ${namespace}`,
  )
}

/** What is other than without a hold, for each kind that is held now. */
function differencesFor(held: readonly Found[], program: string): string {
  const kinds = new Set(held.map(({ kind }) => kind.name))
  const lines = [
    "Its controller replaces no pod until an update goes in place, or cannot; then the hold stands again.",
    ...(kinds.has("Deployment")
      ? ["A Deployment is paused: kubectl rollout undo and restart refuse it, kubectl rollout resume gives it back."]
      : []),
    ...(kinds.has("StatefulSet")
      ? ["A StatefulSet has a partition above every pod: kubectl rollout status calls every change complete."]
      : []),
    ...(kinds.has("DaemonSet") ? ["A DaemonSet has OnDelete: kubectl rollout status refuses it."] : []),
    ...(kinds.has("StatefulSet") || kinds.has("DaemonSet")
      ? ["A manifest with spec.updateStrategy takes the hold away, and pods are replaced (FellBackToRollingUpdate)."]
      : []),
    `Use ${program} status, wait and rollback; ${program} release ends it.`,
  ]
  return lines.join("\n")
}
