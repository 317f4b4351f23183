/** FNV-1a (or, with `multiplyFirst`, FNV-1) with 32 bits, over UTF-8. */
export function fnv32(text: string | Uint8Array, { multiplyFirst = false, from = 0x811c9dc5 } = {}): number {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text
  let hash = from
  for (const byte of bytes)
    hash = multiplyFirst ? Math.imul(hash, 0x01000193) ^ byte : Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}

const alphanums = "bcdfghjklmnpqrstvwxz2456789"

/** Without vowels and 0, 1, 3, so that a hash contains no words and no characters that are easily confused. */
export const safeEncode = (text: string) =>
  Array.from(new TextEncoder().encode(text), byte => alphanums[byte % alphanums.length]).join("")
