import type { Hold } from "./marks.ts"
import { everyOrdinal } from "./names.ts"
import { recordOf } from "./template.ts"

/** How each kind is held, and what gives it back. */
export type HoldKind = {
  /** The hold is in the spec: the kind's own controller replaces no pod. */
  isInForce(spec: object): boolean
  /** The part of the spec that is merged to give it back. The server accepts it, whatever the annotation says. */
  released(hold: Hold | undefined, spec: object): object
}

type Json = Record<string, unknown>
const strategyOf = (spec: object): Json => recordOf((spec as Json).updateStrategy)

export type HeldKind = "Deployment" | "StatefulSet" | "DaemonSet"

export const holdKinds: Readonly<Record<HeldKind, HoldKind>> = {
  /** A Deployment that its owner has paused is never held: there was no pause before. */
  Deployment: {
    isInForce: spec => (spec as Json).paused === true,
    released: () => ({ paused: null }),
  },
  /** One with a partition of its owner's is never held. The rest of the block stays as it is during the hold. */
  StatefulSet: {
    isInForce: spec => recordOf(strategyOf(spec).rollingUpdate).partition === everyOrdinal,
    released: hold =>
      hold?.original?.type === "OnDelete"
        ? // Written by its owner in between.
          { updateStrategy: { type: "OnDelete", rollingUpdate: null } }
        : { updateStrategy: { rollingUpdate: { partition: partitionIn(hold?.original?.rollingUpdate) } } },
  },
  /**
   * A write may drop the block under OnDelete, so all of it comes back. Where the original is lost, the block stays as it
   * is, unless the server would refuse it: under OnDelete it was never judged.
   */
  DaemonSet: {
    isInForce: spec => strategyOf(spec).type === "OnDelete",
    released(hold, spec) {
      const present = strategyOf(spec).rollingUpdate as Block
      const before = blockIn(hold?.original ? hold.original.rollingUpdate : recordOf(present))
      // What its owner has written while a hold stood, perhaps for months, is the owner's wish.
      const rollingUpdate = (hold?.isStanding && blockIn(present)) || before
      return { updateStrategy: { type: "RollingUpdate", rollingUpdate } }
    },
  },
}

type Block = Readonly<Record<string, unknown>> | null | undefined

/** Null: the server's own default. */
const partitionIn = (block: Block) => (isCount(block?.partition) ? block.partition : null)

/** As the server judges the block of a DaemonSet: of both numbers one is zero, and not both. */
function blockIn(block: Block): object | null {
  const { maxUnavailable = 1, maxSurge = 0 } = block ?? {}
  const isGood = isAmount(maxUnavailable) && isAmount(maxSurge) && isZero(maxUnavailable) !== isZero(maxSurge)
  return block && isGood ? { maxUnavailable: block.maxUnavailable ?? null, maxSurge: block.maxSurge ?? null } : null
}

/** A share of pods, in RE2's syntax: the policy keeps nothing else. */
export const sharePattern = "^0*([0-9]{1,2}|100)%$"
export const zeroPattern = "^0+%?$"

const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0
const isAmount = (value: unknown): value is number | string =>
  isCount(value) || (typeof value === "string" && new RegExp(sharePattern).test(value))
const isZero = (amount: number | string) => new RegExp(zeroPattern).test(String(amount))
