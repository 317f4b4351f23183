import { createHash } from "node:crypto"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Architecture } from "../image/node.ts"
import type { Image } from "../image.ts"
import { archive } from "./archive.ts"

export type Platform = { architecture: Architecture; image: Image }

/** One OCI archive with one image for several architectures; a registry and a node choose by the index. */
export async function packImages(target: string, platforms: readonly Platform[], tag: string, time: Date) {
  const work = mkdtempSync(join(tmpdir(), "aim-images-"))
  try {
    const blobs = join(work, "blobs", "sha256")
    mkdirSync(blobs, { recursive: true })
    const manifests = platforms.map(({ architecture, image: { layout } }) => {
      cpSync(join(layout, "blobs", "sha256"), blobs, { recursive: true })
      const [{ mediaType, digest, size }] = JSON.parse(readFileSync(join(layout, "index.json"), "utf8")).manifests
      return { mediaType, digest, size, platform: { os: "linux", architecture } }
    })
    const mediaType = "application/vnd.oci.image.index.v1+json"
    const index = JSON.stringify({ schemaVersion: 2, mediaType, manifests })
    const hash = createHash("sha256").update(index).digest("hex")
    writeFileSync(join(blobs, hash), index)
    const annotations = { "org.opencontainers.image.ref.name": tag }
    const entry = { mediaType, digest: `sha256:${hash}`, size: Buffer.byteLength(index), annotations }
    writeFileSync(join(work, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
    writeFileSync(join(work, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}')
    await archive(work, ["blobs", "index.json", "oci-layout"], target, time)
    return entry.digest
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
