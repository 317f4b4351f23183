import type { Run } from "../command.ts"
import { completionScript, type Shell } from "../render/completion.ts"

export const run: Run = async ({ arguments: [shell] }, { commands }) => ({
  text: completionScript(shell as Shell, commands),
  exitCode: 0,
})
