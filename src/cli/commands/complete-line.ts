import type { Command, Completes, Option, Run } from "../command.ts"
import { commonOptions, flagsOf, optionsOf } from "../options.ts"
import { candidates } from "./complete.ts"

/** What can come at the end of a line, as far as the line itself shows. */
export type Wanted = {
  current: string
  choices?: readonly string[] | undefined
  completes?: Completes | undefined
  /** The first argument: the rollout that tiers and operations are of. */
  of: string
  connection: Readonly<Record<string, string>>
}

const takesValue = (option: Option) => flagsOf(option).value !== undefined
const namesOf = (option: Option) => {
  const { short, long } = flagsOf(option)
  return [...(short ? [`-${short}`] : []), `--${long}`]
}

/** Reads an unfinished line: the last word is what was typed so far. */
export function wanted(words: readonly string[], all: readonly Command[]): Wanted {
  const commands = all.filter(({ group }) => group)
  const current = words.at(-1) ?? ""
  const before = words.slice(0, -1)
  const connection: Record<string, string> = {}
  const given: string[] = []
  let command: Command | undefined
  let pending: Option | undefined
  const options = () => (command ? optionsOf(command) : commonOptions)
  for (const word of before) {
    if (pending) {
      const { long } = flagsOf(pending)
      if (["kubeconfig", "context", "namespace"].includes(long)) connection[long] = word
      pending = undefined
    } else if (word.startsWith("-")) pending = options().find(each => takesValue(each) && namesOf(each).includes(word))
    else if (command) given.push(word)
    else command = commands.find(({ name }) => name === word) ?? (word === "help" ? helpCommand(commands) : undefined)
  }
  const found = { current, of: given[0] ?? "", connection }
  if (pending) return { ...found, choices: pending.choices, completes: pending.completes }
  if (current.startsWith("-")) return { ...found, choices: options().flatMap(namesOf) }
  if (!command) return { ...found, choices: [...commands.map(({ name }) => name), "help"] }
  const known = command.arguments ?? []
  const argument = known[given.length] ?? (known.at(-1)?.many ? known.at(-1) : undefined)
  return { ...found, choices: argument?.choices, completes: argument?.completes }
}

const helpCommand = (commands: readonly Command[]): Command => ({
  name: "help",
  summary: "",
  arguments: [{ name: "COMMAND", description: "", choices: commands.map(({ name }) => name) }],
  load: async () => {
    throw new Error("help is printed by the parser")
  },
})

/** Directives of cobra, which kubectl passes on to the shell. */
const [noSpace, noFiles] = [2, 4]

/** For `kubectl_complete-aim`, which kubectl runs with the words after `kubectl aim`: candidates, then a directive. */
export const run: Run = async (input, world) => {
  const { current, choices, completes, of, connection } = wanted(input.arguments, world.commands)
  const names = choices
    ? choices.filter(each => each.startsWith(current))
    : completes
      ? await candidates({ what: completes, prefix: current, of }, { arguments: [], options: connection }, world)
      : []
  const isPart = names.some(name => /[/=]$/.test(name))
  const directive = completes === "files" ? 0 : noFiles! + (isPart ? noSpace! : 0)
  return { text: `${[...names, `:${directive}`].join("\n")}\n`, exitCode: 0 }
}
