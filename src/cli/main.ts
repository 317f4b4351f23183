import "#lib/plain-names.ts"
import { basename } from "node:path"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import manifest from "../../package.json" with { type: "json" }
import type { View, World } from "./command.ts"
import { parse } from "./program.ts"
import { commands } from "./tree.ts"

/** The only file that prints and exits. */
async function main(): Promise<number> {
  const { env, stdout } = process
  const program = programName(env.AIM_PROGRAM ?? process.argv[1] ?? "aim")
  const view: View = {
    isTerminal: Boolean(stdout.isTTY),
    get columns() {
      return stdout.columns || 80 // read each time: windows are resized while we draw
    },
    get rows() {
      return stdout.rows
    },
    colours: wantsColours(env, Boolean(stdout.isTTY)),
  }
  const decision = parse(process.argv.slice(2), { program, version: manifest.version, view, commands })
  if (decision.do === "print") {
    await write(decision.exitCode === 0 ? process.stdout : process.stderr, decision.text)
    return decision.exitCode
  }
  if (decision.do === "refuse") return await complain(decision.message, 2)

  const screen = await screenFor(view)
  const say = (line: string) => {
    if (!decision.quiet) screen.above(() => process.stderr.write(`${line}\n`))
  }
  const machine = { version: manifest.version, variables: env, clock: systemClock, random: systemRandom }
  const surroundings = { ...machine, say, onWarning: (message: string) => say(`Warning: ${message}`) }
  const world: World = {
    ...machine,
    commands,
    program,
    view,
    get stdin() {
      return process.stdin // only on demand: opening it keeps the process from ending
    },
    signal: untilInterrupted(),
    say,
    write: text => write(process.stdout, text),
    draw: screen.draw,
    connect: async connection => (await import("./connect.ts")).clientFor(connection, surroundings),
    reach: async connection => (await import("./connect.ts")).reach(connection, surroundings),
  }
  try {
    const { run } = await decision.command.load()
    const { text, exitCode, next } = await run(decision.input, world)
    screen.end()
    await write(process.stdout, text)
    if (next) say(next)
    return exitCode
  } catch (error) {
    screen.end()
    // Ctrl-C is not an error to explain.
    if (world.signal.aborted) return 130
    const { explain } = await import("./render/explain.ts")
    const { message, exitCode } = explain(error, program)
    return await complain(message, exitCode)
  }
}

/** `kubectl aim` runs us as `kubectl-aim`; suggested commands then begin with `kubectl aim`. */
const programName = (path: string) => (basename(path).startsWith("kubectl-aim") ? "kubectl aim" : "aim")

/** https://no-color.org; FORCE_COLOR for pipelines whose log viewer shows colours. */
const wantsColours = (env: NodeJS.ProcessEnv, isTerminal: boolean) =>
  env.NO_COLOR ? false : env.FORCE_COLOR ? env.FORCE_COLOR !== "0" : isTerminal && env.TERM !== "dumb"

/** The first signal ends the process cleanly, the second at once. */
function untilInterrupted(): AbortSignal {
  const controller = new AbortController()
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(130)
      controller.abort(new Error(`interrupted by ${name}`))
    })
  return controller.signal
}

type Screen = {
  draw(frame: string): void
  /** Writes permanent text above the part that is redrawn. */
  above(write: () => void): void
  end(): void
}

async function screenFor(view: View): Promise<Screen> {
  if (!view.isTerminal)
    return { draw: frame => void process.stdout.write(frame), above: write => write(), end: () => {} }
  let update: typeof import("log-update").default | undefined
  let last = ""
  return {
    draw(frame) {
      last = frame
      void import("log-update").then(module => {
        update = module.default
        update(last)
      })
    },
    above(write) {
      update?.clear()
      write()
      update?.(last)
    },
    end() {
      update?.done()
      update = undefined
    },
  }
}

async function complain(message: string, exitCode: number): Promise<number> {
  const [first, ...rest] = message.split("\n")
  await write(process.stderr, [`aim: ${first}`, ...rest.map(line => `     ${line}`)].join("\n").concat("\n"))
  return exitCode
}

/** Resolves when the text is written: output piped into `kubectl apply` must not be cut off by our exit. */
const write = (stream: NodeJS.WriteStream, text: string) =>
  new Promise<void>(resolve => (text ? stream.write(text, () => resolve()) : resolve()))

// `aim get | head` closes the pipe early; that is not an error.
process.stdout.on("error", error => process.exit((error as NodeJS.ErrnoException).code === "EPIPE" ? 0 : 1))

process.exit(await main())
