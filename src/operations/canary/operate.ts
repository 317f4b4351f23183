import {
  approvedAnnotation,
  approvedByAnnotation,
  pausedAnnotation,
  retryAnnotation,
  rollbackAnnotation,
} from "#api/v1alpha1/canary/annotations.ts"
import { awaitedApprovals } from "#core/canary/gates.ts"
import { formatApproval } from "#core/fleet/approval.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import type { Decided, Patch } from "../change.ts"
import { Failure } from "../refusal.ts"
import type { SeenCanary } from "./progress.ts"

type DecidedRun = Decided<SeenCanary>

const titleOf = ({ metadata }: SeenCanary) => `canary/${metadata.name}`
const annotated = (annotations: Record<string, string | null>): Patch => ({ metadata: { annotations } })
const says = (words: string) => () => words

const reviews: Resource = {
  group: "authentication.k8s.io",
  version: "v1",
  plural: "selfsubjectreviews",
  kind: "SelfSubjectReview",
  namespaced: false,
}

/** The name that the server has for this user: an approval with another one is refused. */
export async function userOf(client: Client): Promise<string> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: reviews.kind, metadata: { name: "" } }
  const answer = (await client.create(reviews, review as KubeObject)) as unknown as {
    status?: { userInfo?: { username?: string } }
  }
  return answer.status?.userInfo?.username ?? ""
}

export function approveRun(canary: SeenCanary, user: string): DecidedRun {
  const { status, metadata } = canary
  const title = titleOf(canary)
  const run = status?.run
  if (!run) throw new Failure(`${title} has no run, so there is nothing to approve`)
  const tiers = awaitedApprovals(run)
  if (tiers.length === 0) throw new Failure(`run ${run.id} of ${title} does not wait for approval now`)
  const text = formatApproval({ operation: run.id, tiers, checksum: run.checksum })
  const what = `${tiers.join(", ")} of ${title}, run ${run.id} (to ${run.target.images.join(", ")})`
  if (metadata.annotations?.[approvedAnnotation] === text) return { done: `already approved: ${what}`, next: says("") }
  const patch = annotated({ [approvedAnnotation]: text, [approvedByAnnotation]: user })
  return { patch, done: `approved: ${what}, by ${user}`, next: says("The run goes on.") }
}

export function pauseRun(canary: SeenCanary, program: string): DecidedRun {
  const { status, metadata, spec } = canary
  const title = titleOf(canary)
  const run = status?.run
  const resume = `${program} resume ${title}`
  if (!run) {
    const next = says(`It has no run. A change of its target waits until ${resume}`)
    return spec.suspend
      ? { done: `already suspended: ${title}`, next }
      : { patch: { spec: { suspend: true } }, done: `suspended: ${title}`, next }
  }
  const next = says(`Weight and pods stay as they are until ${resume}`)
  const what = `${title}, run ${run.id}`
  if (metadata.annotations?.[pausedAnnotation] === run.id) return { done: `already paused: ${what}`, next }
  return { patch: annotated({ [pausedAnnotation]: run.id }), done: `paused: ${what}`, next }
}

export function resumeRun(canary: SeenCanary): DecidedRun {
  const { status, metadata, spec } = canary
  const title = titleOf(canary)
  const { annotations = {} } = metadata
  const last = status?.run ?? status?.history?.[0]
  const isRetry = status?.phase === "Failed" && last !== undefined
  const wasHeld = annotations[pausedAnnotation] !== undefined || spec.suspend
  const isAsked = isRetry && annotations[retryAnnotation] === last.id
  if (isAsked && !wasHeld) return { done: `already resumed: ${title}, run ${last.id} once more`, next: says("") }
  if (!isRetry && !wasHeld) return { done: `not paused: ${title}`, next: says("") }
  const patch: Patch = {
    ...(spec.suspend && { spec: { suspend: false } }),
    ...annotated({
      ...(annotations[pausedAnnotation] !== undefined && { [pausedAnnotation]: null }),
      ...(isRetry && { [retryAnnotation]: last.id }),
    }),
  }
  return isRetry
    ? {
        patch,
        done: `resumed: ${title}, run ${last.id} once more`,
        next: says("The same template is tried again, as a new run."),
      }
    : { patch, done: `resumed: ${title}`, next: says("") }
}

export function rollbackRun(canary: SeenCanary, wanted: string | undefined, program: string): DecidedRun {
  const { status, metadata, spec } = canary
  const title = titleOf(canary)
  const run = status?.run
  const { kind, name: target } = spec.targetRef
  const last = status?.history?.[0]
  // A revision of a component is a workload of its own, whose template no person changes.
  const isComponent = spec.provider === "oam"
  if (!run)
    throw new Failure(
      last?.result === "Promoted"
        ? `${title}: run ${last.id} was promoted, and ${
            isComponent
              ? `workload ${last.source.workload ?? last.source.hash} of the revision before has no pods any more: point the component, or targetRef, at that revision`
              : `the pods of before are gone: write the earlier template to ${kind} ${target}`
          }, and a run proves it`
        : `${title} has no run, so there is nothing to roll back`,
    )
  if (wanted !== undefined && wanted !== run.id) throw new Failure(`${title}: its run is ${run.id}, and not ${wanted}`)
  const next = says(
    [
      `Requests go back to ${run.source.images.join(", ")}. ${
        isComponent
          ? `${kind} ${target} stays without pods: give the component another revision`
          : `The template of ${kind} ${target} stays: change it`
      }, or try it again with ${program} resume ${title}`,
      ...(spec.suspend ? [`spec.suspend is true and stops this too, until ${program} resume ${title}`] : []),
    ].join("\n"),
  )
  const what = `run ${run.id} of ${title}`
  if (metadata.annotations?.[rollbackAnnotation] === run.id) return { done: `already rolling back: ${what}`, next }
  return { patch: annotated({ [rollbackAnnotation]: run.id }), done: `rolling back: ${what}`, next }
}
