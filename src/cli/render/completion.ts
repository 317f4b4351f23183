import { kindNames } from "#api/names.ts"
import type { Command, Completes, Option } from "../command.ts"
import { commonOptions, flagsOf, optionsOf } from "../options.ts"

export type Shell = "bash" | "zsh" | "fish"

/** A completion script, made from the same declarations as parser and help. Names of objects come from the cluster. */
export const completionScript = (shell: Shell, commands: readonly Command[]): string =>
  ({ bash, zsh, fish })[shell](commands.filter(command => command.group))

const flagWords = (options: readonly Option[]) =>
  options.flatMap(option => {
    const { short, long } = flagsOf(option)
    return [...(short ? [`-${short}`] : []), `--${long}`]
  })

/** What they offer may be the beginning of a word. */
const isPart: ReadonlySet<Completes> = new Set(["settings", "objects", "workloads"])

const takesValue = (option: Option) => flagsOf(option).value !== undefined

/** The first argument of a command, and the following ones where they differ. */
const argumentsOf = ({ arguments: [first, second] = [] }: Command) => ({ first, second })

function bash(commands: readonly Command[]): string {
  const names = [...commands.map(({ name }) => name), "help"].join(" ")
  const candidates = (from: { choices?: readonly string[]; completes?: Completes } | undefined) => {
    if (from?.choices) return `COMPREPLY=($(compgen -W "${from.choices.join(" ")}" -- "$current"))`
    if (from?.completes === "files") return `COMPREPLY=($(compgen -f -- "$current"))`
    if (from?.completes === "contexts")
      return `COMPREPLY=($(compgen -W "$(kubectl config get-contexts -o name 2>/dev/null)" -- "$current"))`
    if (from?.completes && isPart.has(from.completes))
      return `COMPREPLY=($(compgen -W "$(_aim_ask ${from.completes})" -- "$current")); _aim_part`
    if (from?.completes) return `COMPREPLY=($(compgen -W "$(_aim_ask ${from.completes})" -- "$current"))`
    return "COMPREPLY=()"
  }
  const words = (command: Command) => {
    const { first, second } = argumentsOf(command)
    return second ? `if ((before == 0)); then ${candidates(first)}; else ${candidates(second)}; fi` : candidates(first)
  }
  const branches = commands.map(command => {
    const options = optionsOf(command)
    const values = options
      .filter(takesValue)
      .map(option => `        ${flagWords([option]).join("|")}) ${candidates(option)}; return ;;`)
    return [
      `    ${command.name})`,
      ...(values.length > 0 ? ['      case "$previous" in', ...values, "      esac"] : []),
      `      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W "${flagWords(options).join(" ")}" -- "$current"))`,
      `      else ${words(command)}; fi ;;`,
    ].join("\n")
  })
  const valued = [...new Set(commands.flatMap(command => flagWords(optionsOf(command).filter(takesValue))))].join("|")
  return `# bash completion for aim: source it, or put it where bash-completion looks.
_aim_ask() {
  local connection=() i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      --kubeconfig|--context|-n|--namespace) connection+=("\${COMP_WORDS[i]}" "\${COMP_WORDS[i+1]}") ;;
    esac
  done
  "\${COMP_WORDS[0]}" __complete "$1" "$current" "$first" "\${connection[@]}" 2>/dev/null
}
# A word that ends in = or / is not finished: no space behind it.
_aim_part() { [[ \${COMPREPLY[0]-} == *[=/] ]] && compopt -o nospace 2>/dev/null; return 0; }
_aim() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command="" first="" before=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      ${valued}) ((i++)) ;;
      -*) ;;
      *)
        if [[ -z $command ]]; then command=\${COMP_WORDS[i]}
        elif ((before++ == 0)); then first=\${COMP_WORDS[i]}; fi ;;
    esac
  done
  case "$command" in
    "") COMPREPLY=($(compgen -W "${names} ${flagWords(commonOptions).join(" ")} --version" -- "$current")) ;;
    help) COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")}" -- "$current")) ;;
${branches.join("\n")}
  esac
}
complete -F _aim aim
`
}

const zshQuote = (text: string) =>
  text.replaceAll("'", "'\\''").replaceAll("[", "\\[").replaceAll("]", "\\]").replaceAll(":", "\\:")

