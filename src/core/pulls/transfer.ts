import { share } from "#lib/bytes.ts"
import { counted } from "#lib/text.ts"

/** What a node has fetched of an image so far, for so many of its pulls together. */
export type Transfer = {
  readonly doneBytes: number
  readonly totalBytes?: number | undefined
  readonly pulls: number
}

/** The same over the nodes of a job that report bytes. */
export type JobTransfer = {
  readonly doneBytes: number
  readonly totalBytes?: number | undefined
  readonly nodes: number
  /** Those of them whose bytes are of other pulls as well. */
  readonly sharedNodes: number
}

/** Sums over the nodes of one job, kept with each event. */
export class TransferSums {
  #doneBytes = 0
  #totalBytes = 0
  #nodes = 0
  #sharedNodes = 0
  /** Nodes that do not know the size of a layer. */
  #unsized = 0

  add({ doneBytes, totalBytes, pulls }: Transfer, sign: 1 | -1): void {
    this.#doneBytes += sign * doneBytes
    this.#totalBytes += sign * (totalBytes ?? 0)
    this.#nodes += sign
    if (pulls > 1) this.#sharedNodes += sign
    if (totalBytes === undefined) this.#unsized += sign
  }

  /** Undefined where no node reports bytes. */
  get all(): JobTransfer | undefined {
    if (this.#nodes === 0) return undefined
    const total = this.#unsized === 0 && { totalBytes: this.#totalBytes }
    return { doneBytes: this.#doneBytes, ...total, nodes: this.#nodes, sharedNodes: this.#sharedNodes }
  }
}

/** `35 MiB of 80 MiB fetched` */
export function fetchedOnNode({ doneBytes, totalBytes, pulls }: Transfer): string {
  const others = pulls > 1 ? ` by this and ${counted(pulls - 1, "other pull")} of the node together` : ""
  return `${share(doneBytes, totalBytes)} fetched${others}`
}

/** `35 MiB of 80 MiB fetched on 2 nodes` */
export function fetchedOnNodes({ doneBytes, totalBytes, nodes, sharedNodes }: JobTransfer): string {
  const others = sharedNodes > 0 ? `, on ${sharedNodes} of them together with other pulls` : ""
  return `${share(doneBytes, totalBytes)} fetched on ${counted(nodes, "node")}${others}`
}
