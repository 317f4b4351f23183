import type { JobTransfer } from "#core/pulls/transfer.ts"
import { share as bytesOf } from "#lib/bytes.ts"
import { printable } from "#lib/text.ts"
import type { KubeObject } from "#runtime/resource.ts"

/** A column of `aim get` that only some kinds have. */
export type Column = { head: string; cell(object: KubeObject): string }

/** What an object of any kind may hold; the server has checked it. */
type Fields = Readonly<Record<string, string | number | undefined>>

const field = (head: string, part: "spec" | "status", name: string): Column => ({
  head,
  cell: object => printable(String(partOf(object, part)[name] ?? "")),
})

/** `2/3`: how many of those that are wanted. */
const share = (head: string): Column => ({
  head,
  cell(object) {
    const { succeeded, desired } = partOf(object, "status")
    return desired === undefined ? "" : `${succeeded ?? 0}/${desired}`
  },
})

/** `35 MiB of 80 MiB`, on the nodes that pull. */
const fetched: Column = {
  head: "FETCHED",
  cell(object) {
    const { doneBytes, totalBytes } = (partOf(object, "status").transfer ?? {}) as Partial<JobTransfer>
    return doneBytes === undefined ? "" : bytesOf(doneBytes, totalBytes)
  },
}

const partOf = (object: KubeObject, part: "spec" | "status") =>
  ((object as unknown as Record<string, unknown>)[part] ?? {}) as Fields

const weight: Column = {
  head: "WEIGHT",
  cell(object) {
    const { canaryWeight, phase } = partOf(object, "status")
    return phase === undefined ? "" : `${canaryWeight ?? 0} %`
  },
}

const target: Column = {
  head: "TARGET",
  cell(object) {
    const { kind = "", name = "" } = (partOf(object, "spec").targetRef ?? {}) as { kind?: string; name?: string }
    return printable(`${kind} ${name}`)
  },
}

const provider: Column = {
  head: "TYPE",
  cell: object => printable(((partOf(object, "spec").provider ?? {}) as { type?: string }).type ?? ""),
}

const columns: Readonly<Record<string, readonly Column[]>> = {
  ContainerRecreateRequest: [field("POD", "spec", "podName"), field("NODE", "status", "nodeName")],
  NodeImage: [share("IMAGES"), field("PULLING", "status", "pulling"), field("FAILED", "status", "failed")],
  ImagePullJob: [share("NODES"), field("FAILED", "status", "failed"), fetched, field("IMAGE", "spec", "image")],
  ImageListPullJob: [share("IMAGES")],
  Canary: [field("PHASE", "status", "phase"), weight, target],
  MetricTemplate: [provider],
  AlertProvider: [field("TYPE", "spec", "type")],
}

/** Between the reason and the age. */
export const columnsOf = (kind: string): readonly Column[] => columns[kind] ?? []
