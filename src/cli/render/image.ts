import { parseImageReference } from "#core/image/reference.ts"

/** Shortens a digest: `web@sha256:0123456789abcdef…` → `web@sha256:01234567`. */
export const shortDigest = (image: string) => image.replace(/@(\w+:[0-9a-f]{8})[0-9a-f]+$/, "@$1")

/** `registry.example.com/team/dicom:v2` → `dicom:v2`; a digest is shortened. */
export function shortened(image: string): string {
  const parsed = parseImageReference(image)
  if (!parsed.ok) return image
  const { path, tag, digest } = parsed.reference
  return shortDigest(`${path.slice(path.lastIndexOf("/") + 1)}${tag ? `:${tag}` : ""}${digest ? `@${digest}` : ""}`)
}
