import { prepareOamRuntime } from "#tools/kube/binaries.ts"

// Builds the OAM runtime, once, and prints the folder that has it.
const folder = await prepareOamRuntime(line => process.stderr.write(`oam: ${line}\n`))
process.stdout.write(`${folder}\n`)
