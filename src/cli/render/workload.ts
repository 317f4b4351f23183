import { imagesOf } from "#core/in-place/template.ts"
import { type Revision, typed } from "#explain/workloads/facts.ts"
import type { Planned } from "#explain/workloads/plan.ts"
import type { PodStanding } from "#explain/workloads/pods.ts"
import type { Standing, State } from "#explain/workloads/standing.ts"
import { nameSome, printable, sentence } from "#lib/text.ts"
import type { View } from "../command.ts"
import { shortened } from "./image.ts"
import { paint } from "./paint.ts"
import { tableOf } from "./table.ts"
import { wrappedText } from "./wrap.ts"

/** A workload as `aim status` shows it. */
export type ShownWorkload = Standing & {
  kind: string
  name: string
  namespace: string
  /** Absent where only the workload was read. */
  pods?: PodStanding[]
}

type Named = Pick<ShownWorkload, "kind" | "name" | "namespace">

/** `deploy/web -n shop` */
const titleOf = (of: Named) => `${typed(of)} -n ${of.namespace}`

/** In one line: for logs, pipes and the progress of `aim wait`. */
export function workloadLine(shown: ShownWorkload): string {
  const { state, reason, message, updated, total } = shown
  const why = [reason, printable(message)].filter(Boolean).join(": ")
  const count = state === "NotSeenYet" || updated === undefined ? "" : ` ${updated}/${total} updated`
  return `${titleOf(shown)} ${state}${count}${why ? ` (${why})` : ""}`
}

const podsMost = 10

/** Those that are not updated, and the rest as a number. */
function podLines({ pods = [], state }: ShownWorkload, all: boolean): string[] {
  if (state === "Complete" && !all) return []
  const open = all ? pods : pods.filter(pod => pod.state !== "Updated")
  const shown = all ? open : open.slice(0, podsMost)
  const more = open.length - shown.length
  const done = pods.length - open.length
  return [
    ...shown.map(
      ({ name, node, state: is, why }) =>
        `${name} on ${node || "no node yet"} ${is}${why ? ` (${printable(why)})` : ""}`,
    ),
    ...(more > 0 ? [`${more} more that are not updated`] : []),
    ...(done > 0 ? [`${done} updated`] : []),
  ]
}

export function workloadLines(shown: ShownWorkload, all: boolean): string {
  return [workloadLine(shown), ...podLines(shown, all).map(line => `  ${line}`)].map(line => `${line}\n`).join("")
}

export function workloadBlock(shown: ShownWorkload, view: View, all: boolean): string {
  const { bold, dim, green, yellow, red, cyan } = paint(view)
  const { name, namespace, kind, state, reason, message, updated, total } = shown
  const paints: Record<State, [marker: string, (text: string) => string]> = {
    NotSeenYet: ["○", dim],
    InProgress: ["●", cyan],
    Waiting: ["●", yellow],
    Paused: ["●", yellow],
    Stalled: ["✗", red],
    RolledBack: ["✗", red],
    Complete: ["✓", green],
  }
  const [marker, painted] = paints[state]
  const why = [reason, printable(message)].filter(Boolean).join(": ")
  const lines = [
    `${bold(name)}  ${painted(`${marker} ${state} ${updated}/${total}`)}  ${kind}  ${namespace}`,
    ...(why ? [`  ${why}`] : []),
    ...podLines(shown, all).map(line => `  ${line}`),
  ]
  return `${lines.map(line => wrappedText(line, view.columns, 2)).join("\n")}\n`
}

const titles: Record<Planned["way"], string> = {
  Nothing: "nothing to do",
  InPlace: "in place",
  RollingUpdate: "rolling update",
  Stopped: "stopped",
  Refused: "refused",
}

/** `aim plan deploy/web`. */
export function workloadPlanText(plan: Planned, { view }: { view: View }): string {
  const { bold } = paint(view)
  const { way, reason, message, images, pods, blockedBy, remarks } = plan
  const shown = pods.slice(0, podsMost)
  const why = reason && reason !== way ? `${reason}: ${message}` : message
  const lines = [
    ...(why ? [`  ${sentence(why)}`] : []),
    ...images.map(({ container, from, to }) => `  ${container}: ${from} → ${to}`),
    ...(pods.length > 0 ? ["  pods, in this order:"] : []),
    ...shown.map(({ name, node, isNext }) => `    ${name} on ${node || "no node yet"}${isNext ? ", next" : ""}`),
    ...(pods.length > shown.length ? [`    … ${pods.length - shown.length} more`] : []),
    ...nodeWords(plan).map(line => `  ${line}`),
    ...(blockedBy.length > 0 ? ["  blocked by:"] : []),
    ...blockedBy.map(line => `    ${line}`),
    ...remarks.map(line => `  ${line}`),
  ].map(printable)
  const title = `${bold(printable(titleOf(plan)))}  ${titles[way]}`
  const shownLines = view.isTerminal ? lines.map(line => wrappedText(line, view.columns, 2)) : lines
  return `${[title, ...shownLines].join("\n")}\n`
}

/** Which nodes get the image first, and which cannot. */
function nodeWords({ nodes }: Planned): string[] {
  return [...Map.groupBy(nodes, ({ image }) => image)].map(([image, group]) => {
    const sorted = group.toSorted((a, b) => a.node.localeCompare(b.node, "en", { numeric: true }))
    const names = sorted.slice(0, 5).map(({ node, why }) => (why === "" ? node : `${node} (${why})`))
    return `Not known to be on ${nameSome(names, group.length)}: ${image}. It is pulled before a pod of the node is touched.`
  })
}

/** `aim history deploy/web`. */
export function revisionTable(revisions: readonly Revision[], { wide, view }: { wide: boolean; view: View }): string {
  const { green } = paint(view)
  const hasCauses = revisions.some(({ cause }) => cause !== "")
  const head = ["REVISION", "IMAGES", "PODS", ...(wide ? ["NAME"] : []), ...(hasCauses ? ["CHANGE-CAUSE"] : [])]
  const rows = revisions.map(({ number, template, pods, name, cause, isPresent }) => [
    `${number}${isPresent ? " (present)" : ""}`,
    printable(imageWords(imagesOf(template), wide)),
    String(pods.length),
    ...(wide ? [name] : []),
    ...(hasCauses ? [printable(cause)] : []),
  ])
  return tableOf([head, ...rows], (cell, row, column) =>
    row > 0 && column === 0 && revisions[row - 1]!.isPresent ? green(cell) : cell,
  )
}

/** One container by its image alone, several by name. */
export function imageWords(images: ReadonlyMap<string, string>, wide: boolean): string {
  const shown = (image: string) => (wide ? image : shortened(image))
  if (images.size === 1) return shown([...images.values()][0]!)
  return [...images].map(([name, image]) => `${name}=${shown(image)}`).join(", ")
}
