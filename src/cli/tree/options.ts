import type { Option } from "../command.ts"

/** Where aim is installed unless another namespace is named. */
export const defaultNamespace = "aim-system"

export const output = (...choices: string[]): Option => ({
  flags: "-o, --output <FORMAT>",
  description: choices.join(", "),
  choices,
})

export const oneRollout = {
  name: "si/NAME",
  description: "which rollout",
  required: true,
  completes: "serviceimages",
} as const

export const from: Option = {
  flags: "--from <FILE>",
  description: "a file of aim dump, gzipped or not, instead of a cluster; - is stdin",
  completes: "files",
}

export const timeout: Option = {
  flags: "--timeout <DURATION>",
  description: "how long: 90s, 10m, 1h30m; 0 checks once",
  default: "10m",
}

export const dryRun: Option = {
  flags: "--dry-run",
  description: "let the server check the change and show it; write nothing",
  same: ["server"],
}
