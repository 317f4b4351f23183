import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { explanationOf } from "#explain/plain.ts"
import type { Survey, Surveyed } from "#explain/serviceimage/survey.ts"
import { type Why as Answer, whyObject, whyRollout } from "#explain/serviceimage/why.ts"
import { fetchAll } from "#operations/fetch.ts"
import { serviceImages } from "#operations/kinds.ts"
import { Failure } from "#operations/refusal.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { pageOf } from "./kinds/all.ts"
import { followable, type LookDeps, looked, withFleet } from "./look.ts"
import { mayFollow } from "./rights.ts"
import { shown } from "./text.ts"
import type { Viewer } from "./viewer.ts"
import type { ObjectId, Why } from "./wire.ts"

type Deps = LookDeps & { now(): number; program: string }

/** `aim why` of a ServiceImage, from its plan. */
export const rolloutWhy = (surveyed: Surveyed, now: number, program: string): Why => {
  const { name } = surveyed.serviceImage.metadata
  // What only the passing of time changes would be another sentence every second; the page counts by itself.
  return told(whyRollout({ ...surveyed, plan: { ...surveyed.plan, lookAgainAt: undefined } }, now), {
    title: `si/${name}`,
    command: `${program} why si/${name}`,
  })
}

/** Answers about any object that a page shows, with the viewer's own rights. */
export async function why(viewer: Viewer, at: ObjectId, deps: Deps): Promise<Why> {
  const page = pageOf(at.kind)
  const { program } = deps
  const space = at.namespace ? ` -n ${at.namespace}` : ""
  if (page && page.resource !== serviceImages && page.view !== "workload") {
    const [object] = await fetchAll<KubeObject>(viewer.client, page.resource, [at.name], {
      namespace: at.namespace || undefined,
    })
    const { reason, message, meaning, since } = explanationOf(object!)
    const sentences = [message, meaning ?? ""].filter(Boolean)
    const title = `${page.short}/${at.name}`
    return told({ reason, sentences, since }, { title, command: `${program} why ${title}${space}` })
  }
  const rollouts = await rolloutsFor(viewer, page ? { name: at.name } : { kind: at.kind })
  const [first] = rollouts
  if (!first) throw new Failure(`no ServiceImage is about ${shown(at.kind, 63)} objects that you may see`)
  const { target } = first.spec
  const resource = await followable(viewer, target, deps)
  return withFleet(viewer, resource, deps, async fleet => {
    if (page) {
      const surveyed = await looked(fleet, at.name, deps.clock)
      return rolloutWhy(surveyed, deps.now(), program)
    }
    const [object] = await fetchAll<KubeObject>(viewer.client, resource, [at.name], {
      namespace: resource.namespaced ? at.namespace : undefined,
    })
    const all: Surveyed[] = []
    for (const { metadata } of rollouts) all.push(await looked(fleet, metadata.name, deps.clock))
    const survey: Survey = {
      now: deps.now(),
      rollouts: all,
      labelsOf: () => undefined,
      lacksGrant: () => false,
      podsMissing: undefined,
    }
    const kinded = { ...object!, kind: resource.kind, apiVersion: target.apiVersion }
    const title = `${resource.kind.toLowerCase()}/${at.name}`
    return told(whyObject(survey, { key: keyOf(object!.metadata), object: kinded }), {
      title: `${title}${space}`,
      command: `${program} why ${title}${space}`,
    })
  })
}

async function rolloutsFor(viewer: Viewer, which: { name: string } | { kind: string }): Promise<ServiceImage[]> {
  if (!(await mayFollow(viewer.client, serviceImages))) return []
  const all = (await fetchAll(viewer.client, serviceImages, [])) as unknown as ServiceImage[]
  if ("kind" in which) return all.filter(({ spec }) => spec.target.kind.toLowerCase() === which.kind.toLowerCase())
  const found = all.filter(({ metadata }) => metadata.name === which.name)
  if (found.length === 0) await fetchAll(viewer.client, serviceImages, [which.name]) // refuses, with the name that was meant
  return found
}

type Said = Pick<Answer, "sentences" | "since" | "serviceImage" | "tier" | "lastDecision"> & { reason: string }

function told(
  { reason, sentences, since, serviceImage, tier, lastDecision }: Said,
  of: Pick<Why, "title" | "command">,
): Why {
  return {
    title: shown(of.title),
    command: shown(of.command),
    reason: shown(reason, 64),
    sentences: sentences.map(each => shown(each, 2048)),
    ...(since !== undefined && { since }),
    ...(serviceImage !== undefined && { serviceImage }),
    ...(tier && { tier }),
    ...(lastDecision && {
      lastDecision: {
        at: lastDecision.at,
        by: shown(lastDecision.by),
        operation: shown(lastDecision.operation, 64),
        reason: shown(lastDecision.reason, 64),
        from: shown(lastDecision.from),
        to: shown(lastDecision.to),
      },
    }),
    missing: [],
  }
}
