/** What a registry requires with 401: the first Bearer challenge, otherwise Basic. */
export type Challenge = { scheme: "Bearer"; realm: string; service?: string; scope?: string } | { scheme: "Basic" }

const maxLength = 4096

/** Reads WWW-Authenticate (RFC 9110, 11.6.1): schemes with parameters, several in one header. */
export function parseChallenge(header: string | undefined): Challenge | undefined {
  if (!header || header.length > maxLength) return undefined
  let basic: Challenge | undefined
  for (const { scheme, parameters } of challengesOf(header)) {
    const realm = parameters.get("realm")
    if (scheme === "basic") basic = { scheme: "Basic" }
    if (scheme !== "bearer" || !realm) continue
    const [service, scope] = [parameters.get("service"), parameters.get("scope")]
    return { scheme: "Bearer", realm, ...(service && { service }), ...(scope && { scope }) }
  }
  return basic
}

function challengesOf(header: string): { scheme: string; parameters: Map<string, string> }[] {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = []
  const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
  // Sticky: each match begins where the last one ended, so parsing is linear in the length of the header.
  const piece = new RegExp(`[\\s,]*(${token})(?:\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${token})))?`, "y")
  for (let found = piece.exec(header); found; found = piece.exec(header)) {
    const [, name = "", quoted, plain] = found
    const value = quoted?.replace(/\\(.)/g, "$1") ?? plain
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: new Map() })
    // The first of two equal names counts, so that the second cannot replace what was checked elsewhere.
    else if (!challenges.at(-1)?.parameters.has(name.toLowerCase()))
      challenges.at(-1)?.parameters.set(name.toLowerCase(), value)
  }
  return challenges
}

/**
 * The scope of the token: the repository as the registry calls it (a proxy may use another name than we
 * do), and never more than the right to pull, whatever the challenge suggests.
 */
export function pullScope(scope: string | undefined, path: string): string {
  const name = /^repository:([a-z0-9._/-]{1,255}):[a-z_*,]+$/.exec(scope ?? "")?.[1]
  return `repository:${name ?? path}:pull`
}
