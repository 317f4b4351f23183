import { normaliseImageReference, parseImageReference } from "../image/reference.ts"

/** An image as a NodeImage lists it: its repository, and behind it a tag, a digest, or both. */
export type ImageName = { readonly name: string; readonly tag: string; readonly host: string }

/** Undefined for what cannot be read as an image. The repository stays as it is written: the runtime completes it. */
export function splitImage(image: string): ImageName | undefined {
  const parsed = parseImageReference(image)
  if (!parsed.ok) return undefined
  const { host, path, tag, digest } = parsed.reference
  const behind = [tag, digest].filter(part => part !== undefined).join("@")
  return {
    name: host ? `${host}/${path}` : path,
    tag: behind || "latest",
    host: normaliseImageReference(parsed.reference).host,
  }
}

/** The whole reference again. A digest is joined by `@`; only a digest has a colon in its first part. */
export const joinImage = ({ name, tag }: Pick<ImageName, "name" | "tag">) =>
  /^[a-z0-9]+:[a-f0-9]+$/.test(tag) ? `${name}@${tag}` : `${name}:${tag}`
