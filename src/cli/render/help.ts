import type { Argument, Command, Option, View } from "../command.ts"
import { groups } from "../command.ts"
import { commonOptions, connectionOptions } from "../options.ts"
import { paint } from "./paint.ts"
import { readableWidth, twoColumns, wrapped } from "./wrap.ts"

export type Page = { program: string; view: View; commands: readonly Command[] }

/** `aim --help`: what it is, every command in a line, something to paste, where to read on. */
export function overview({ program, view, commands }: Page): string {
  const { bold, dim, cyan } = paint(view)
  const columns = readableWidth(view.columns)
  const listed = commands.filter(command => command.group)
  const width = Math.max(...listed.map(command => command.name.length))
  const sections = groups
    .map(group => ({ group, members: listed.filter(command => command.group === group) }))
    .filter(({ members }) => members.length > 0)
    .map(({ group, members }) =>
      [
        bold(group),
        twoColumns(
          members.map(({ name, summary }) => [`  ${cyan(name.padEnd(width))}`, summary] as const),
          columns,
        ),
      ].join("\n"),
    )
  const examples = [
    ["manifests | kubectl apply -f -", "install into the current cluster"],
    ["grant shop", "let the controllers change the workloads of a namespace"],
    ["status -w", "watch rollouts live"],
    ["wait si/NAME --timeout 30m", "block a pipeline until one is complete"],
  ]
  const what =
    "decides which container image every workload of a fleet runs, rolls it out tier by tier, and can always say why."
  return `${[
    twoLines(bold(program), what, program.length, columns),
    `${bold("Usage")}  ${program} COMMAND [OPTIONS]`,
    ...sections,
    `${bold("Examples")}\n${twoColumns(
      examples.map(([line, says]) => [`  ${program} ${line}`, dim(says!)] as const),
      columns,
    )}`,
    `${bold("Options")}\n${optionLines([...commonOptions, versionOption], view)}`,
    `${bold("Read on")}\n${twoColumns(
      [
        [`  ${program} help COMMAND`, dim("arguments, options and examples of one command")],
        ["  docs/cli.md", dim("every command with its output")],
        ["  docs/kinds/serviceimage.md", dim("what to write into a ServiceImage")],
      ],
      columns,
    )}`,
  ].join("\n\n")}\n`
}

const versionOption: Option = { flags: "--version", description: "the version, and nothing else" }

/** `aim help COMMAND`. */
export function helpOf(command: Command, { program, view }: Page): string {
  const { bold, dim } = paint(view)
  const columns = readableWidth(view.columns)
  const title = `${program} ${command.name}`
  const parts = [
    twoLines(bold(title), command.summary, title.length, columns),
    `${bold("Usage")}  ${usageOf(command, program)}`,
  ]
  if (command.details) parts.push(wrapped(command.details.join(" "), columns).join("\n"))
  if (command.arguments?.length)
    parts.push(
      `${bold("Arguments")}\n${twoColumns(
        command.arguments.map(({ name, description }) => [`  ${name}`, description] as const),
        columns,
      )}`,
    )
  if (command.options?.length) parts.push(`${bold("Options")}\n${optionLines(command.options, view)}`)
  if (command.connects) parts.push(`${bold("Cluster")}\n${optionLines(connectionOptions, view)}`)
  parts.push(`${bold("Everywhere")}\n${optionLines(commonOptions, view)}`)
  if (command.examples?.length)
    parts.push(
      `${bold("Examples")}\n${twoColumns(
        command.examples.map(({ line, says }) => [`  ${program} ${line}`, dim(says)] as const),
        columns,
      )}`,
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

/** A word and its description, which continues below itself. */
const twoLines = (word: string, text: string, width: number, columns: number) =>
  wrapped(text, columns - width - 2)
    .map((line, index) => `${index === 0 ? word : " ".repeat(width)}  ${line}`)
    .join("\n")

const optionLines = (options: readonly Option[], view: View) =>
  twoColumns(
    options.map(option => {
      // Long names are aligned, with or without a short one.
      const flags = option.flags.replace(/[<>]/g, "")
      const fallback = option.default === undefined ? "" : ` ${paint(view).dim(`(default: ${option.default})`)}`
      return [flags.startsWith("--") ? `      ${flags}` : `  ${flags}`, option.description + fallback] as const
    }),
    readableWidth(view.columns),
  )
