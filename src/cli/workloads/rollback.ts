import { strategyAnnotation } from "#core/in-place/names.ts"
import { changeOf, imagesOf } from "#core/in-place/template.ts"
import {
  isKept,
  type Revision,
  readWorkload,
  revisionBefore,
  revisionsOf,
  type Sight,
  typed,
} from "#explain/workloads/facts.ts"
import { wayBack } from "#explain/workloads/way-back.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { type Answer, connectionOf, Failure, type Input, UsageError, type World } from "../command.ts"
import { timeoutOf, waitUntilOver } from "../commands/wait.ts"
import { shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { doneWords, dryRunOf, nextWords } from "../operate.ts"
import { imageWords } from "../render/workload.ts"
import { lookAtWorkload } from "./look.ts"
import { changes } from "./wait.ts"
import type { Workloads } from "./words.ts"

type Target = { resource: Resource; name: string; namespace: string }

/** `aim rollback deploy/web`: as `kubectl rollout undo`, which refuses while a Deployment is paused, and so while it is held. */
export async function rollbackWorkload(input: Input, world: World, { resource, names }: Workloads): Promise<Answer> {
  const [name] = names
  if (name === undefined) throw new UsageError(`which one? Write ${shortOf(resource)}/NAME`)
  if (input.options.operation !== undefined)
    throw new UsageError("--operation is for si/NAME: of a workload, --to-revision names what to go back to")
  const wanted = revisionIn(input)
  const dryRun = dryRunOf(input)
  const timeoutMs = timeoutOf(input)
  const target = { resource, name, namespace: await namespaceOf(input, world) }
  const client = await world.connect(connectionOf(input))
  try {
    const done = await setTemplate(client, world, target, { wanted, dryRun })
    const title = `${shortOf(resource)}/${name}`
    const what = `${title} to revision ${done.revision.number} (${imageWords(imagesOf(done.revision.template), true)})`
    const text = done.written
      ? `${doneWords(`rolling back: ${what}`, dryRun)}\n`
      : `${title} has the template of revision ${done.revision.number} already\n`
    const next = done.written
      ? nextWords(whatIsNext(done.sight, done.written, done.revision, world.program), dryRun)
      : undefined
    if (!input.options.wait || dryRun) return { text, exitCode: 0, ...(next !== undefined && { next }) }
    await world.write(text)
    if (next !== undefined) world.say(next)
    // Also where nothing had to be written: the template is there, and the pods may not be.
    return await waitUntilOver([name], { client, world, timeoutMs, of: changes(resource, target.namespace) })
  } finally {
    client.close()
  }
}

function revisionIn({ options }: Input): number | undefined {
  const given = options.toRevision as string | undefined
  if (given === undefined) return undefined
  if (!/^[1-9]\d{0,15}$/.test(given))
    throw new UsageError(`--to-revision: ${given} is not the number of a revision: aim history lists them`)
  return Number(given)
}

type Done = { sight: Sight; revision: Revision; written: KubeObject | undefined }

const attempts = 10

/** Writes the template of a revision, on condition of the version that was read. Only the template: as it was then. */
async function setTemplate(
  client: Client,
  world: World,
  target: Target,
  { wanted, dryRun }: { wanted: number | undefined; dryRun: boolean },
): Promise<Done> {
  for (let attempt = 1; ; attempt++) {
    const sight = await lookAtWorkload(client, world, target, false)
    const revision = choose(sight, wanted)
    if (revision.isPresent) return { sight, revision, written: undefined }
    const { resourceVersion } = sight.workload.metadata
    const body = [
      { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
      { op: "replace", path: "/spec/template", value: revision.template },
    ]
    try {
      const written = await client.patch<KubeObject>(target.resource, target, { type: "json", body }, { dryRun })
      return { sight, revision, written: { ...written, kind: target.resource.kind } }
    } catch (error) {
      if (!isFailure(error, "Conflict")) throw error
      if (attempt === attempts)
        throw new Failure(
          `${typed({ ...target, kind: target.resource.kind })} kept changing; nothing was changed, try again`,
        )
    }
  }
}

/** The revision of that number, or one that pods have proven. */
function choose(sight: Sight, wanted: number | undefined): Revision {
  const title = typed({ kind: sight.workload.kind!, name: sight.workload.metadata.name })
  if (wanted === undefined) return chooseProven(sight, title)
  const revisions = revisionsOf(sight)
  const found = revisions.find(({ number }) => number === wanted)
  if (found) return found
  const known = revisions.map(({ number }) => number).join(", ")
  throw new Failure(`${title} has no revision ${wanted}: there are ${known || "none"}`)
}

function chooseProven(sight: Sight, title: string): Revision {
  const { to, failed } = wayBack(sight)
  if (to) return to
  const [last] = failed
  const hint = last
    ? `: an update to revision ${last.number} failed, and only --to-revision ${last.number} goes there`
    : ""
  throw new Failure(`${title} has no earlier revision to go back to${hint}`)
}

/** The server's answer shows whether it is held; whether the change can go in place is decided as the controller does. */
function whatIsNext(sight: Sight, written: KubeObject, { template }: Revision, program: string): string {
  const workload = readWorkload(written)
  const { kind, isPaused, namespace, name, annotations } = workload
  const follow = `To follow it: ${program} status ${typed({ kind, name })} -n ${namespace} -w`
  if (!isKept(workload) && isPaused)
    return `Its owner has paused it: pods stay as they are until kubectl rollout resume ${kind.toLowerCase()}/${name} -n ${namespace}`
  const before = revisionBefore(revisionsOf({ ...sight, workload: written }))
  const change = before ? changeOf(before.template, template) : undefined
  if (!isKept(workload)) return `The ${kind} controller replaces the pods.\n${follow}`
  const isRolling = kind === "Deployment" && revisionsOf(sight).filter(({ pods }) => pods.length > 0).length > 1
  if (isRolling)
    return `A rolling update is under way, and goes back as one: the ${kind} controller replaces the pods.\n${follow}`
  if (change?.is !== "NotInPlace")
    return `In place: the pods stay, and containers with another image restart.\n${follow}`
  const isOnly = annotations[strategyAnnotation] === "InPlaceOnly"
  return isOnly
    ? `It cannot go in place (${change.path}: ${change.why}), and stays held until aim release ${typed({ kind, name })} -n ${namespace}`
    : `It cannot go in place (${change.path}: ${change.why}): the ${kind} controller replaces the pods.\n${follow}`
}
