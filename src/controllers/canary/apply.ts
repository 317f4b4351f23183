import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { canaryHolder, standingHoldOf } from "#core/canary/hold.ts"
import type { RouteObject, Split } from "#core/canary/router.ts"
import { endedLabel } from "#core/canary/run-object.ts"
import type { Act } from "#core/canary/sight.ts"
import { heldMark } from "#core/in-place/names.ts"
import { withoutHash } from "#core/in-place/template.ts"
import { isSame } from "#lib/same.ts"
import { orGone, orThere, outcomeOf } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { apiVersionOf, controlledBy, type KubeObject, type Resource } from "#runtime/resource.ts"
import { configWrites } from "./config-writes.ts"
import type { Json } from "./facts.ts"
import type { KeptWorkload } from "./kept.ts"
import { contextOf, leftOf, type Memory, type Seen, wantedServices } from "./observe.ts"
import type { Plan } from "./plan.ts"
import { canaries, canaryFinalizer, deployments, replicaSets, services as serviceResource } from "./resources.ts"
import { scalerWrite } from "./scalers.ts"
import { deletePod, setWrites } from "./targets/set-writes.ts"
import type { World } from "./world.ts"
import { type Done, settled, soonMs, type Write } from "./write.ts"

const tries = 3

/** Carries out the one write of a plan, on condition of what was seen, and waits until the caches show it. */
export async function apply(world: World, seen: Seen, plan: Plan, look: Look<Canary, Memory>): Promise<Done> {
  const { act } = plan
  if (!act || !seen.isListed) return {}
  if (act.do === "tryPolicy") return tryPolicy(world, seen, look)
  if (act.do === "deletePod") return deletePod(world, seen, act, look.now)
  for (const write of writesOf(world, seen, act)) {
    const { resource, send } = write()
    const outcome = await outcomeOf(send)
    const again = settled(outcome, look.now)
    if (again) return again
    if (outcome.is === "Written" && outcome.object) await world.shown(look.key, resource, outcome.object as KubeObject)
  }
  if (act.do === "addFinalizer" || act.do === "removeFinalizer") return { isWritten: true }
  return act.do === "route" ? { split: { weight: act.weight, isMirrored: act.isMirrored } } : {}
}

