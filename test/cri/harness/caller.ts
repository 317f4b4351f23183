import { connectRuntime } from "#runtime/cri/index.ts"

// A process that stops one container: caller.ts SOCKET ID GRACE-SECONDS. It sends a message when the stop is under way.

const [socketPath = "", id = "", graceSeconds] = process.argv.slice(2)
const runtime = connectRuntime({ socketPath })
const stop = runtime.stopContainer(id, { graceSeconds: Number(graceSeconds) })
// A later call on the same connection has been answered.
await runtime.version()
process.send?.("under way")
await stop
runtime.close()
