import type { Readable } from "node:stream"
import type { Client } from "#runtime/client/client.ts"
import type { Connected } from "#runtime/client/connect.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"

/** The headings of `aim --help`, in this order. */
export const groups = ["See", "Operate", "Install", "Run"] as const

/** What can be completed by asking the cluster or the shell. */
export type Completes =
  | "serviceimages"
  | "alternateimagesources"
  | "ours"
  | "tiers"
  | "settings"
  | "operations"
  | "objects"
  | "namespaces"
  | "contexts"
  | "files"

export type Argument = {
  name: string
  description: string
  required?: boolean
  /** Takes all that follow. */
  many?: boolean
  choices?: readonly string[]
  completes?: Completes
}

export type Option = {
  /** As the shell sees it: `--timeout <DURATION>`, `-w, --watch`. */
  flags: string
  description: string
  default?: string
  choices?: readonly string[]
  completes?: Completes
  /** Of an option without a value: words that may follow `=` and mean the same, such as `--dry-run=server`. */
  same?: readonly string[]
  /** May be given several times; the values are gathered. */
  many?: boolean
}

/** A command, declared: parsing, help and shell completion derive from it. What it does is loaded when it is asked for. */
export type Command = {
  name: string
  group?: (typeof groups)[number] // without one it is not listed
  summary: string
  /** Further paragraphs of its help page. */
  details?: readonly string[]
  arguments?: readonly Argument[]
  options?: readonly Option[]
  /** Talks to a cluster: takes --kubeconfig, --context and --namespace too. */
  connects?: boolean
  examples?: readonly { line: string; says: string }[]
  load(): Promise<{ run: Run }>
}

export type Run = (input: Input, world: World) => Promise<Answer>

export type Input = {
  arguments: readonly string[]
  options: Readonly<Record<string, unknown>>
}

/** What the shell gets: text on stdout, and 0 for done or 1 for failed. */
export type Answer = {
  text: string
  exitCode: 0 | 1
  /** What is going to happen because of it: said after the text, on stderr. */
  next?: string
}

/** How the reader looks at the output. */
export type View = {
  isTerminal: boolean
  columns: number
  /** Of the window; without it, what is drawn may be as long as it likes. */
  rows?: number | undefined
  colours: boolean
}

export type Connection = {
  kubeconfig?: string | undefined
  context?: string | undefined
  namespace?: string | undefined
  /** No program that a kubeconfig names is run for credentials: what runs unattended takes a token or certificate. */
  isUnattended?: boolean
}

/** All a command knows of the world outside its arguments. main.ts makes the real one, tests their own. */
export type World = {
  /** `aim`, or `kubectl aim` when it was called that way: for the commands we tell people to type. */
  program: string
  version: string
  /** Every command there is. */
  commands: readonly Command[]
  variables: Readonly<Record<string, string | undefined>>
  view: View
  clock: Clock
  random: Random
  /** For `-` in the place of a file. */
  stdin: Readable
  /** Aborted by the first SIGINT or SIGTERM. */
  signal: AbortSignal
  /** A line on how things go: to stderr, and nowhere with --quiet. */
  say(line: string): void
  /** A part of an answer that is too long to be held as one: to stdout, resolved when it has left. */
  write(text: string): Promise<void>
  /** Draws over what was drawn before. Only for a view that is a terminal. */
  draw(frame: string): void
  connect(connection: Connection): Promise<Client>
  /** The way to the server without a client on it, for what brings its own. */
  reach(connection: Connection): Promise<Connected>
}

/** The user has to type something else: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError"
}

/** It did not work out: exit code 1, with the message as it is. */
export class Failure extends Error {
  override name = "Failure"
}

export const connectionOf = ({ options }: Input): Connection => ({
  kubeconfig: options.kubeconfig as string | undefined,
  context: options.context as string | undefined,
  namespace: options.namespace as string | undefined,
})