function zsh(commands: readonly Command[]): string {
  const action = (from: { choices?: readonly string[]; completes?: Completes } | undefined) => {
    if (from?.choices) return `(${from.choices.join(" ")})`
    if (from?.completes === "files") return "_files"
    if (from?.completes === "contexts") return "_aim_contexts"
    return from?.completes ? `_aim_${from.completes}` : " "
  }
  const branches = commands.map(command => {
    const specs = optionsOf(command).map(option => {
      const { short, long, value } = flagsOf(option)
      const names = short ? `'(-${short} --${long})'{-${short},--${long}}` : `'${option.many ? "*" : ""}--${long}`
      const body = `[${zshQuote(option.description)}]${value ? `:${zshQuote(value)}:${action(option)}` : ""}'`
      return short ? `${names}'${body}` : `${names}${body}`
    })
    const { first, second } = argumentsOf(command)
    for (const argument of [first, second])
      if (argument) specs.push(`'${argument.many ? "*" : "1"}:${zshQuote(argument.name)}:${action(argument)}'`)
    return `        ${command.name}) _arguments -s ${specs.map(spec => `\\\n          ${spec}`).join(" ")} ;;`
  })
  return `#compdef aim
# zsh completion for aim: put it as _aim into a folder of your fpath.
_aim_ask() {
  local -a connection
  local i
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in --kubeconfig|--context|-n|--namespace) connection+=($words[i] $words[i+1]) ;; esac
  done
  local -a found
  found=(\${(f)"$(aim __complete $1 "$PREFIX" "\${words[(r)s*/*]}" $connection 2>/dev/null)"})
  compadd "\${@:2}" -a found
}
${kindNames.map(({ plural }) => `_aim_${plural}() { _aim_ask ${plural} }`).join("\n")}
_aim_ours() { _aim_ask ours }
_aim_rollouts() { _aim_ask rollouts -S '' }
_aim_tiers() { _aim_ask tiers }
_aim_settings() { _aim_ask settings -S '' }
_aim_operations() { _aim_ask operations }
_aim_objects() { _aim_ask objects -S '' }
_aim_workloads() { _aim_ask workloads -S '' }
_aim_namespaces() { _aim_ask namespaces }
_aim_contexts() { local -a found; found=(\${(f)"$(kubectl config get-contexts -o name 2>/dev/null)"}); compadd -a found }
_aim() {
  local context state line
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    '${name}:${zshQuote(summary)}'`).join("\n")}
    'help:arguments, options and examples of one command'
  )
  _arguments -C '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $words[1] in
        help) _describe command commands ;;
${branches.join("\n")}
      esac ;;
  esac
}
if [ "$funcstack[1]" = "_aim" ]; then _aim "$@"; else compdef _aim aim; fi
`
}

function fish(commands: readonly Command[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`
  const names = [...commands.map(({ name }) => name), "help"].join(" ")
  const candidates = (from: { choices?: readonly string[]; completes?: Completes } | undefined) => {
    if (from?.choices) return ` -a ${quote(from.choices.join(" "))}`
    if (from?.completes === "contexts") return " -a '(kubectl config get-contexts -o name 2>/dev/null)'"
    if (from?.completes === "objects" || from?.completes === "workloads" || from?.completes === "rollouts")
      return ` -a '(aim __complete ${from.completes} (commandline -ct) 2>/dev/null)'`
    if (from?.completes === "tiers" || from?.completes === "settings" || from?.completes === "operations")
      return ` -a '(aim __complete ${from.completes} "" (commandline -opc | string match "s*/*" | head -n 1) 2>/dev/null)'`
    if (from?.completes && from.completes !== "files") return ` -a '(aim __complete ${from.completes} 2>/dev/null)'`
    return ""
  }
  const lines = commands.flatMap(command => {
    const here = `complete -c aim -n '__fish_seen_subcommand_from ${command.name}'`
    const { first, second } = argumentsOf(command)
    return [
      `complete -c aim -n 'not __fish_seen_subcommand_from ${names}' -a ${command.name} -d ${quote(command.summary)}`,
      ...optionsOf(command).map(option => {
        const { short, long, value } = flagsOf(option)
        const flags = `${short ? `-s ${short} ` : ""}-l ${long}`
        // -r: a value must follow; -F: it is a file.
        const needs = value ? (option.completes === "files" ? " -r -F" : " -x") : ""
        return `${here} ${flags}${needs}${candidates(option)} -d ${quote(option.description)}`
      }),
      ...[first, second].flatMap(argument =>
        argument && candidates(argument) ? [`${here}${candidates(argument)}`] : [],
      ),
    ]
  })
  return `# fish completion for aim: put it into ~/.config/fish/completions/aim.fish
complete -c aim -f
${lines.join("\n")}
complete -c aim -n '__fish_seen_subcommand_from help' -a ${quote(names)}
`
}
