import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"

export type CommandOptions = { cwd?: string; env?: NodeJS.ProcessEnv; signal?: AbortSignal | undefined }

/** Runs a program to its end and gives what it wrote to stdout; throws with what it wrote to stderr when it fails. */
export async function run(command: string, args: string[], options: CommandOptions = {}): Promise<string> {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] })
  const ended = new Promise<string | undefined>((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code, signal) => resolve(code === 0 ? undefined : `ended with ${signal ?? code}`))
  })
  const [stdout, stderr, trouble] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  if (trouble) throw new Error(`${command} ${args.join(" ")} ${trouble}\n${stderr.trim() || stdout.trim()}`)
  return stdout
}

/** Where a program is; the sbin folders count too, because a plain user's PATH lacks them. */
export function findProgram(name: string, more: string[] = []): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(":"), "/usr/local/sbin", "/usr/sbin", "/sbin", ...more]
  return folders
    .filter(Boolean)
    .map(folder => join(folder, name))
    .find(existsSync)
}
