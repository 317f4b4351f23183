import { isFailure } from "#runtime/client/errors.ts"
import { type Outcome, outcomeOf } from "#runtime/client/outcome.ts"

/** A create that finds its object there has what it wanted. */
export async function outcomeOfCreate(create: Promise<unknown>): Promise<Outcome<unknown>> {
  return outcomeOf(
    create.catch(error => {
      if (!isFailure(error, "Exists")) throw error
    }),
  )
}

/** A delete that finds nothing, too. */
export async function outcomeOfDelete(deletion: Promise<void>): Promise<Outcome<unknown>> {
  return outcomeOf(
    deletion.catch(error => {
      if (!isFailure(error, "NotFound")) throw error
    }),
  )
}
