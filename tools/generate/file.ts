import { fileURLToPath } from "node:url"

/** A file that follows from the code: `npm run generate` writes it, `npm run verify` compares. */
export type GeneratedFile = { path: string; content: string }

/** The absolute path of a file of this repository. */
export const inRepository = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

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
