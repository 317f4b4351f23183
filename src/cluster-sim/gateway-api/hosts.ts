/** Whether a host name, or one with `*.` in front, is among those that a pattern covers. No pattern covers all. */
export function covers(pattern: string | undefined, host: string): boolean {
  if (!pattern || pattern === "*") return true
  if (pattern === host) return true
  return pattern.startsWith("*.") && host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1
}

/** Whether some host name is covered by both. */
export const overlap = (one: string | undefined, other: string | undefined): boolean =>
  !one || !other || covers(one, other) || covers(other, one)
