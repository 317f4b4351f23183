// Written without the product's parser: what judges it must not share its mistakes.

/** Do both texts name the same image? `app:v1` is `docker.io/library/app:v1`, and a digest counts more than a tag. */
export const sameImage = (a: string, b: string): boolean => a === b || writtenOut(a) === writtenOut(b)

function writtenOut(image: string): string {
  if (image === "") return ""
  const [name = "", digest] = image.split("@")
  const [first = "", ...rest] = name.split("/")
  const hasHost = rest.length > 0 && /[.:]|^localhost$/.test(first)
  const host = hasHost ? first.toLowerCase().replace(/^index\.docker\.io$/, "docker.io") : "docker.io"
  const path = hasHost ? rest.join("/") : name
  const full = host === "docker.io" && !path.includes("/") ? `${host}/library/${path}` : `${host}/${path}`
  const tag = /:[^/:]+$/.exec(full)?.[0] ?? ""
  return digest ? `${full.slice(0, full.length - tag.length)}@${digest}` : tag ? full : `${full}:latest`
}
