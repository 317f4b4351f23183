/** What the changelog says of a version; a version that it says nothing of is not released. */
export function sectionOf(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find(text => text.split(/[,\s]/, 1)[0] === version)
  const [, ...lines] = section?.split("\n") ?? []
  const text = lines.join("\n").trim()
  if (text) return text
  const what = section
    ? `the section "## ${version}" of CHANGELOG.md is empty`
    : `CHANGELOG.md has no section "## ${version}"`
  throw new Error(`${what}: write what is new for a user, one line per change, or set the version in package.json`)
}
