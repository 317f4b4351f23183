import type { Run } from "../command.ts"

/** The same as `aim --version`, named as in kubectl. */
export const run: Run = async (_, { version }) => ({ text: `aim ${version}\n`, exitCode: 0 })
