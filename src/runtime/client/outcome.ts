import { isFailure, type KubeError } from "./errors.ts"

/** What became of a conditional write, as far as it concerns its object alone. */
export type Outcome<T> =
  | { is: "Written"; object: T }
  /** The object has changed since it was read, or is gone. The next event shows how. */
  | { is: "Outdated"; error: KubeError }
  /** The answer is missing: the write may be applied, even later. */
  | { is: "Unknown"; error: KubeError }
  /** The server refuses it. Asking again at once would not help. */
  | { is: "Refused"; error: KubeError }

/** Everything else is trouble with the server itself, and is thrown. */
export async function outcomeOf<T>(write: Promise<T>): Promise<Outcome<T>> {
  try {
    return { is: "Written", object: await write }
  } catch (error) {
    if (isFailure(error, "Conflict", "NotFound")) return { is: "Outdated", error }
    if (isFailure(error, "UnknownOutcome")) return { is: "Unknown", error }
    if (isFailure(error, "Forbidden", "Invalid", "Refused")) return { is: "Refused", error }
    throw error
  }
}

/** A create that finds its object there has what it wanted. */
export const orThere = <T>(create: Promise<T>): Promise<T | undefined> => create.catch(allowing("Exists"))

/** A delete that finds nothing, too. */
export const orGone = <T>(deletion: Promise<T>): Promise<T | undefined> => deletion.catch(allowing("NotFound"))

const allowing = (kind: "Exists" | "NotFound") => (error: unknown) => {
  if (!isFailure(error, kind)) throw error
  return undefined
}

/** The server answers 403 for a missing role, a quota and a webhook alike; only the message of the first differs. */
export const saysNotGranted = (said: string) => /cannot (patch|create|delete) resource/.test(said)
