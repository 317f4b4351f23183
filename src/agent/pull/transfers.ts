import type { Transfer } from "#runtime/cri/index.ts"

/** What was fetched for one pull so far, as the status reports it. */
export type Fetched = {
  readonly doneBytes: number
  /** Of all layers whose transfer has begun; absent where the size of one is not known. */
  readonly totalBytes?: number
  /** The bytes are of so many pulls of the node together. */
  readonly pulls: number
}

type Seen = {
  readonly transfer: Transfer
  /** The pulls that it may be for. */
  readonly pulls: ReadonlySet<string>
}

/**
 * What the runtime fetches, and for which pulls. The runtime lists layers and does not report which pull a layer is for.
 * A layer is for one of the pulls that were under way whenever it was listed. Where that leaves several, the bytes are
 * counted for these together.
 */
export class Transfers {
  #seen = new Map<string, Seen>()

  /** Takes what the runtime lists now, while these pulls are under way. */
  note(listed: readonly Transfer[], underWay: ReadonlySet<string>): void {
    const now = new Map<string, Seen>()
    for (const transfer of listed) {
      const pulls = this.#seen.get(transfer.name)?.pulls.intersection(underWay)
      // None is left where the pull has ended for which it began: another one needs the same layer.
      now.set(transfer.name, { transfer, pulls: pulls?.size ? pulls : underWay })
    }
    for (const [name, { transfer, pulls }] of this.#seen) {
      // A layer that is no longer listed is done. With one of its pulls over, it may have been for that one.
      if (!now.has(name) && pulls.isSubsetOf(underWay))
        now.set(name, { transfer: { ...transfer, doneBytes: transfer.totalBytes }, pulls })
    }
    this.#seen = now
  }

  /** Undefined where nothing was seen for the pull. */
  of(pull: string): Fetched | undefined {
    const own = [...this.#seen.values()].filter(({ pulls }) => pulls.has(pull))
    if (own.length === 0) return undefined
    const sum = (bytes: (transfer: Transfer) => number) => own.reduce((all, { transfer }) => all + bytes(transfer), 0)
    const isKnown = own.every(({ transfer }) => transfer.totalBytes > 0)
    return {
      doneBytes: sum(({ doneBytes }) => doneBytes),
      ...(isKnown && { totalBytes: sum(({ totalBytes }) => totalBytes) }),
      pulls: new Set(own.flatMap(({ pulls }) => [...pulls])).size,
    }
  }
}

/** Only of a pull whose bytes are its own. */
export const percentOf = ({ doneBytes, totalBytes, pulls }: Fetched): number | undefined =>
  pulls === 1 && totalBytes !== undefined ? Math.min(100, Math.floor((doneBytes / totalBytes) * 100)) : undefined
