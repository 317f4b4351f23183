import { printable } from "#lib/text.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { Failure, UsageError } from "../command.ts"

/** An error for the user: what was tried, what came back, what to do. */
export function explain(error: unknown, program: string): { message: string; exitCode: 1 | 2 } {
  if (error instanceof UsageError) return { message: error.message, exitCode: 2 }
  if (error instanceof Failure) return { message: error.message, exitCode: 1 }
  if (error instanceof KubeError) return { message: explainKube(error, program), exitCode: 1 }
  // By name: the module that throws it is loaded only by commands that connect.
  if (error instanceof Error && error.name === "ConfigError") return { message: printable(chain(error)), exitCode: 1 }
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { message: `this is a bug in ${program}; please report it with these lines:\n${trace}`, exitCode: 1 }
}

function explainKube(error: KubeError, program: string): string {
  const said = printable(chain(error))
  const remedies: Partial<Record<KubeError["kind"], string>> = {
    Forbidden:
      error.status === 401
        ? "The server did not accept your credentials: log in again, or name another --context."
        : "Ask an account with that right, or name another --context.",
    Unreachable: "Is the cluster up, and is this the right one? Name another with --kubeconfig or --context.",
    // The server answers like this for a path it does not serve; for an object that is missing it gives a reason.
    NotFound: error.reason ? "" : `The cluster does not know this kind: ${program} manifests crds | kubectl apply -f -`,
    Throttled: "The server is busy; try again in a moment.",
    UnknownOutcome: "The answer was lost, so the change may or may not have been made: check before you repeat it.",
  }
  const remedy = remedies[error.kind]
  return remedy ? `${said}\n${remedy}` : said
}

/** The message and those of its causes, each once. */
function chain(error: Error): string {
  const messages: string[] = []
  for (let at: unknown = error; at instanceof Error && messages.length < 5; at = at.cause)
    if (!messages.some(message => message.includes((at as Error).message))) messages.push(at.message)
  return messages.join(": ")
}
