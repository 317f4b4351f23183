import { CommanderError, Option as Flag, Command as Parser } from "commander"
import { closest } from "#lib/closest.ts"
import type { Command, Input, World } from "./command.ts"
import { commonOptions, flagsOf, optionsOf } from "./options.ts"
import { helpOf, overview, usageOf } from "./render/help.ts"

/** What to do, decided from the arguments alone. Nothing has happened yet. */
export type Decision =
  | { do: "print"; text: string; exitCode: 0 | 2 }
  | { do: "refuse"; message: string }
  | { do: "run"; command: Command; input: Input; quiet: boolean }

/** Reads the command line. Pure: it neither prints nor exits, and the same words always give the same decision. */
export function parse(
  words: readonly string[],
  { program, version, view, commands }: Pick<World, "program" | "version" | "view" | "commands">,
): Decision {
  const page = { program, view, commands }
  if (words.length === 0) return { do: "print", text: overview(page), exitCode: 2 }

  let decision: Decision | undefined
  const parser = new Parser(program)
    .exitOverride()
    .configureOutput({ writeOut: () => {}, writeErr: () => {} })
    .helpOption(false)
    .helpCommand(false)
    .option("-q, --quiet")
    .option("-h, --help")
    .option("--version")
    .argument("[command]")
    .allowExcessArguments()
    .action((word: string | undefined) => {
      const options = parser.opts()
      if (options.version) decision = { do: "print", text: `aim ${version}\n`, exitCode: 0 }
      else if (word !== undefined) decision = { do: "refuse", message: unknownCommand(word, page) }
      else decision = { do: "print", text: overview(page), exitCode: options.help ? 0 : 2 }
    })
  parser
    .command("help")
    .helpOption(false)
    .argument("[command]")
    .action((word: string | undefined) => {
      const command = commands.find(({ name }) => name === word)
      if (command) decision = { do: "print", text: helpOf(command, page), exitCode: 0 }
      else if (word === undefined || word === "help") decision = { do: "print", text: overview(page), exitCode: 0 }
      else decision = { do: "refuse", message: unknownCommand(word, page) }
    })

  for (const command of commands) {
    const sub = parser.command(command.name).helpOption(false)
    // `misfit` checks the arguments and can show the usage; `--help` must work without any.
    sub.argument("[words...]")
    for (const option of optionsOf(command)) {
      if (commonOptions.includes(option)) continue // the parser's own, understood also after the command
      const flag = new Flag(option.flags.replace(/<[^>]+>/, "<value>"))
      if (option.default !== undefined) flag.default(option.default)
      if (option.choices) flag.choices([...option.choices])
      if (option.many) flag.argParser((value: string, before: string[] | undefined) => [...(before ?? []), value])
      sub.addOption(flag)
    }
    sub.action(() => {
      const options: Record<string, unknown> = sub.opts()
      const { help, quiet } = parser.opts()
      if (help) {
        decision = { do: "print", text: helpOf(command, page), exitCode: 0 }
        return
      }
      const problem = misfit(command, sub.args)
      decision = problem
        ? { do: "refuse", message: `${problem}\nUsage: ${usageOf(command, program)}` }
        : { do: "run", command, input: { arguments: sub.args, options }, quiet: Boolean(quiet) }
    })
  }

  try {
    parser.parse(withoutSame(words, commands), { from: "user" })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    const command = commands.find(({ name }) => name === words.find(word => !word.startsWith("-")))
    const remedy = command ? `${program} ${command.name} --help` : `${program} --help`
    return { do: "refuse", message: `${error.message.replace(/^error: /, "")}\nFor help: ${remedy}` }
  }
  return decision ?? { do: "print", text: overview(page), exitCode: 2 }
}

/** `--dry-run=server`, as for kubectl, where that is what `--dry-run` does. */
function withoutSame(words: readonly string[], commands: readonly Command[]): string[] {
  const command = commands.find(({ name }) => name === words.find(word => !word.startsWith("-")))
  const spelt = new Map<string, string>(
    (command?.options ?? []).flatMap(option => {
      const flag = `--${flagsOf(option).long}`
      return (option.same ?? []).map(word => [`${flag}=${word}`, flag] as const)
    }),
  )
  return words.map(word => spelt.get(word) ?? word)
}

/** What is wrong with the arguments, before the command is even loaded. */
function misfit(command: Command, given: readonly string[]): string | undefined {
  const known = command.arguments ?? []
  for (const [i, { name, required, choices, many }] of known.entries()) {
    if (required && given[i] === undefined) return `${command.name} needs ${name}`
    for (const word of many ? given.slice(i) : given.slice(i, i + 1))
      if (choices && !choices.includes(word)) {
        const meant = closest(word, choices)
        return `${word} is not a ${name}: write ${choices.join(", ")}${meant ? ` (did you mean ${meant}?)` : ""}`
      }
  }
  if (!known.at(-1)?.many && given.length > known.length)
    return `${command.name} does not take ${given.slice(known.length).join(" ")}`
  return undefined
}

function unknownCommand(word: string, { program, commands }: Pick<World, "program" | "commands">): string {
  const names = commands.filter(command => command.group).map(({ name }) => name)
  const meant = closest(word, [...names, "help"])
  return `there is no command ${word}${meant ? `; did you mean ${program} ${meant}?` : ""}\nFor help: ${program} --help`
}
