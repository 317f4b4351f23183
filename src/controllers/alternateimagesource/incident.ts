import type { Incident, TargetAvailable } from "#api/v1alpha1/alternateimagesource/index.ts"
import { imageAt, repositoryTextOf, sameSource } from "#core/image/equivalent.ts"
import { isPinOf, pinned as withDigest } from "#core/image/reference.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { digestIn, distinct, type Group, type Repaired } from "./group.ts"

/** The open incident: from the status, if that is about the workload's present image, and from the pods themselves. */
export function incidentOf(group: Group, before: TargetAvailable | undefined): Incident | undefined {
  const told = toldIncident(group, before)
  const { repaired, image, workload } = group
  if (!repaired || repaired.to === image) return told
  const pin = digestIn(image) ? undefined : digestIn(repaired.to)
  const moved = { working: repositoryTextOf(repaired.to), ...(pin !== undefined && { pin }) }
  const bad = distinct([...(repaired.left?.keys() ?? [repaired.from])].map(repositoryTextOf))
  if (told) {
    const isNews = untold(group, before) === repaired
    return isNews ? { ...told, ...moved, bad: distinct([...told.bad, ...bad]) } : told
  }
  const last = lastSwitch(group, before)
  if (last?.reason === "SwitchedBack" && (parseInstant(last.time) ?? 0) >= repaired.at) return undefined
  return {
    since: formatInstant(repaired.at),
    reason: "Switched",
    image,
    failing: repositoryTextOf(image),
    ...moved,
    bad,
    attempts: 0,
    ...(workload.matchLabels && { matchLabels: workload.matchLabels }),
  }
}

function toldIncident(
  { image, workload, retargeted }: Group,
  before: TargetAvailable | undefined,
): Incident | undefined {
  const incident = before?.uid === workload.uid ? before.incident : undefined
  if (!incident || incident.image === image) return incident
  // We changed the workload ourselves: the incident continues from there.
  const sent = incident.working !== undefined && imageAt(incident.image, incident.working)
  const isTold = sent && (sent === image || isPinOf(image, sent))
  const isOurs = isTold || retargeted?.from === incident.image
  if (!isOurs) return undefined
  const { working: _, pin: __, ...rest } = incident
  return { ...rest, image, failing: repositoryTextOf(image), bad: distinct([...incident.bad, incident.failing]) }
}

/**
 * A repair that only its object records: the process that made it died, or lost the answer, before it wrote the status.
 */
export function untold(group: Group, before: TargetAvailable | undefined): Repaired | undefined {
  const { repaired, retargeted } = group
  const latest = repaired && (!retargeted || repaired.at > retargeted.at) ? repaired : retargeted
  const last = lastSwitch(group, before)
  const isTold = latest && last && (last.newImage === latest.to || (parseInstant(last.time) ?? 0) >= latest.at)
  return isTold ? undefined : latest
}

export const lastSwitch = ({ workload }: Group, before: TargetAvailable | undefined) =>
  before?.uid === workload.uid ? before.switches?.at(-1) : undefined

/** When the container was last sent to another repository. */
export function lastMoved(group: Group, before: TargetAvailable | undefined): Instant | undefined {
  const times = [untold(group, before)?.at, parseInstant(lastSwitch(group, before)?.time)]
  const known = times.filter(time => time !== undefined)
  return known.length > 0 ? Math.max(...known) : undefined
}

/** Where the pods are to pull from. If the workload was changed in this incident, it names that itself. */
export function homeOf({ working, bad, failing }: Incident): string | undefined {
  const isRetargeted = bad.length > 0 && !bad.some(each => sameSource(each, failing))
  return working ?? (isRetargeted ? failing : undefined)
}

/** The image of an incident at another repository, pinned to its digest where the policy wants that. */
export const sentTo = ({ image, pin }: Incident, repository: string) => {
  const to = imageAt(image, repository)
  return pin === undefined ? to : withDigest(to, pin)
}
