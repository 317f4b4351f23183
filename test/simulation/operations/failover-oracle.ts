import type { Json } from "#cluster-sim/index.ts"
import type { Run } from "#test/support/record.ts"

// What an AlternateImageSource promises in the end, recounted from what was committed and from what registries served,
// with no code of the product: pods that can run do, and the status lists what exists.

export type Watched = {
  run: Run
  /** At this revision nothing moved any more; these images could be pulled then. In the end all can. */
  restedAt: number
  servedAtRest: ReadonlySet<string>
}

/** Everything that is wrong, each with the rule it breaks. */
export function wrongsOf({ run, restedAt, servedAtRest }: Watched): string[] {
  const [rest, end] = [worldAt(run, restedAt), worldAt(run, Number.POSITIVE_INFINITY)]
  return [
    ...waiting(rest, image => servedAtRest.has(image)).map(what => `at rest, ${what}`),
    ...statuses(rest).map(what => `at rest, ${what}`),
    ...waiting(end, () => true).map(what => `in the end, ${what}`),
    ...statuses(end).map(what => `in the end, ${what}`),
  ]
}

type World = { source: Json | undefined; workloads: Json[]; pods: Json[] }

function worldAt({ commits }: Run, until: number): World {
  const live = new Map<string, Json>()
  for (const { object, type, revision, place } of commits) {
    if (revision > until) break
    const id = `${place} ${object.metadata.namespace}/${object.metadata.name}`
    if (type === "DELETED") live.delete(id)
    else live.set(id, object)
  }
  const all = (kind: string) =>
    [...live.values()].filter(each => each.kind === kind && !each.metadata.deletionTimestamp)
  return { source: all("AlternateImageSource")[0], workloads: all("Deployment"), pods: all("Pod") }
}

const imageOf = ({ spec }: Json): string => (spec.template?.spec ?? spec).containers[0].image
const repositoryOf = (image: string) => image.slice(0, image.lastIndexOf(":"))
const tagOf = (image: string) => image.slice(image.lastIndexOf(":") + 1)
const podsOf = ({ pods }: World, { metadata }: Json) => pods.filter(pod => pod.metadata.labels?.app === metadata.name)
const repositoriesOf = (source: Json): string[] =>
  source.spec.imageSourceReplacements.flatMap((each: Json) => each.equivalentRepositories)

/** A pod that does not run though its image can be had from where it may come from. */
function waiting(world: World, isServed: (image: string) => boolean): string[] {
  const { source, workloads } = world
  return workloads.flatMap(workload => {
    const said = imageOf(workload)
    const sets = source ? repositoriesOf(source) : []
    const isLookedAfter = sets.includes(repositoryOf(said))
    // The template changes for good: what was tried once in an incident is not tried again.
    if (isLookedAfter && source?.spec.policy?.apply === "Template" && !isServed(said)) return []
    const places = isLookedAfter ? sets.map(repository => `${repository}:${tagOf(said)}`) : [said]
    if (!places.some(isServed)) return []
    const mine = podsOf(world, workload).filter(pod => isCurrent(pod, workload))
    const idle = mine.filter(({ status }) => status?.phase !== "Running")
    const problems = idle.map(
      ({ metadata, spec }) => `stuck: pod ${metadata.name} waits for ${spec.containers[0].image}`,
    )
    const { replicas } = workload.spec
    return mine.length < replicas
      ? [...problems, `stuck: ${workload.metadata.name} has ${mine.length} of ${replicas} pods`]
      : problems
  })
}

/** Made from the template as it is; one of an older template may wait until the others run. */
const isCurrent = (pod: Json, workload: Json) => tagOf(imageOf(pod)) === tagOf(imageOf(workload))

/** What a pod that was sent elsewhere had before. A pod of an older template may run from anywhere. */
const wasBefore = ({ metadata, spec }: Json): string | undefined => {
  const decision = metadata.annotations?.["autoimagemanager.io/last-decision"]
  return decision && JSON.parse(decision).was?.[spec.containers[0].name]
}

/** The status lists the existing workloads, and their incidents. */
function statuses(world: World): string[] {
  const { source, workloads } = world
  if (!source?.status) return source ? ["status: none was written"] : []
  const mine = workloads.filter(workload => repositoriesOf(source).includes(repositoryOf(imageOf(workload))))
  const told: Json[] = source.status.targetsAvailable
  const problems: string[] = []
  const nameOf = ({ type, name, uid }: Json) => `${type.kind}/${name} ${uid}`
  const expected = mine.map(({ metadata }) => `deployment/${metadata.name} ${metadata.uid}`)
  for (const name of told.map(nameOf))
    if (!expected.includes(name)) problems.push(`target: ${name} is told and not there`)
  for (const name of expected) if (!told.map(nameOf).includes(name)) problems.push(`target: ${name} is not told`)
  if (source.spec.policy?.apply === "Template") return problems
  for (const workload of mine) {
    const { incident } = told.find(({ uid }) => uid === workload.metadata.uid) ?? {}
    const said = imageOf(workload)
    const isElsewhere = podsOf(world, workload).some(pod => imageOf(pod) !== said && wasBefore(pod) === said)
    if (incident && incident.image !== said)
      problems.push(`incident: ${workload.metadata.name} says ${said}, the incident is about ${incident.image}`)
    // Where there are no pods, the incident says where new ones are sent.
    const hasPods = podsOf(world, workload).length > 0
    if (incident?.working && hasPods && !isElsewhere)
      problems.push(`switched: ${workload.metadata.name} is told to run from ${incident.working}, and no pod does`)
    if (isElsewhere && !incident?.working)
      problems.push(`switched: ${workload.metadata.name} runs from elsewhere than ${said}, and that is not told`)
  }
  return problems
}
