import type { Command, Option } from "./command.ts"

/** Options of every command that connects to a cluster. */
export const connectionOptions: readonly Option[] = [
  {
    flags: "--kubeconfig <FILE>",
    description: "how to reach the cluster (default: $KUBECONFIG, ~/.kube/config, or the pod's own account)",
    completes: "files",
  },
  { flags: "--context <NAME>", description: "the context of the kubeconfig to use", completes: "contexts" },
  {
    flags: "-n, --namespace <NAMESPACE>",
    description: "the namespace to use (default: that of the context); ServiceImages have none",
    completes: "namespaces",
  },
]

/** Options of `aim` and of every command. */
export const commonOptions: readonly Option[] = [
  { flags: "-q, --quiet", description: "no progress on stderr; only results and errors" },
  { flags: "-h, --help", description: "this help" },
]

/** Both names of an option, and whether it takes a value. */
export function flagsOf({ flags }: Option) {
  const short = /(?:^|\s)-([a-zA-Z])(?=,|\s|$)/.exec(flags)?.[1]
  const long = /--([a-z][a-z-]*)/.exec(flags)![1]!
  const value = /<([^>]+)>/.exec(flags)?.[1]
  return { short, long, value }
}

export const optionsOf = (command: Command): readonly Option[] => [
  ...(command.options ?? []),
  ...(command.connects ? connectionOptions : []),
  ...commonOptions,
]
