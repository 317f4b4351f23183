import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, onTestFinished } from "vitest"
import { prepareHelm } from "#tools/kube/binaries.ts"
import { run } from "#tools/kube/command.ts"

export type Helm = (...args: string[]) => Promise<string>

const prepare = () => prepareHelm(line => process.stderr.write(`helm: ${line}\n`))

/** For all tests of a file. Its build takes minutes the first time, beside tests of other files. */
export function useHelm(): void {
  beforeAll(prepare, 1_800_000)
}

/** Helm as a user has it, with a home of its own: what is set up on this machine plays no part. */
export async function helmFor(kubeconfig = "/dev/null"): Promise<Helm> {
  const program = await prepare()
  const home = mkdtempSync(join(tmpdir(), "aim-helm-"))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: kubeconfig }
  return (...args) => run(program, args, { env })
}
