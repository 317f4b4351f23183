import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { expect, test } from "vitest"

const root = join(import.meta.dirname, "../..")
const pages = ["*.md", "docs/**/*.md", "examples/**/*.md"].flatMap(pattern => globSync(pattern, { cwd: root })).sort()
const read = (page: string) => readFileSync(join(root, page), "utf8").replaceAll(/^```.*?^```/gms, "")

/** As GitHub makes an anchor of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-")
const anchorsOf = (page: string) => [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!))

function isBroken(page: string, link: string): boolean {
  const [path = "", anchor] = link.split("#", 2)
  const target = path === "" ? page : normalize(join(dirname(page), path))
  if (!existsSync(join(root, target))) return true
  return anchor !== undefined && !anchorsOf(target).includes(anchor)
}

test.each(pages)("every link of %s leads somewhere", page => {
  const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
  const ours = links.filter(link => !link.includes("://"))
  expect(ours.filter(link => isBroken(page, link))).toEqual([])
})
