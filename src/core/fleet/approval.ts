/** Which tiers of which operation may start: the annotation `autoimagemanager.io/approved`. */
export type Approval = {
  operation: string
  tiers: string[]
  /** Of the template that a Canary's run proves. */
  checksum?: string
}

/** As many tiers as there can be, each with its longest name, and some white space. */
const maxLength = 8192

export const formatApproval = ({ operation, tiers, checksum }: Approval) =>
  JSON.stringify({ operation, tiers, checksum })

/** Undefined unless it is complete: an annotation may hold any text. */
export function parseApproval(text: unknown): Approval | undefined {
  if (typeof text !== "string" || text.length > maxLength) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== "object" || value === null) return undefined
  const { operation, tiers, checksum } = value as Record<string, unknown>
  if (typeof operation !== "string" || !Array.isArray(tiers)) return undefined
  if (!tiers.every(tier => typeof tier === "string")) return undefined
  return { operation, tiers, ...(typeof checksum === "string" && { checksum }) }
}

/** Approvals add up within an operation; those of another operation do not count. */
export function approve(before: Approval | undefined, { operation, tiers }: Approval): Approval {
  const earlier = before?.operation === operation ? before.tiers : []
  return { operation, tiers: [...new Set([...earlier, ...tiers])] }
}
