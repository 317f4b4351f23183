import type { Json } from "../../object.ts"
import { fnv32, safeEncode } from "./hash.ts"

/** The value of `pod-template-hash`. */
export function podTemplateHash(template: Json, collisionCount?: number): string {
  const hash = fnv32(JSON.stringify(template))
  return safeEncode(String(collisionCount === undefined ? hash : fnv32(littleEndian(collisionCount), { from: hash })))
}

function littleEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setUint32(0, value, true)
  return bytes
}
