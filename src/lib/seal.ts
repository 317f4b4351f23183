import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto"

/**
 * Sealed boxes: anyone may seal a text to a public key, and only the holder of the private key can open it. X25519 with
 * a key of its own for each box, HKDF-SHA-256, AES-256-GCM. A box names its purpose, and opens for no other one: a box
 * that is moved to another place is worthless there.
 *
 *     box = version (1) ‖ ephemeral public key (32) ‖ nonce (12) ‖ tag (16) ‖ ciphertext
 */

const version = 1
const [keyBytes, nonceBytes, tagBytes] = [32, 12, 16]
const headBytes = 1 + keyBytes + nonceBytes + tagBytes

/** What the box is for, in order: each part is bound separately, so that no two lists read the same. */
export type Purpose = readonly string[]

export type SealKey = {
  /** In base64url: safe to publish. */
  readonly publicKey: string
  /** The text, or undefined where the box was sealed to another key or for another purpose, or was changed. */
  open(box: string, purpose: Purpose): string | undefined
}

/** A fresh key, which is never written anywhere. */
export function makeSealKey(): SealKey {
  const { privateKey, publicKey } = generateKeyPairSync("x25519")
  const own = rawOf(publicKey)
  return {
    publicKey: own.toString("base64url"),
    open(box, purpose) {
      try {
        return opened(Buffer.from(box, "base64"), privateKey, own, purpose)
      } catch {
        return undefined // what was wrong is no business of the sender
      }
    },
  }
}

/** Throws where the key is none: it was read from an object that another process wrote. */
export function seal(text: string, publicKey: string, purpose: Purpose): string {
  const recipient = Buffer.from(publicKey, "base64url")
  const { privateKey, publicKey: ephemeral } = generateKeyPairSync("x25519")
  const sender = rawOf(ephemeral)
  const key = keyFor(privateKey, keyOf(recipient), sender, recipient)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  cipher.setAAD(bound(purpose))
  const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
  return Buffer.concat([Buffer.of(version), sender, nonce, cipher.getAuthTag(), ciphertext]).toString("base64")
}

/** Whether a text can be sealed to it. */
export function isPublicKey(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text) && Buffer.from(text, "base64url").length === keyBytes
}

function opened(box: Buffer, privateKey: KeyObject, own: Buffer, purpose: Purpose): string | undefined {
  if (box.length < headBytes || box[0] !== version) return undefined
  const at = (from: number, length: number) => box.subarray(from, from + length)
  const sender = at(1, keyBytes)
  const nonce = at(1 + keyBytes, nonceBytes)
  const decipher = createDecipheriv("aes-256-gcm", keyFor(privateKey, keyOf(sender), sender, own), nonce, {
    authTagLength: tagBytes,
  })
  decipher.setAAD(bound(purpose))
  decipher.setAuthTag(at(1 + keyBytes + nonceBytes, tagBytes))
  return Buffer.concat([decipher.update(box.subarray(headBytes)), decipher.final()]).toString("utf8")
}

/** Both public keys are part of the derivation, so that the key belongs to this pair and no other. */
function keyFor(privateKey: KeyObject, publicKey: KeyObject, sender: Buffer, recipient: Buffer): Buffer {
  const shared = diffieHellman({ privateKey, publicKey })
  return Buffer.from(hkdfSync("sha256", shared, Buffer.concat([sender, recipient]), "aim seal 1", 32))
}

const bound = (purpose: Purpose) => Buffer.from(JSON.stringify(purpose), "utf8")

const rawOf = (key: KeyObject) => Buffer.from(key.export({ format: "jwk" }).x!, "base64url")

const keyOf = (raw: Buffer) =>
  createPublicKey({ key: { kty: "OKP", crv: "X25519", x: raw.toString("base64url") }, format: "jwk" })
