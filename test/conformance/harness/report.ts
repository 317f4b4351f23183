import { accepted } from "../accepted.ts"
import { pending } from "../pending.ts"
import type { Area } from "./script.ts"

export type Outcome = { name: string; area: Area; differing: string[]; lines: number; ms: number }

const areas: Record<Area, string> = {
  registry: "registry and HTTP",
  schema: "schema, patches, apply",
  kinds: "kinds and CRDs",
  controllers: "workload controllers, garbage collection",
  auth: "users and rights",
  kubelet: "kubelet, scheduler, registries",
}

/** What a run found, by area; the longest differences last, as they hide the others. */
export function report(outcomes: readonly Outcome[], ms: number): string {
  const differing = outcomes.filter(({ differing }) => differing.length > 0)
  const open = differing.filter(({ name }) => !(name in accepted))
  const head = [
    "# Conformance",
    "",
    `${outcomes.length} cases, ${outcomes.length - differing.length} agree, ${differing.length - open.length} differences accepted, ${open.length} open (${pending.length} of them listed as pending). ${Math.round(ms / 1000)} s.`,
    "",
    "`-` is what the real server said, `+` what the other one did. Lines begin with the path of a field.",
    "",
  ]
  const sections = Object.entries(areas).flatMap(([area, title]) => {
    const here = open.filter(each => each.area === area).sort((a, b) => a.differing.length - b.differing.length)
    const all = outcomes.filter(each => each.area === area).length
    return [
      `## ${title}: ${here.length} of ${all} differ`,
      "",
      ...here.flatMap(({ name, differing }) => [`### ${name}`, "", "```diff", ...shortened(differing), "```", ""]),
    ]
  })
  const slowest = [...outcomes].sort((a, b) => b.ms - a.ms).slice(0, 15)
  const slow = slowest.map(({ name, ms }) => `- ${(ms / 1000).toFixed(1)} s ${name}`)
  return [...head, ...sections, "## The slowest", "", ...slow, ""].join("\n")
}

function shortened(lines: string[], max = 60): string[] {
  const kept = lines.length <= max ? lines : [...lines.slice(0, max), `… and ${lines.length - max} lines more`]
  return kept.map((line, index) => excerpt(line, partnerOf(kept, index)))
}

/** The line on the other side that a changed line stands for: the one of the same field. */
function partnerOf(lines: string[], index: number): string | undefined {
  const [field = ""] = (lines[index] ?? "").slice(1).split(" = ")
  return lines.find(
    (other, place) => Math.abs(place - index) < 8 && other[0] !== lines[index]?.[0] && other.slice(1).startsWith(field),
  )
}

/** Of a long line, the part around the first difference. */
function excerpt(line: string, partner: string | undefined, max = 300): string {
  if (line.length <= max) return line
  let same = 1
  while (partner && same < line.length && line[same] === partner[same]) same++
  const head = line.slice(0, 80)
  return partner && same > 150 ? `${head} …${line.slice(same - 60, same + 160)}…` : `${line.slice(0, max)}…`
}
