import { spawn } from "node:child_process"

/**
 * A page of documentation as a list of things to type. Fenced `console` blocks hold commands after `$ ` and below each
 * what it prints. Words after `console` say where a block is for: `on=real` or `on=up`, `in=background` for what is left
 * running in another terminal. Of a page that is no guide as a whole, only what stands below one heading counts.
 */
export type Step = { command: string; prints: string[]; on: string | undefined; isBackground: boolean; line: number }

export function readGuide(page: string, section?: string): Step[] {
  const steps: Step[] = []
  let heading: string | undefined
  let block: { on: string | undefined; isBackground: boolean } | undefined
  for (const [index, text] of page.split("\n").entries()) {
    if (!block && text.startsWith("## ")) heading = text.slice(3)
    if (section !== undefined && heading !== section) continue
    const fence = /^```(\w*)(.*)$/.exec(text)
    if (fence) {
      const words = new Map(fence[2]!.split(" ").map(word => word.split("=", 2) as [string, string]))
      const isConsole = !block && fence[1] === "console"
      block = isConsole ? { on: words.get("on"), isBackground: words.get("in") === "background" } : undefined
    } else if (block && text.startsWith("$ ")) {
      steps.push({ command: text.slice(2), prints: [], line: index + 1, ...block })
    } else if (block) steps.at(-1)!.prints.push(text)
  }
  return steps
}

/**
 * The lines of `prints` that are not in what was printed, in that order. `…` stands for anything, also for another place
 * in what was printed, where it is a line of its own; and times are alike.
 */
export function missingFrom(output: string, prints: readonly string[]): string[] {
  const lines = output.split("\n").map(sameTimes)
  const missing: string[] = []
  let from = 0
  for (const line of prints) {
    const pattern = patternOf(line)
    const found = line === "…" ? -1 : lines.findIndex((each, index) => index >= from && pattern.test(each))
    if (found < 0 && line !== "…") missing.push(line)
    else from = found + 1
  }
  return missing
}

const patternOf = (line: string) => new RegExp(`^${sameTimes(line).split("…").map(RegExp.escape).join(".*")}$`)

/** Columns are as wide as their longest entry, and a duration is one of many. */
const sameTimes = (line: string) =>
  line
    .replaceAll(/\b(\d+(ms|[smhd]))+\b( \(x\d+ over \w+\))?/g, "TIME")
    .replaceAll(/\s+/g, " ")
    .trim()

/** A refusal on the page must be a refusal in the run. */
export const isRefusal = (line: string) => /^(aim: |The \w+ ")/.test(line)

/** A shell that is typed into: what one command sets, the next one has. */
export function openTerminal(env: Record<string, string>, cwd: string) {
  const shell = spawn("bash", ["--noprofile", "--norc"], { cwd, env: { ...process.env, ...env } })
  let output = ""
  let listen = () => {}
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding("utf8").on("data", text => {
      output += text
      listen()
    })
  shell.stdin.write("exec 2>&1\n")
  const ended = new Promise<void>(resolve => shell.once("close", () => resolve()))
  return {
    get output() {
      return output
    },
    /** Types it and does not wait. */
    type: (command: string) => void shell.stdin.write(`exec ${command} </dev/null\n`),
    async run(command: string): Promise<{ output: string; code: number }> {
      output = ""
      const over = /\n?<over (\d+)>\n$/
      const answered = new Promise<void>(resolve => {
        listen = () => over.test(output) && resolve()
      })
      shell.stdin.write(`{ ${command}\n} </dev/null; echo "<over $?>"\n`)
      await Promise.race([answered, ended])
      const code = Number(over.exec(output)?.[1] ?? -1)
      return { output: output.replace(over, "\n"), code }
    },
    async close() {
      shell.stdin.end()
      shell.kill("SIGTERM")
      await ended
    },
  }
}
