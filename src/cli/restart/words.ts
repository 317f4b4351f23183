import type { RestartStep } from "#core/pods/restart.ts"
import { formatDuration } from "#lib/duration.ts"
import { counted, nameSome, printable } from "#lib/text.ts"
import { inWords } from "#operations/words.ts"
import type { Connection, World } from "../command.ts"
import { doneWords } from "../operate.ts"
import type { Seen } from "./look.ts"
import { type Read, restartLabel } from "./read.ts"
import { isPod, type Target } from "./target.ts"

/** What was asked for on the command line. */
export type Asked = {
  target: Target
  containers: readonly string[]
  maxUnavailable: number
  id: string
  isContinued: boolean
  timeoutMs: number | undefined
  isDryRun: boolean
  program: string
  connection: Connection
}

/** A step, and the pods whose request is written. */
export type Progress = RestartStep & { begun: string[] }

const all = ({ containers }: Asked) => (containers.length === 0 ? "all containers" : inWords(containers))
const subject = (pods: number, asked: Asked) =>
  isPod(asked.target)
    ? `${all(asked)} of ${asked.target.title}`
    : `${all(asked)} of ${counted(pods, "pod")} of ${asked.target.title}`

const pace = ({ target, maxUnavailable }: Asked) => (isPod(target) ? "" : `, ${maxUnavailable} at a time`)

/** The pods that have no request yet. */
const leftIn = ({ begin, begun, left }: Progress) => [
  ...begin.map(({ pod }) => pod.name).filter(name => !begun.includes(name)),
  ...left.map(({ name }) => name),
]

export const beginning = (progress: Progress, asked: Asked) =>
  `restarting ${subject(progress.begin.length + progress.left.length + progress.underWay.length, asked)}${pace(asked)}, as restart ${asked.id}`

export function wouldDo(progress: Progress, asked: Asked): string {
  const names = leftIn(progress)
  if (names.length === 0) return doneWords(done(progress, asked), true)
  const which = isPod(asked.target) ? "" : `: ${nameSome(names.slice(0, 10), names.length)}`
  return doneWords(`would restart ${subject(names.length, asked)}${pace(asked)}${which}`, true)
}

export function done(progress: Progress, asked: Asked): string {
  if (progress.done.length > 0) return `restarted: ${subject(progress.done.length, asked)}`
  return `${asked.target.title} has no pod that needs a restart`
}

const requestLine = ({ pod, reason, message }: Read) => `pod ${pod} ${reason}: ${printable(message)}`

export function failedWords(progress: Progress, { requests }: Seen, asked: Asked): string {
  const failed = requests.filter(({ name }) => progress.failed.some(each => each.name === name))
  return [...failed.map(requestLine), ...remaining(progress, asked)].join("\n")
}

export const lateWords = (progress: Progress | undefined, asked: Asked): string =>
  [
    `${asked.target.title}: not restarted within ${formatDuration(asked.timeoutMs ?? 0)}`,
    ...(progress?.waitsFor === undefined ? [] : [`It waits: ${progress.waitsFor}`]),
    ...(progress ? remaining(progress, asked) : []),
  ].join("\n")

export const unknownRestart = ({ id, target: { namespace, title } }: Asked) =>
  `--continue: namespace ${namespace} has no request of restart ${id} (label ${restartLabel}); they are kept for a day\nWithout --continue, ${title} is restarted from the beginning.`

/** What is restarted, what finishes without this command, what is left, and how to go on. */
export function remaining(progress: Progress, asked: Asked): string[] {
  const underWay = [...progress.underWay.map(({ pod }) => pod), ...progress.begun]
  const left = leftIn(progress)
  const some = (names: readonly string[]) => nameSome(names.slice(0, 5), names.length)
  const isOpen = left.length > 0 || underWay.length > 0 || progress.failed.length > 0
  return [
    `Restarted: ${counted(progress.done.length, "pod")}.`,
    ...(underWay.length > 0 ? [`Under way, and finished by the node without this command: ${some(underWay)}.`] : []),
    ...(left.length > 0 ? [`Left: ${counted(left.length, "pod")} (${some(left)}).`] : []),
    ...(isOpen ? [`To go on: ${again(progress, asked)}`] : []),
  ]
}

/** The command line that goes on. Where nothing was begun, there is nothing to continue. */
function again({ done: over, underWay, failed, begun }: Progress, asked: Asked): string {
  const { target, containers, maxUnavailable, id, program, connection } = asked
  const isBegun = over.length + underWay.length + failed.length + begun.length > 0
  const words = [
    ...[program, "restart", target.title],
    ...containers.map(name => `-c ${name}`),
    ...(maxUnavailable === 1 ? [] : [`--max-unavailable ${maxUnavailable}`]),
    ...(isBegun ? [`--continue ${id}`] : []),
    ...(connection.kubeconfig === undefined ? [] : [`--kubeconfig ${connection.kubeconfig}`]),
    ...(connection.context === undefined ? [] : [`--context ${connection.context}`]),
    `-n ${target.namespace}`,
  ]
  return words.join(" ")
}

/** Reports each change of a request once, and what is waited for. Results of an earlier attempt are no news. */
export function teller({ say }: Pick<World, "say">) {
  const told = new Map<string, string>()
  return (progress: Progress, { requests, pods }: Seen, isFirst: boolean) => {
    const over = progress.done.length + progress.failed.length
    const count = `[${over}/${Math.max(pods.length, over)}]`
    for (const request of requests.filter(({ isOurs, reason }) => isOurs && reason !== "")) {
      const line = requestLine(request)
      const isNews = told.get(request.name) !== line && !(isFirst && request.result !== "Open")
      told.set(request.name, line)
      if (isNews) say(`${count} ${line}`)
    }
    const waits = progress.waitsFor ?? ""
    if (waits && told.get("") !== waits) say(`${count} waits: ${waits}`)
    told.set("", waits)
  }
}
