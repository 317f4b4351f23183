import {
  AlternateImageSource,
  type AlternateImageSourceStatus,
  maxCharactersInAll,
  maxTargetsAvailable,
} from "#api/v1alpha1/alternateimagesource/index.ts"
import { largest } from "./largest.ts"

/** Of the characters that a target has on average; every other text is as short as it can be while staying distinct. */
const charactersEach = maxCharactersInAll / maxTargetsAvailable

/** The largest status of an AlternateImageSource that both the bounds and the rules over several fields admit. */
export function largestAlternateStatus(): AlternateImageSourceStatus {
  const status = largest(AlternateImageSource.schema.properties!.status!) as AlternateImageSourceStatus
  for (const target of status.targetsAvailable) {
    const { switches = [], incident = {} as never, type } = target
    const labels = Object.keys(incident.matchLabels ?? {}).map((_, index) => [`a${index}`, "zzzz"])
    // As many switches as there are targets, so one each.
    target.switches = [{ ...switches[0]!, oldImage: "z".repeat(100), newImage: "z".repeat(100) }]
    incident.bad = incident.bad.map(() => "z".repeat(8))
    incident.matchLabels = Object.fromEntries(labels)
    incident.image = incident.failing = incident.working = target.name = type.group = "z".repeat(10)
    incident.pin = "z".repeat(8)
    target.container = type.kind = "z".repeat(8)
    target.currentRepository = ""
    target.currentRepository = "z".repeat(charactersEach - characters(target))
  }
  return status
}

/** Of all that is neither a number, a time, a word of ours nor a uid. */
function characters({
  uid: _,
  switches = [],
  incident,
  ...target
}: AlternateImageSourceStatus["targetsAvailable"][number]) {
  const { image, failing, working, pin, bad, matchLabels = {} } = incident!
  const images = switches.map(({ oldImage, newImage }) => [oldImage, newImage])
  return [
    Object.values({ ...target, type: "" }),
    Object.values(target.type),
    images,
    image,
    failing,
    working,
    pin,
    bad,
    Object.entries(matchLabels),
  ]
    .flat(3)
    .join("").length
}
