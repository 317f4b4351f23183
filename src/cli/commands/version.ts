import type { Run } from "../command.ts"

/** The same as `aim --version`, for those who type it as they do for kubectl. */
export const run: Run = async (_, { version }) => ({ text: `aim ${version}\n`, exitCode: 0 })
