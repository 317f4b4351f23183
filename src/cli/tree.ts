import type { Command } from "./command.ts"
import { hidden } from "./tree/hidden.ts"
import { install } from "./tree/install.ts"
import { operate } from "./tree/operate.ts"
import { run } from "./tree/run.ts"
import { see } from "./tree/see.ts"

/** Every command, in the order of `aim --help`. Nothing is loaded before it is run: `aim --version` stays fast. */
export const commands: readonly Command[] = [...run, ...see, ...operate, ...install, ...hidden]
