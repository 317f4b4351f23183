// Starts the Dicom controller; ends on SIGINT and SIGTERM when the work in hand is done.
import { parseArgs } from "node:util"
import { connect } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { createLogger } from "#runtime/log.ts"
import { runManager } from "#runtime/manager.ts"
import { systemRandom } from "#runtime/random.ts"
import { dicomController } from "./controller.ts"

const help = `Gives every Dicom a Deployment, and reports on it.

  examples/dicom/run [options]

  --kubeconfig FILE      which cluster; else KUBECONFIG, ~/.kube/config, or the pod it runs in
  --context NAME         which context of that file
  -n, --namespace NAME   only the Dicoms of this namespace; everywhere if left out
  --help                 this text
`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kubeconfig: { type: "string" },
      context: { type: "string" },
      namespace: { type: "string", short: "n" },
      help: { type: "boolean" },
    },
  })
  if (values.help) return void process.stdout.write(help)

  const stopping = new AbortController()
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stopping.abort(new Error(name)))

  const { transport, describe } = await connect({ ...values, allowExec: true })
  const log = createLogger()
  log.info("starting", { server: describe, namespace: values.namespace ?? "(all)" })
  process.exitCode = await runManager({
    transport,
    controllers: [dicomController(values.namespace === undefined ? {} : { namespace: values.namespace })],
    leaderElect: false, // every write is conditional, so a second controller is a waste and not a danger
    clock: systemClock,
    random: systemRandom,
    log,
    signal: stopping.signal,
    userAgent: "dicom-controller",
  })
}

try {
  await main()
} catch (error) {
  process.stderr.write(`dicom: ${error instanceof Error ? error.message : error}\n`)
  // 2 for a wrong option, as everywhere.
  process.exitCode = String((error as { code?: string }).code).startsWith("ERR_PARSE_ARGS") ? 2 : 1
}
