import { createHash } from "node:crypto"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { approval } from "#operations/approve.ts"
import { approveRun, pauseRun, resumeRun, rollbackRun, userOf } from "#operations/canary/operate.ts"
import type { SeenCanary } from "#operations/canary/progress.ts"
import { setRunImage } from "#operations/canary/set-image.ts"
import { changeObject, type Decided } from "#operations/change.ts"
import { fetchAll } from "#operations/fetch.ts"
import { canaries, serviceImages } from "#operations/kinds.ts"
import { pause } from "#operations/pause.ts"
import { Failure, UsageError } from "#operations/refusal.ts"
import { resume } from "#operations/resume.ts"
import { rollback } from "#operations/rollback.ts"
import type { Seen } from "#operations/rollout.ts"
import { setImage } from "#operations/set-image.ts"
import { parseSettings } from "#operations/settings.ts"
import { tierWord } from "#operations/words.ts"
import type { Client } from "#runtime/client/client.ts"
import { KubeError } from "#runtime/client/errors.ts"
import type { KubeObject, ObjectName } from "#runtime/resource.ts"
import { foresee } from "./foresee.ts"
import { pageOf } from "./kinds/all.ts"
import type { KindPage } from "./kinds/kind.ts"
import type { LookDeps } from "./look.ts"
import { shown, shownLines } from "./text.ts"
import type { Viewer } from "./viewer.ts"
import type { Acted, ActionRequest, Preview } from "./wire.ts"

/** The field manager of every write of the dashboard. */
const fieldManager = "aim-dashboard"

type Deps = LookDeps & { viewer: Viewer; program: string; now(): number }
type Outcome = { lines: string[]; next: string[]; isChange: boolean; object?: KubeObject }
/** A preview without its plan, and the object as the server would store it. */
type Tried = { preview: Preview; object?: KubeObject | undefined }

/** What the action would do, asked of the server as a dry run, and what the planner would do after it. */
export const preview = async (request: ActionRequest, deps: Deps): Promise<Preview> =>
  withPlan(await tried(request, deps), deps)

async function withPlan({ preview, object }: Tried, deps: Deps): Promise<Preview> {
  if (!object || !preview.isChange) return preview
  const [before] = await fetchAll(deps.viewer.client, serviceImages, [object.metadata.name])
  const [was, after] = [before, object] as unknown as [ServiceImage, ServiceImage]
  return { ...preview, plan: await foresee(deps.viewer, { before: was, after }, deps) }
}

async function tried(request: ActionRequest, deps: Deps): Promise<Tried> {
  const command = commandOf(request, deps.program)
  const base = { plan: [], command }
  try {
    const { lines, next, isChange, object } = await perform(request, deps, true)
    const dryRun = { isAccepted: true, message: isChange ? "The server would accept it." : "Nothing would be written." }
    const decision = decisionOf(lines, next)
    return { preview: { ...base, isPossible: true, lines, next, isChange, dryRun, decision }, object }
  } catch (error) {
    if (error instanceof KubeError && error.kind !== "NotFound") {
      const lines = shownLines(error.said)
      const dryRun = { isAccepted: false, message: shown(error.said, 2048) }
      return { preview: { ...base, isPossible: false, lines, next: [], isChange: false, dryRun, decision: "" } }
    }
    if (!(error instanceof Failure || error instanceof UsageError)) throw error
    const lines = shownLines(error.message)
    const field = fieldOf(request, error)
    const dryRun = { isAccepted: false, message: "It was not sent to the server." }
    const refused = { ...base, isPossible: false, lines, next: [], isChange: false, dryRun, decision: "" }
    return { preview: { ...refused, ...(field && { field }) } }
  }
}

/** Does what was previewed. A decision that reads differently by now is shown instead, and nothing is written. */
export async function act(request: ActionRequest & { decision: string }, deps: Deps): Promise<Acted> {
  const again = await tried(request, deps)
  const { preview: now } = again
  if (now.decision !== request.decision || !now.isPossible)
    return { isDone: false, moved: [...now.lines, ...now.next], preview: await withPlan(again, deps) }
  const { lines, next } = await perform(request, deps, false)
  return { isDone: true, lines, next, command: now.command }
}