function writesOf(world: World, seen: Seen, act: Act): (() => Write)[] {
  const own = configWrites(world, seen, act) ?? setWrites(world, seen, act)
  if (own) return own
  const { client } = world
  const { canary } = seen.sight
  const { workload, trial, sets } = seen.objects
  const { namespace } = canary.metadata
  const patch = (resource: Resource, object: KubeObject | undefined, body: Json) => () => {
    const { name, resourceVersion } = object!.metadata
    const conditional = { ...body, metadata: { ...body.metadata, resourceVersion } }
    return { resource, send: client.patch(resource, { name, namespace }, { type: "merge", body: conditional }) }
  }
  const remove = (resource: Resource, object: KubeObject) => () => {
    const { name, uid = "", resourceVersion = "" } = object.metadata
    return {
      resource,
      send: orGone(
        client.delete(resource, { name, namespace }, { uid, resourceVersion, propagationPolicy: "Background" }),
      ),
    }
  }
  const finalizers = ((canary.metadata as Json).finalizers ?? []) as string[]
  switch (act.do) {
    case "addFinalizer":
      return [patch(canaries, canary as KubeObject, { metadata: { finalizers: [...finalizers, canaryFinalizer] } })]
    case "removeFinalizer":
      return [
        patch(canaries, canary as KubeObject, {
          metadata: { finalizers: finalizers.filter(each => each !== canaryFinalizer) },
        }),
      ]
    case "services":
      return serviceWrites(world, seen, act)
    case "route":
      return routeWrites(world, seen, act)
    case "createTrial":
      return [
        () => ({
          resource: deployments,
          send: orThere(client.create(deployments, trialManifest(canary, workload!, seen, act.size))),
        }),
      ]
    case "scaleTrial":
      // It has its ReplicaSet, and nothing but a size will change: a paused Deployment scales, and makes no other.
      return [patch(deployments, trial, { spec: { replicas: act.size, paused: true } })]
    case "pauseTrial":
      return [patch(deployments, trial, { spec: { paused: true } })]
    case "endTrial":
      return [patch(deployments, trial, { metadata: { labels: { [endedLabel]: "true" } } })]
    case "deleteTrial":
      return trial ? [remove(deployments, trial)] : []
    case "moveSet":
      return [
        patch(replicaSets, sets.get(act.set), {
          metadata: { ownerReferences: [controlledBy(deployments, workload!.metadata)] },
        }),
      ]
    case "emptySet":
      return [patch(replicaSets, sets.get(act.set), { spec: { replicas: 0 } })]
    case "deleteTwin":
      return [remove(replicaSets, sets.get(act.set)!)]
    case "hold": {
      const annotations = { [heldMark]: standingHoldOf(canary.metadata.name, workload!.metadata.generation ?? 0) }
      return [
        patch(deployments, workload, {
          metadata: { annotations, labels: { [heldMark]: canaryHolder } },
          spec: { paused: true },
        }),
      ]
    }
    case "release": {
      // The label goes last: a write that takes both marks is no release to the policy, and it would bring them back.
      let released: KubeObject = workload!
      const first = patch(deployments, released, {
        metadata: { annotations: { [heldMark]: null } },
        spec: { paused: null },
      })
      const send = async () => {
        released = (await first().send) as KubeObject
        return released
      }
      const last = () => patch(deployments, released, { metadata: { labels: { [heldMark]: null } } })()
      return [() => ({ resource: deployments, send: send() }), last]
    }
    case "writeBack": {
      const template = withoutHash(sets.get(act.set)!.template.whole)
      const { name, resourceVersion } = workload!.metadata
      const body = [
        { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
        { op: "replace", path: "/spec/template", value: template },
      ]
      return [
        () => ({ resource: deployments, send: client.patch(deployments, { name, namespace }, { type: "json", body }) }),
      ]
    }
    case "resize":
      return [patch(deployments, seen.objects.revisions?.get(act.workload), { spec: { replicas: act.size } })]
    case "scaler":
      return [() => scalerWrite(client, seen.objects.scalers, canary, act)]
    case "leave":
      return leaveWrites(world, seen)
    default:
      return []
  }
}

/** The Deployment of a run: the workload's selector and template, and no annotation that a ReplicaSet would inherit. */
function trialManifest(canary: Canary, workload: KeptWorkload, seen: Seen, size: number): KubeObject {
  const { spec, template } = workload
  const { name } = canary.metadata
  const { paused: _, replicas: _replicas, ...rest } = spec
  return {
    apiVersion: apiVersionOf(deployments),
    kind: deployments.kind,
    metadata: {
      name: seen.sight.canary.status!.run!.target.workload!,
      namespace: canary.metadata.namespace!,
      labels: { "autoimagemanager.io/canary-run": name.slice(0, 63) },
      ownerReferences: [controlledBy(canaries, canary.metadata)],
    },
    spec: { ...rest, template: template.whole, replicas: size },
  } as KubeObject
}

/** The one that gets requests is written last. */
function serviceWrites(
  { client }: World,
  seen: Seen,
  hashes: { source: string; target?: string | undefined },
): (() => Write)[] {
  const { canary } = seen.sight
  const existing = seen.objects.services
  const wanted = wantedServices(canary, seen.objects.workload, hashes, existing)
  return (["target", "source", "apex"] as const).flatMap(role => {
    const [before, after] = [existing[role], wanted[role] as unknown as KubeObject | undefined]
    if (!after || (before && isSame(before, after))) return []
    const send = () =>
      before ? client.replace(serviceResource, after) : orThere(client.create(serviceResource, after))
    return [() => ({ resource: serviceResource, send: send() })]
  })
}

function routeWrites({ client }: World, seen: Seen, { weight, isMirrored }: Split): (() => Write)[] {
  const { router, sight, objects } = seen
  if (!router) return []
  const resource = { ...router.kind, namespaced: true }
  const context = contextOf(sight.canary, sight.services, sight.canary.status?.run, sight.component)
  const before = objects.route
  const after = router.routed(context, before, { weight, isMirrored }) as unknown as KubeObject
  if (before && isSame(before, after)) return []
  return [
    () => ({ resource, send: before ? client.replace(resource, after) : orThere(client.create(resource, after)) }),
  ]
}

function leaveWrites({ client }: World, { sight, router, context, objects }: Seen): (() => Write)[] {
  const left = leftOf(sight.canary, objects.services, router, context, objects.route)
  const { namespace } = sight.canary.metadata
  const resourceOf = (object: RouteObject): Resource =>
    object.kind === "Service" ? serviceResource : { ...router!.kind, namespaced: true }
  const writes = [...left].flatMap(([before, after]) => {
    const resource = resourceOf(before)
    if (after && isSame(before, after)) return []
    const { name, uid } = before.metadata as { name: string; uid?: string }
    const send = () =>
      after
        ? client.replace(resource, after as unknown as KubeObject)
        : orGone(client.delete(resource, { name, namespace }, { uid: uid ?? "" }))
    return [{ before, write: () => ({ resource, send: send() }) }]
  })
  // The route comes first, and alone: what serves it must have let go of Services before these go.
  const ofRoute = writes.filter(({ before }) => before.kind !== "Service")
  return (ofRoute.length > 0 ? ofRoute : writes).map(({ write }) => write)
}

/** Would a policy hold the workload? A dry run changes its template and shows what the server makes of it. */
async function tryPolicy({ client }: World, seen: Seen, { now, memory }: Look<Canary, Memory>): Promise<Done> {
  const { name, namespace, resourceVersion } = seen.objects.workload!.metadata
  const body = {
    metadata: { resourceVersion },
    spec: { template: { metadata: { annotations: { "autoimagemanager.io/tried": "policy" } } } },
  }
  const outcome = await outcomeOf(
    client.patch(deployments, { name, namespace }, { type: "merge", body }, { dryRun: true }),
  )
  const again = settled(outcome, now)
  if (again) return again
  const labels = (outcome as { object: KubeObject }).object.metadata.labels ?? {}
  const isHeld = labels[heldMark] === canaryHolder
  memory.tries++
  // A server learns of a Canary by its own watch, in a moment.
  if (isHeld || memory.tries >= tries) memory.policyHolds = isHeld
  return { lookAgainAt: now + (memory.policyHolds === undefined ? soonMs : 0) }
}
