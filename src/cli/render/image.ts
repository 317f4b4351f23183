/** Shortens a digest: `web@sha256:0123456789abcdef…` → `web@sha256:01234567`. */
export const shortDigest = (image: string) => image.replace(/@(\w+:[0-9a-f]{8})[0-9a-f]+$/, "@$1")
