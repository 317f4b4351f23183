/**
 * 32 bits that depend on every character (FNV-1a, then a finaliser that spreads it over all bits: FNV's high bits
 * alone are poor for short texts). Not for secrets; for an even and stable distribution.
 */
export function hash32(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
