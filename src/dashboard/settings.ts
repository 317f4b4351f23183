type Tier = { tier: string; title: string; image: string; setting?: string }

/** One field of the form: tiers that follow the default image have one together. */
export type ImageField = { setting: string; title: string; image: string }

export function imageFields(tiers: readonly Tier[]): ImageField[] {
  const fields = new Map<string, ImageField>()
  for (const { tier, title, image, setting } of tiers) {
    const named = setting ?? (tiers.length === 1 ? "" : `${tier === "" ? '""' : tier}=`)
    const field = fields.get(named)
    fields.set(named, field ? { ...field, title: `${field.title}, ${title}` } : { setting: named, title, image })
  }
  return fields.size > 0 ? [...fields.values()] : [{ setting: "", title: "Image", image: "" }]
}

/** What `aim set-image` would be given for the images that were typed, by field: those that differ. */
export const settingsOf = (typed: Readonly<Record<string, string>>, fields: readonly ImageField[]): string[] =>
  fields
    .map(({ setting, image }) => ({ setting, before: image, image: (typed[setting] ?? image).trim() }))
    .filter(({ before, image }) => before !== image)
    .map(({ setting, image }) => `${setting}${image}`)
