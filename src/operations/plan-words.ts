import type { Outlook, Stage, TierOutlook } from "#explain/serviceimage/outlook.ts"
import type { Planned } from "#explain/serviceimage/planned.ts"
import { formatDuration } from "#lib/duration.ts"
import type { Instant } from "#lib/instant.ts"
import { counted, nameSome, printable } from "#lib/text.ts"
import { inWords, objects, tierTitle, tierWord } from "./words.ts"

type Paint = Readonly<Record<"bold" | "dim" | "yellow", (text: string) => string>>
const plain: Paint = { bold: text => text, dim: text => text, yellow: text => text }

/** `aim plan` of one rollout, line by line: its state, what happens next and then, how long that takes, what is left out. */
export function planLines(
  planned: Planned,
  { now, program, paint: { bold, dim, yellow } = plain }: { now: Instant; program: string; paint?: Paint },
): string[] {
  const { name, reason, message, progress, operation, overtakes, next, more, outlook, warnings, lookAgainAt } = planned
  const images = printable([...new Set(Object.values(operation.images))].join(", "))
  const at = operation.isNew ? `would start operation ${operation.id}` : `operation ${operation.id} ${operation.phase}`
  const pins = operation.isPinnedLater ? ", by the digests they have then" : ""
  const isStopped = operation.phase === "Halted" || reason === "Paused"
  const isIdle = outlook.stages.length === 0
  return [
    `${bold(printable(`si/${name}`))}  ${reason}  ${progress ? `${progress} up to date` : ""}`.trimEnd(),
    printable(`  ${message}`),
    `  ${at}: ${images}${pins}${overtakes ? `, overtaking ${overtakes}, which is in progress` : ""}`,
    ...(next.length > 0 ? ["  next:"] : []),
    ...next.map(({ object, tier, from, to, pods }) => {
      const disturbs = pods === 0 ? "" : dim(`  ${pods} ${pods === 1 ? "pod" : "pods"}`)
      return printable(`    ${object}  ${tierTitle(tier)}  ${from || "(no image)"} → ${to}`) + disturbs
    }),
    ...(more > 0 ? [`    and ${more} more at once`] : []),
    ...(isIdle
      ? []
      : [isStopped ? "  when it continues:" : "  then:", ...outlook.stages.map(stage => `    ${stageWords(stage)}`)]),
    ...(isIdle ? [] : [`  takes: ${takesWords(outlook, name, program)}`]),
    ...(lookAgainAt !== undefined && lookAgainAt > now && !isIdle
      ? [`  checks again: in ${formatDuration(lookAgainAt - now)}, or when something changes`]
      : []),
    ...warnings.map(({ reason: why, count, examples, message: what }) =>
      yellow(
        printable(`  ${why}: ${objects(count)} (${nameSome(examples, count)}) ${count === 1 ? singular(what) : what}`),
      ),
    ),
  ]
}

const ofOne: Record<string, string> = {
  keep: "keeps",
  have: "has",
  do: "does",
  are: "is",
  belong: "belongs",
  were: "was",
}

/** From plural to singular: `keep their image` → `keeps its image`. */
const singular = (words: string) => words.replace(/^\w+/, verb => ofOne[verb] ?? verb).replace(/\btheir\b/, "its")

function stageWords({ priority, tiers, approvals, soakMs }: Stage): string {
  const each = tiers.map(({ name, objects: count, pods, underWay, judged, ...tier }) => {
    const facts = [
      `${count} to stamp${pods > 0 ? ` (${pods} ${pods === 1 ? "pod" : "pods"})` : ""}${count > 0 ? howWords(tier) : ""}`,
      underWay > 0 ? `${underWay} under way` : "",
      approvals.includes(name) ? "waits for a person" : "",
      judged ? judgedWords(judged) : "",
    ].filter(Boolean)
    return `${tierTitle(name)}: ${facts.join(", ")}`
  })
  const soaks = tiers.some(({ judged }) => judged) ? "soaks and is judged for" : "soaks"
  const soak = soakMs > 0 ? `; ${soaks} ${formatDuration(soakMs)} in all` : ""
  return `priority ${priority}: ${each.join("; ")}${soak}`
}

const judgedWords = ({ by, interval, threshold }: NonNullable<TierOutlook["judged"]>) =>
  `judged every ${interval} by ${inWords(by.map(printable))}, ${counted(threshold, "failed check")} ${threshold === 1 ? "halts" : "halt"} it`

/** What their own controllers do with the pods of custom kinds is not known here. */
function howWords({ how, inPlace }: Pick<Stage["tiers"][number], "how" | "inPlace">): string {
  if (how === "Own") return ""
  if (how === "Partly") return `, ${inPlace} of them in place`
  return how === "InPlace" ? " in place" : ", pods are re-created"
}

function takesWords({ stages, msAtLeast }: Outlook, name: string, program: string): string {
  const sum = (of: (stage: Stage) => number) => stages.reduce((total, stage) => total + of(stage), 0)
  const [paceMs, soakMs] = [sum(stage => stage.paceMs), sum(stage => stage.soakMs)]
  const settleMs = sum(stage => stage.settleMs)
  const isJudged = stages.some(({ tiers }) => tiers.some(({ judged }) => judged))
  const parts = [
    paceMs > 0 ? `${formatDuration(paceMs)} by pace` : "",
    settleMs > 0 ? `${formatDuration(settleMs)} of settling` : "",
    soakMs > 0 ? `${formatDuration(soakMs)} of ${isJudged ? "soaking and judging" : "soaking"}` : "",
  ].filter(Boolean)
  const approvals = stages.flatMap(stage => stage.approvals)
  const least = msAtLeast > 0 ? `at least ${formatDuration(msAtLeast)} (${parts.join(", ")})` : "nothing delays it"
  const person =
    approvals.length > 0
      ? `, and waits for a person: ${program} approve si/${name} ${approvals.map(tierWord).join(" ")}, for ${inWords(approvals.map(tierTitle))}`
      : ""
  return `${least}; how long objects take to become healthy is not known${person}`
}
