import { clip } from "#lib/text.ts"
import type { BodyReader } from "./exchange.ts"

const firstBytes = 4096

/**
 * Keeps a body in one piece of memory that grows with it. A server chooses how small the pieces are that it sends: a list
 * of them would cost a hundred times their bytes.
 */
export function createBody(maxBytes: number): BodyReader & { bytes(): Buffer } {
  let kept = Buffer.alloc(0)
  let length = 0
  return {
    maxBytes,
    take(piece) {
      const needed = length + piece.length
      if (needed > kept.length) {
        const larger = Buffer.alloc(Math.max(needed, Math.min(maxBytes, Math.max(firstBytes, 2 * kept.length))))
        kept.copy(larger, 0, 0, length)
        kept = larger
      }
      piece.copy(kept, length)
      length = needed
    },
    bytes: () => kept.subarray(0, length),
  }
}

const excerptLength = 200

/**
 * The beginning of an answer for a message: one line of at most 200 characters, all of them printable. Not for an answer
 * to a request with credentials: a server may send them back, and others read a status.
 */
export function excerptOf(body: Buffer): string {
  const beginning = body.subarray(0, firstBytes).toString("utf8")
  return clip(beginning.replaceAll(/[\p{C}\p{Z}\ufffd]+/gu, " ").trim(), excerptLength)
}
