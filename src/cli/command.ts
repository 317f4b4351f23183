import type { Readable } from "node:stream"
import type { KindPlural } from "#api/names.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Connected } from "#runtime/client/connect.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"

export { Failure, UsageError } from "#operations/refusal.ts"

/** The headings of `aim --help`, in this order. */
export const groups = ["See", "Operate", "Install", "Run"] as const

/** What can be completed by asking the cluster or the shell. */
export type Completes =
  | KindPlural
  | "ours"
  | "rollouts"
  | "tiers"
  | "settings"
  | "operations"
  | "objects"
  | "workloads"
  | "namespaces"
  | "contexts"
  | "files"

export type Argument = {
  name: string
  description: string
  required?: boolean
  /** Takes all remaining words. */
  many?: boolean
  choices?: readonly string[]
  completes?: Completes
}

export type Option = {
  /** As it is typed: `--timeout <DURATION>`, `-w, --watch`. */
  flags: string
  description: string
  default?: string
  choices?: readonly string[]
  completes?: Completes
  /** For an option without a value: words that may follow `=` and mean the same, such as `--dry-run=server`. */
  same?: readonly string[]
  /** May be given several times; the values are collected. */
  many?: boolean
}

/** A command, declared: parsing, help and shell completion derive from it. Its code is loaded when it runs. */
export type Command = {
  name: string
  group?: (typeof groups)[number] // without one it is not listed
  summary: string
  /** Further paragraphs of its help page. */
  details?: readonly string[]
  arguments?: readonly Argument[]
  options?: readonly Option[]
  /** Connects to a cluster: takes --kubeconfig, --context and --namespace too. */
  connects?: boolean
  examples?: readonly { line: string; says: string }[]
  load(): Promise<{ run: Run }>
}

export type Run = (input: Input, world: World) => Promise<Answer>

export type Input = {
  arguments: readonly string[]
  options: Readonly<Record<string, unknown>>
}

/** The result for the shell: text on stdout, and exit code 0 for success or 1 for failure. */
export type Answer = {
  text: string
  exitCode: 0 | 1
  /** What happens next: printed after the text, on stderr. */
  next?: string
}

/** How the output is displayed. */
export type View = {
  isTerminal: boolean
  columns: number
  /** The height of the window; without it, the output is not limited. */
  rows?: number | undefined
  colours: boolean
}

export type Connection = {
  kubeconfig?: string | undefined
  context?: string | undefined
  namespace?: string | undefined
  /** Runs no credential program of a kubeconfig: an unattended process takes a token or certificate. */
  isUnattended?: boolean
}

/** Everything outside its arguments that a command may use. main.ts makes the real one, tests their own. */
export type World = {
  /** `aim`, or `kubectl aim` when it was called that way: for commands that messages suggest. */
  program: string
  version: string
  /** All commands. */
  commands: readonly Command[]
  variables: Readonly<Record<string, string | undefined>>
  view: View
  clock: Clock
  random: Random
  /** For `-` in the place of a file. */
  stdin: Readable
  /** Aborted by the first SIGINT or SIGTERM. */
  signal: AbortSignal
  /** Writes a line of progress to stderr, or nothing with --quiet. */
  say(line: string): void
  /** Writes a part of a long output to stdout; resolves when it is written. */
  write(text: string): Promise<void>
  /** Redraws over the last drawing. Only for a terminal. */
  draw(frame: string): void
  connect(connection: Connection): Promise<Client>
  /** The connection to the server without a client, for code that brings its own. */
  reach(connection: Connection): Promise<Connected>
}

export const connectionOf = ({ options }: Input): Connection => ({
  kubeconfig: options.kubeconfig as string | undefined,
  context: options.context as string | undefined,
  namespace: options.namespace as string | undefined,
})
