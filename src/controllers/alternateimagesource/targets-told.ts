import {
  maxCharactersInAll,
  maxSwitches,
  maxSwitchesInAll,
  maxTargetsAvailable,
  type Switch,
  type TargetAvailable,
} from "#api/v1alpha1/alternateimagesource/index.ts"

/**
 * The entries that fit into a status: the first of them, each with its newest switches. Pass those in trouble first;
 * the rest is dropped. Old switches are dropped before any target.
 */
export function targetsTold(targets: readonly TargetAvailable[]): TargetAvailable[] {
  let characters = maxCharactersInAll
  let switchesLeft = maxSwitchesInAll
  const fitting = targets.slice(0, maxTargetsAvailable).filter(target => {
    const size = charactersOf(target)
    if (size > characters) return false
    characters -= size
    return true
  })
  return fitting.map(target => {
    const kept: Switch[] = []
    for (const each of (target.switches ?? []).slice(-maxSwitches).reverse()) {
      const size = each.oldImage.length + each.newImage.length
      if (switchesLeft === 0 || size > characters) break
      switchesLeft -= 1
      characters -= size
      kept.unshift(each)
    }
    return kept.length === (target.switches?.length ?? 0) ? target : { ...target, switches: kept }
  })
}

/** Without switches. */
function charactersOf({ container, currentRepository, name, type, incident }: TargetAvailable): number {
  const { image = "", failing = "", working = "", pin = "", bad = [], matchLabels = {} } = incident ?? {}
  const texts = [container, currentRepository, name, type.group, type.kind, image, failing, working, pin, ...bad]
  return [...texts, ...Object.entries(matchLabels).flat()].reduce((sum, text) => sum + text.length, 0)
}
