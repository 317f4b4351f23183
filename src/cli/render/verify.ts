import { isWell } from "#explain/alternateimagesource/equivalence.ts"
import { printable } from "#lib/text.ts"
import type { View } from "../command.ts"
import type { Verified } from "../commands/verify.ts"
import { paint } from "./paint.ts"
import { tableOf } from "./table.ts"

/** `aim verify`: a line for each image at each repository. */
export function verifyTable(images: readonly Verified[], view: View): string {
  const { green, red, dim } = paint(view)
  const findings = images.flatMap(({ image, repositories }) => repositories.map(finding => ({ image, finding })))
  const rows = findings.map(({ image, finding: { repository, result, message = "" } }) =>
    [image, repository, words(result), message].map(printable),
  )
  return tableOf([["IMAGE", "REPOSITORY", "RESULT", "DETAIL"], ...rows], (cell, row, column) => {
    if (row === 0 || column !== 2) return cell
    const { finding } = findings[row - 1]!
    return finding.result === "Disabled" ? dim(cell) : isWell(finding) ? green(cell) : red(cell)
  })
}

/** `PlatformsMissing` → `platforms missing`. */
const words = (result: string) => result.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase()
