import { describe, expect, test } from "vitest"
import type { View } from "./command.ts"
import { parse } from "./program.ts"
import { commands } from "./tree.ts"

const view: View = { isTerminal: false, columns: 80, colours: false }
const decide = (line: string, program = "aim") =>
  parse(line === "" ? [] : line.split(" "), { program, version: "1.2.3", view, commands })

describe("what a line asks for", () => {
  test("nothing: the overview, as wrong usage", () => {
    expect(decide("")).toMatchObject({ do: "print", exitCode: 2, text: expect.stringContaining("Usage  aim COMMAND") })
  })
  test("help and version are printed, however they are asked for", () => {
    for (const line of ["--help", "-h", "help", "help help"])
      expect(decide(line)).toMatchObject({
        do: "print",
        exitCode: 0,
        text: expect.stringContaining("Usage  aim COMMAND"),
      })
    for (const line of ["help wait", "wait --help", "wait -h si/x", "wait si/x --timeout 5m --help"])
      expect(decide(line)).toMatchObject({
        do: "print",
        exitCode: 0,
        text: expect.stringContaining("Usage  aim wait si/NAME..."),
      })
    expect(decide("--version")).toEqual({ do: "print", exitCode: 0, text: "aim 1.2.3\n" })
  })
  test("a command with its words, options and defaults", () => {
    expect(decide("wait si/a si/b --context c --kubeconfig=/f -n x -q")).toMatchObject({
      do: "run",
      quiet: true,
      command: { name: "wait" },
      input: {
        arguments: ["si/a", "si/b"],
        options: { timeout: "10m", context: "c", kubeconfig: "/f", namespace: "x" },
      },
    })
  })
  test("options that are repeated are gathered, and a --no- is a no", () => {
    expect(decide("manifests rbac --for a.b --for c.d")).toMatchObject({ input: { options: { for: ["a.b", "c.d"] } } })
    expect(decide("controller --no-leader-elect")).toMatchObject({ input: { options: { leaderElect: false } } })
    expect(decide("controller")).toMatchObject({ input: { options: { leaderElect: true, logLevel: "info" } } })
  })
  test("--dry-run=server is --dry-run where the server checks, and nothing elsewhere", () => {
    for (const command of ["set-image si/a b:1", "pause si/a", "resume si/a", "approve si/a", "rollback si/a"])
      for (const flag of ["--dry-run", "--dry-run=server"])
        expect(decide(`${command} ${flag}`)).toMatchObject({ do: "run", input: { options: { dryRun: true } } })
    expect(decide("pause si/a --dry-run=client")).toMatchObject({ do: "refuse" })
    expect(decide("get --dry-run=server")).toMatchObject({ do: "refuse" })
  })
  test("--quiet is understood before and after the command", () => {
    for (const line of ["-q get", "get --quiet"]) expect(decide(line)).toMatchObject({ do: "run", quiet: true })
  })
})

describe("what is refused, and what to write instead", () => {
  const refused: Record<string, string[]> = {
    stauts: ["there is no command stauts; did you mean aim status?", "aim --help"],
    frobnicate: ["there is no command frobnicate\n"],
    "help stauts": ["did you mean aim status?"],
    wait: ["wait needs si/NAME", "Usage: aim wait si/NAME... [OPTIONS]"],
    "wait si/a --timout 5m": ["--timout", "--timeout", "aim wait --help"],
    "manifests crd": ["crd is not a SECTION", "did you mean crds?"],
    "manifests crds rbac": ["does not take rbac"],
    completion: ["completion needs SHELL"],
    "completion tcsh": ["write bash, zsh, fish"],
    "get -o table": ["table", "wide"],
    "controller --log-level loud": ["loud", "debug"],
    "--frobnicate": ["--frobnicate", "aim --help"],
  }
  for (const [line, words] of Object.entries(refused))
    test(line, () => {
      const decision = decide(line)
      expect(decision.do).toBe("refuse")
      for (const word of words) expect((decision as { message: string }).message).toContain(word)
    })
})

describe("help", () => {
  test("lists every command under a heading", () => {
    const { text } = decide("--help") as { text: string }
    const flat = text.replaceAll(/\s+/g, " ")
    for (const { name, group, summary } of commands) {
      if (group) expect(text).toContain(`${group}\n`)
      expect(text.includes(`  ${name} `) && flat.includes(summary)).toBe(Boolean(group))
    }
  })
  test("is broken between words at the width of the window, in every page", () => {
    for (const columns of [60, 80, 100, 200])
      for (const words of [["--help"], ...commands.map(({ name }) => ["help", name])]) {
        const page = { program: "aim", version: "1", view: { ...view, columns }, commands }
        const { text } = parse(words, page) as { text: string }
        // What is to be typed stays in one piece.
        for (const line of text.split("\n").filter(line => !/^(Usage)? {2}aim /.test(line)))
          expect(line.length, `${words.join(" ")} at ${columns}: ${line}`).toBeLessThanOrEqual(columns)
      }
    const details = commands.find(({ name }) => name === "plan")!.details!.join(" ")
    expect((decide("help plan") as { text: string }).text.replaceAll("\n", " ")).toContain(details)
  })
  test("suggests kubectl aim when it was called that way", () => {
    expect(decide("--help", "kubectl aim")).toMatchObject({
      text: expect.stringContaining("Usage  kubectl aim COMMAND"),
    })
    expect(decide("help wait", "kubectl aim")).toMatchObject({ text: expect.stringContaining("kubectl aim wait si/") })
  })
  test("has a page with usage and options for every command", () => {
    for (const { name, options = [] } of commands) {
      const { text } = decide(`help ${name}`) as { text: string }
      expect(text).toContain(`Usage  aim ${name}`)
      for (const { flags } of options) expect(text).toContain(flags.replace(/[<>]/g, ""))
    }
  })
  test("has no colours for a reader without them, and some for others", () => {
    const coloured = parse(["--help"], { program: "aim", version: "1", view: { ...view, colours: true }, commands })
    expect((decide("--help") as { text: string }).text).not.toContain("\u001b[")
    expect((coloured as { text: string }).text).toContain("\u001b[")
  })
})
