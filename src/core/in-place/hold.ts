import type { Hold } from "./marks.ts"
import { everyOrdinal } from "./names.ts"
import { recordOf } from "./template.ts"

/** How each kind is held, and what gives it back. */
export type HoldKind = {
  /** The hold is in the spec: the kind's own controller replaces no pod. */
  isInForce(spec: object): boolean
  /** The part of the spec that is merged to give it back. */
  released(hold: Hold | undefined): object
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
        : { updateStrategy: { rollingUpdate: { partition: hold?.original?.rollingUpdate?.partition ?? null } } },
  },
  /** A write may drop the block under OnDelete, so all of it comes back. Where the original is lost, it stays as it is. */
  DaemonSet: {
    isInForce: spec => strategyOf(spec).type === "OnDelete",
    released: hold => ({
      updateStrategy: {
        type: hold?.original?.type ?? "RollingUpdate",
        ...(hold?.original && { rollingUpdate: hold.original.rollingUpdate }),
      },
    }),
  },
}
