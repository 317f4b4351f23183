import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, onTestFinished } from "vitest"
import { parse, stringify } from "yaml"
import { cacheFolder, repository } from "#tools/kube/folders.ts"
import { quickTiers } from "./fleet.ts"
import { floor, until } from "./floor.ts"
import { isRefusal, missingFrom, openTerminal, readGuide } from "./guide.ts"

/**
 * Types a page into a terminal, from its first command to its last, and holds what is printed against it. The ServiceImages
 * of the examples settle in a second instead of ten: a page has a dozen such waits.
 */
export async function follow(
  page: string,
  on: "up" | "real",
  kubeconfig: string,
  here: (text: string) => string,
  home: string,
  section?: string,
) {
  const env = { HOME: home, KUBECONFIG: kubeconfig, AIM_CACHE: cacheFolder(), PATH: pathWithKubectl() }
  const terminal = openTerminal(env, repository)
  onTestFinished(terminal.close)
  const others: { terminal: ReturnType<typeof openTerminal>; prints: string[]; command: string }[] = []
  const text = readFileSync(join(repository, page), "utf8")
  const quick = withQuickTiers()
  for (const { command: shown, prints, line, isBackground, on: where } of readGuide(text, section)) {
    if (where && where !== on) continue
    const command = quick(shown)
    const wanted = prints.map(here)
    if (isBackground) {
      const other = openTerminal({ ...env, PATH: `${join(repository, "bin")}:${env.PATH}` }, repository)
      onTestFinished(other.close)
      other.type(here(command))
      others.push({ terminal: other, prints: wanted, command })
      await until(`${command} to begin`, async () => missingFrom(other.output, wanted.slice(0, 1)).length === 0)
      continue
    }
    const { output, code } = await terminal.run(here(command))
    const said = `${page}:${line}\n$ ${command}\n${output}`
    expect(missingFrom(output, wanted), said).toEqual([])
    expect(code === 0, `exit code ${code}\n${said}`).toBe(!prints.some(isRefusal))
  }
  // What a command in the background prints may come after the answer to the command that it is about.
  for (const { terminal, prints, command } of others)
    await until(`${command} to print it all`, async () => missingFrom(terminal.output, prints).length === 0).catch(() =>
      expect(missingFrom(terminal.output, prints), `${command}\n${terminal.output}`).toEqual([]),
    )
}

const pathWithKubectl = () => `${dirname(floor().kubectl)}:${process.env.PATH}`

export function emptyHome(): string {
  const home = mkdtempSync(join(tmpdir(), "aim-guide-"))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  return home
}

/** Commands that read copies of the examples, with quick tiers. */
function withQuickTiers(): (command: string) => string {
  const folder = mkdtempSync(join(tmpdir(), "aim-guide-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return command =>
    command.replace(/examples\/web\/(serviceimage|careful)\.yaml/, (file, name) => {
      const object = parse(readFileSync(join(repository, file), "utf8"))
      const copy = join(folder, `${name}.yaml`)
      writeFileSync(copy, stringify({ ...object, spec: { ...object.spec, tiers: quickTiers(object.spec.tiers) } }))
      return copy
    })
}
