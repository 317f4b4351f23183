import type { Decided } from "#operations/change.ts"
import type { Answer, Input } from "./command.ts"

export const dryRunOf = ({ options }: Input): boolean => options.dryRun === true

/** What was done, or would be. */
export const doneWords = (lines: string, isDryRun: boolean): string =>
  lines
    .split("\n")
    .map(line => `${line}${isDryRun ? " (dry run: nothing was written)" : ""}`)
    .join("\n")

/** What follows, or would follow. */
export const nextWords = (next: string, isDryRun: boolean): string =>
  isDryRun && next ? `If it were written:\n${next}` : next

/** What a decision about an object did or would do, and what follows. */
export const told = <O>(
  { done, next, object }: Decided<O> & { object: O },
  isDryRun: boolean,
): Answer & { next: string } => ({
  text: `${doneWords(done, isDryRun)}\n`,
  exitCode: 0,
  next: nextWords(next(object), isDryRun),
})
