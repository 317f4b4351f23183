import type { Argument, Command, Option, View } from "../command.ts"
import { groups } from "../command.ts"
import { commonOptions, connectionOptions } from "../options.ts"
import { paint } from "./paint.ts"

export type Page = { program: string; view: View; commands: readonly Command[] }

/** `aim --help`: what it is, every command in a line, something to paste, where to read on. */
export function overview({ program, view, commands }: Page): string {
  const { bold, dim, cyan } = paint(view)
  const listed = commands.filter(command => command.group)
  const width = Math.max(...listed.map(command => command.name.length)) + 3
  const sections = groups
    .map(group => ({ group, members: listed.filter(command => command.group === group) }))
    .filter(({ members }) => members.length > 0)
    .map(({ group, members }) =>
      [bold(group), ...members.map(({ name, summary }) => `  ${cyan(name.padEnd(width))}${summary}`)].join("\n"),
    )
  const examples = [
    ["manifests | kubectl apply -f -", "install into the current cluster"],
    ["grant shop", "let it change the workloads of a namespace"],
    ["status -w", "watch rollouts live"],
    ["wait si/NAME --timeout 30m", "block a pipeline until one is complete"],
  ]
  return `${[
    `${bold(program)}  decides which container image every workload of a fleet runs, brings it there tier by tier,\n${" ".repeat(program.length)}  and can always say why.`,
    `${bold("Usage")}  ${program} COMMAND [OPTIONS]`,
    ...sections,
    `${bold("Examples")}\n${table(examples.map(([line, says]) => [`  ${program} ${line}`, dim(says!)]))}`,
    `${bold("Options")}\n${optionLines([...commonOptions, versionOption], view)}`,
    `${bold("Read on")}\n${table([
      [`  ${program} help COMMAND`, dim("arguments, options and examples of one command")],
      ["  docs/cli.md", dim("every command with its output")],
      ["  docs/kinds/serviceimage.md", dim("what to write into a ServiceImage")],
    ])}`,
  ].join("\n\n")}\n`
}

const versionOption: Option = { flags: "--version", description: "the version, and nothing else" }

/** `aim help COMMAND`. */
export function helpOf(command: Command, { program, view }: Page): string {
  const { bold, dim } = paint(view)
  const parts = [
    `${bold(`${program} ${command.name}`)}  ${command.summary}`,
    `${bold("Usage")}  ${usageOf(command, program)}`,
  ]
  if (command.details) parts.push(command.details.join("\n"))
  if (command.arguments?.length)
    parts.push(
      `${bold("Arguments")}\n${table(command.arguments.map(({ name, description }) => [`  ${name}`, description]))}`,
    )
  if (command.options?.length) parts.push(`${bold("Options")}\n${optionLines(command.options, view)}`)
  if (command.connects) parts.push(`${bold("Cluster")}\n${optionLines(connectionOptions, view)}`)
  parts.push(`${bold("Everywhere")}\n${optionLines(commonOptions, view)}`)
  if (command.examples?.length)
    parts.push(
      `${bold("Examples")}\n${table(command.examples.map(({ line, says }) => [`  ${program} ${line}`, dim(says)]))}`,
    )
  return `${parts.join("\n\n")}\n`
}

/** `aim wait si/NAME... [OPTIONS]` */
export const usageOf = (command: Command, program: string) =>
  [program, command.name, ...(command.arguments ?? []).map(placeholder), "[OPTIONS]"].join(" ")

const placeholder = ({ name, required, many }: Argument) => {
  const shown = `${name}${many ? "..." : ""}`
  return required ? shown : `[${shown}]`
}

const optionLines = (options: readonly Option[], view: View) =>
  table(
    options.map(option => {
      // Long names stand below each other whether or not there is a short one.
      const flags = option.flags.replace(/[<>]/g, "")
      const fallback = option.default === undefined ? "" : paint(view).dim(` (default: ${option.default})`)
      return [flags.startsWith("--") ? `      ${flags}` : `  ${flags}`, option.description + fallback]
    }),
  )

function table(rows: readonly (readonly (string | undefined)[])[]): string {
  const width = Math.max(...rows.map(([left]) => left!.length))
  // A left side that is far longer than the others would push everything out of the window: it gets a line of its own.
  const limit = Math.min(width, 64)
  return rows
    .map(([left, right]) =>
      left!.length > limit ? `${left}\n${" ".repeat(limit)}   ${right}` : `${left!.padEnd(limit)}   ${right}`,
    )
    .join("\n")
}
