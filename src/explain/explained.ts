import type { Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Inventory } from "./inventory.ts"
import type { Reading } from "./reading.ts"

/** What `aim why`, `plan`, `dump` and `--from` need of a kind. `src/explain/<kind>/index.ts` exports it. */
export type Explained = {
  /** Of every namespace, or of one. */
  reading(where: { namespace?: string | undefined }): Reading
  /**
   * Reads the inventory once, and then answers about any of its objects. Absent where the command line has further
   * questions about a kind, and therefore asks them itself.
   */
  explainer?(sight: { inventory: Inventory; now: Instant }): (object: KubeObject) => Promise<Explanation>
}

/** Why an object is in its state, and what its controller does next. */
export type Explanation = {
  /** The word of the status. */
  reason: string
  /** The sentence of the status. */
  message: string
  /** What the reason means. */
  meaning?: string | undefined
  since?: Instant | undefined
  /** What is known of its parts, a sentence each. */
  details?: readonly string[]
  /** What is written next, a phrase for each object. Absent where only the status was read. */
  next?: readonly string[]
  /** When time alone changes the answer. */
  lookAgainAt?: Instant | undefined
}
