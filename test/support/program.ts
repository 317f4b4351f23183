import { type ChildProcess, spawn } from "node:child_process"
import { resolve } from "node:path"
import { onTestFailed, onTestFinished } from "vitest"
import { repository } from "#tools/kube/folders.ts"

/** A program of ours, run as a user runs it. */
export type Program = {
  readonly pid: number
  /** What it wrote so far, to stdout and stderr alike. */
  readonly output: string
  readonly stdout: string
  /** Resolves with the exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>
  kill(signal: NodeJS.Signals): void
}

type Started = Program & { stop(): Promise<void> }

/** Starts it, from the repository or by an absolute path; when the test ends it is stopped, and what it wrote is shown if the test failed. */
export function startProgram(name: string, args: string[], env: Record<string, string> = {}): Program {
  const program = spawnProgram(name, args, env)
  onTestFailed(() => show(name, args, program.output))
  onTestFinished(program.stop)
  return program
}

/**
 * Keeps it running as a kubelet does, where its own last words ask for that: a machine that stands still for ten seconds
 * takes the lead from a controller, which then ends.
 */
export function keepProgram(name: string, args: string[], lastWords: string): void {
  let isOver = false
  let output = ""
  let program: Started
  const start = () => {
    program = spawnProgram(name, args)
    const { ended } = program
    void ended.then(() => {
      output += program.output
      if (!isOver && program.output.includes(lastWords)) start()
    })
  }
  start()
  onTestFailed(() => show(name, args, output + program.output))
  onTestFinished(() => {
    isOver = true
    return program.stop()
  })
}

function show(name: string, args: string[], output: string): void {
  process.stderr.write(`--- ${name} ${args.join(" ")}\n${output.slice(-20_000)}\n`)
}

function spawnProgram(name: string, args: string[], env: Record<string, string> = {}): Started {
  const child = spawn(resolve(repository, name), args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let [output, stdout] = ["", ""]
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", text => {
      output += text
      if (stream === child.stdout) stdout += text
    })
  const ended = whenEnded(child)
  return {
    pid: child.pid!,
    get output() {
      return output
    },
    get stdout() {
      return stdout
    },
    ended,
    kill: signal => child.kill(signal),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM")
      child.kill("SIGCONT") // what a test has stopped, and failed before it continued it, hears nothing else
      await ended
    },
  }
}

function whenEnded(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code, signal) => resolve(code ?? signal ?? "unknown"))
  })
}

/** Runs it to its end. */
export async function runProgram(name: string, args: string[], env: Record<string, string> = {}) {
  const program = startProgram(name, args, env)
  const code = await program.ended
  return { code, output: program.output, stdout: program.stdout }
}