/** Counts move all the time; what is done and to what does not. */
const decisionOf = (lines: readonly string[], next: readonly string[]) =>
  createHash("sha256")
    .update(JSON.stringify([lines, next]).replaceAll(/\d+ objects?|\d+\/\d+/g, "#"))
    .digest("base64url")

const fieldOf = ({ action, settings }: ActionRequest, error: Error): Preview["field"] => {
  if (action === "approve") return "tiers"
  if (action !== "set-image") return undefined
  return error.message.includes("--supersede") && settings ? "supersede" : "settings"
}

function commandOf(request: ActionRequest, program: string): string {
  const page = pageFor(request)
  const words = request.action === "set-image" ? (request.settings ?? []) : (request.tiers ?? []).map(tierWord)
  return shown(
    [
      ...[program, request.action, `${page.short}/${request.name}`],
      ...words,
      ...(request.supersede && request.action === "set-image" ? ["--supersede"] : []),
      ...(request.namespace ? ["-n", request.namespace] : []),
    ].join(" "),
    4096,
  )
}

function pageFor({ kind, action }: ActionRequest): KindPage {
  const page = pageOf(kind)
  if (!page?.actions.includes(action)) throw new UsageError(`${shown(kind, 63)} has no action ${shown(action, 32)}`)
  return page
}

async function perform(request: ActionRequest, { viewer, program }: Deps, dryRun: boolean): Promise<Outcome> {
  const page = pageFor(request)
  const { client } = viewer
  const { name, namespace } = request
  const at = { resource: page.resource, name, ...(page.resource.namespaced && { namespace }) }
  const own = named(client)
  if (page.resource !== canaries) {
    const decided = await changeObject(at, rolloutAction(request, program), { client: own, dryRun })
    return { ...outcomeOf(decided), object: decided.object as KubeObject }
  }
  if (request.action === "set-image") {
    const words = request.settings ?? []
    if (words.length === 0) throw new UsageError("write an image")
    const [canary] = await fetchAll<SeenCanary & KubeObject>(client, canaries, [name], { namespace })
    const typed = `canary/${name} ${words.join(" ")}`
    const set = await setRunImage(own, canary!, {
      words,
      typed,
      supersede: request.supersede === true,
      program,
      dryRun,
    })
    return { lines: shownLines(set.lines.join("\n")), next: shownLines(set.next), isChange: set.isChanged }
  }
  const user = request.action === "approve" ? await userOf(client) : ""
  const decided = await changeObject(
    at,
    (canary: SeenCanary & KubeObject) => runAction(request, canary, user, program),
    {
      client: own,
      dryRun,
    },
  )
  return outcomeOf<SeenCanary>(decided)
}

function rolloutAction(request: ActionRequest, program: string): (object: Seen) => Decided {
  const { action, tiers = [], settings: words = [], supersede = false } = request
  if (action === "approve") return object => approval(object, [...new Set(tiers)], program)
  if (action === "pause") return object => pause(object, program)
  if (action === "resume") return object => resume(object, program)
  if (action === "rollback") return object => rollback(object, undefined, program)
  if (words.length === 0) throw new UsageError("write an image")
  const wanted = { settings: parseSettings(words), supersede, words }
  return object => setImage(object, wanted, program)
}

function runAction({ action }: ActionRequest, canary: SeenCanary, user: string, program: string): Decided<SeenCanary> {
  if (action === "approve") return approveRun(canary, user)
  if (action === "pause") return pauseRun(canary, program)
  return action === "resume" ? resumeRun(canary) : rollbackRun(canary, undefined, program)
}

const outcomeOf = <O>({ patch, done, next, object }: Decided<O> & { object: O }): Outcome => ({
  lines: shownLines(done),
  next: shownLines(next(object)),
  isChange: patch !== undefined,
})

/** Writes under the dashboard's own field manager. */
const named = (client: Client): Client => ({
  ...client,
  patch: <T extends KubeObject>(...[resource, name, patch, options]: Parameters<Client["patch"]>) =>
    client.patch<T>(resource, name as ObjectName, patch, { ...options, fieldManager }),
})
