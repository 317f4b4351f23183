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
import { type Answer, connectionOf, Failure, type Input, type World } from "../command.ts"
import { canaries, kindNamed, parseNamed } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { changeObject, doneWords, dryRunOf, nextWords, type Patch } from "../operate.ts"
import type { SeenCanary } from "./progress.ts"

/** `canary/NAME` as the first word of a command that else is about a ServiceImage. */
export function canaryIn([first = ""]: readonly string[]): string | undefined {
  return kindNamed(first.split("/")[0]!) === canaries ? parseNamed(first, canaries).name : undefined
}

type Decided = { patch?: Patch | undefined; done: string; next: string }
type Decide = (canary: SeenCanary, title: string, program: string) => Decided

async function operate(
  name: string,
  input: Input,
  world: World,
  decideBy: (client: Client) => Promise<Decide>,
): Promise<Answer> {
  const dryRun = dryRunOf(input)
  const namespace = await namespaceOf(input, world)
  const title = `canary/${name}`
  const client = await world.connect(connectionOf(input))
  try {
    const decide = await decideBy(client)
    const { done, next } = await changeObject(
      { resource: canaries, name, namespace },
      (object: KubeObject) => decide(object as unknown as SeenCanary, title, world.program),
      { client, dryRun },
    )
    return { text: `${doneWords(done, dryRun)}\n`, exitCode: 0, next: nextWords(next, dryRun) }
  } finally {
    client.close()
  }
}

const annotated = (annotations: Record<string, string | null>): Patch => ({ metadata: { annotations } })

const reviews: Resource = {
  group: "authentication.k8s.io",
  version: "v1",
  plural: "selfsubjectreviews",
  kind: "SelfSubjectReview",
  namespaced: false,
}

/** The name that the server has for this user: an approval with another one is refused. */
async function userOf(client: Client): Promise<string> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: reviews.kind, metadata: { name: "" } }
  const answer = (await client.create(reviews, review as KubeObject)) as unknown as {
    status?: { userInfo?: { username?: string } }
  }
  return answer.status?.userInfo?.username ?? ""
}

export const approveCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, async client => {
    const user = await userOf(client)
    return ({ status, metadata }, title) => {
      const run = status?.run
      if (!run) throw new Failure(`${title} has no run, so there is nothing to approve`)
      const tiers = awaitedApprovals(run)
      if (tiers.length === 0) throw new Failure(`run ${run.id} of ${title} does not wait for approval now`)
      const text = formatApproval({ operation: run.id, tiers, checksum: run.checksum })
      const what = `${tiers.join(", ")} of ${title}, run ${run.id} (to ${run.target.images.join(", ")})`
      if (metadata.annotations?.[approvedAnnotation] === text) return { done: `already approved: ${what}`, next: "" }
      const patch = annotated({ [approvedAnnotation]: text, [approvedByAnnotation]: user })
      return { patch, done: `approved: ${what}, by ${user}`, next: "The run goes on." }
    }
  })

export const pauseCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, async () => ({ status, metadata, spec }, title, program) => {
    const run = status?.run
    const resume = `${program} resume ${title}`
    if (!run) {
      const next = `It has no run. A change of its target waits until ${resume}`
      return spec.suspend
        ? { done: `already suspended: ${title}`, next }
        : { patch: { spec: { suspend: true } }, done: `suspended: ${title}`, next }
    }
    const next = `Weight and pods stay as they are until ${resume}`
    const what = `${title}, run ${run.id}`
    if (metadata.annotations?.[pausedAnnotation] === run.id) return { done: `already paused: ${what}`, next }
    return { patch: annotated({ [pausedAnnotation]: run.id }), done: `paused: ${what}`, next }
  })

export const resumeCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, async () => ({ status, metadata, spec }, title) => {
    const { annotations = {} } = metadata
    const last = status?.run ?? status?.history?.[0]
    const isRetry = status?.phase === "Failed" && last !== undefined
    const wasHeld = annotations[pausedAnnotation] !== undefined || spec.suspend
    const isAsked = isRetry && annotations[retryAnnotation] === last.id
    if (isAsked && !wasHeld) return { done: `already resumed: ${title}, run ${last.id} once more`, next: "" }
    if (!isRetry && !wasHeld) return { done: `not paused: ${title}`, next: "" }
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
          next: "The same template is tried again, as a new run.",
        }
      : { patch, done: `resumed: ${title}`, next: "" }
  })

export const rollbackCanary = (name: string, input: Input, world: World): Promise<Answer> =>
  operate(name, input, world, async () => ({ status, metadata, spec }, title, program) => {
    const run = status?.run
    const wanted = input.options.operation as string | undefined
    const { kind, name: target } = spec.targetRef
    if (!run)
      throw new Failure(
        status?.history?.[0]?.result === "Promoted"
          ? `${title}: run ${status.history[0].id} was promoted, and the pods of before are gone: write the earlier template to ${kind} ${target}, and a run proves it`
          : `${title} has no run, so there is nothing to roll back`,
      )
    if (wanted !== undefined && wanted !== run.id)
      throw new Failure(`${title}: its run is ${run.id}, and not ${wanted}`)
    const next = [
      `Requests go back to ${run.source.images.join(", ")}. The template of ${kind} ${target} stays: change it, or try it again with ${program} resume ${title}`,
      ...(spec.suspend ? [`spec.suspend is true and stops this too, until ${program} resume ${title}`] : []),
    ].join("\n")
    const what = `run ${run.id} of ${title}`
    if (metadata.annotations?.[rollbackAnnotation] === run.id) return { done: `already rolling back: ${what}`, next }
    return { patch: annotated({ [rollbackAnnotation]: run.id }), done: `rolling back: ${what}`, next }
  })
