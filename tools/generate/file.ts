import { fileURLToPath } from "node:url"

/** A file that follows from the code: `npm run generate` writes it, `npm run verify` compares. */
export type GeneratedFile = { path: string; content: string }

/** The absolute path of a file of this repository. */
export const inRepository = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** The page with a place for a section, under a heading of its own where there is none yet. */
export function withPlace(
  page: string,
  name: string,
  { heading, before }: { heading: string; before: string },
): string {
  const start = `<!-- generated: ${name} -->`
  if (page.includes(start)) return page
  const at = page.indexOf(before)
  if (at < 0) throw new Error(`the page has no place for ${name}: there is no "${before.trim()}"`)
  return `${page.slice(0, at)}\n## ${heading}\n\n${start}\n<!-- end -->\n${page.slice(at)}`
}

/** Replaces the text between `<!-- generated: name -->` and `<!-- end -->`; people write the rest of the page. */
export function withSections(page: string, sections: Record<string, string>): string {
  return Object.entries(sections).reduce((text, [name, content]) => {
    const start = `<!-- generated: ${name} -->`
    const from = text.indexOf(start)
    const to = text.indexOf("<!-- end -->", from)
    if (from < 0 || to < 0) throw new Error(`the page has no place for ${name}: write ${start} and <!-- end -->`)
    return `${text.slice(0, from + start.length)}\n\n${content.trim()}\n\n${text.slice(to)}`
  }, page)
}
