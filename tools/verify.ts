import { spawn } from "node:child_process"
import { join } from "node:path"

/** Checks that do not run the product. Each prints what is wrong and how to fix it. */
const checks: { name: string; command: string[] }[] = [
  { name: "types", command: ["tsc", "--noEmit", "--project", "."] },
  // The page runs in a browser: with the DOM, without Node.
  { name: "types of the page", command: ["tsc", "--noEmit", "--project", "src/dashboard"] },
  // They run in Node, and hand functions over to the browser.
  { name: "types of browser tests", command: ["tsc", "--noEmit", "--project", "test/browser"] },
  // Imports that point the wrong way, and time or chance taken from the machine, are lint errors: see biome.json.
  { name: "lint, format and import direction", command: ["biome", "check", "--error-on-warnings", "."] },
  { name: "dead code and dependencies", command: ["knip", "--no-progress"] },
  // What only its own tests use. cluster-sim is for tests itself.
  {
    name: "code that only tests use",
    command: ["knip", "--production", "--config", "knip.production.json", "--no-progress"],
  },
  { name: "generated files", command: [process.execPath, "tools/generate.ts", "--check"] },
]

const bin = join(import.meta.dirname, "../node_modules/.bin")
const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }

function run([command = "", ...args]: string[]): Promise<{ isFine: boolean; output: string; seconds: number }> {
  const start = performance.now()
  return new Promise(resolve => {
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", text => (output += text))
    const done = (isFine: boolean) => resolve({ isFine, output, seconds: (performance.now() - start) / 1000 })
    child.on("error", error => {
      output += error.message
      done(false)
    })
    child.on("close", code => done(code === 0))
  })
}

const results = await Promise.all(
  checks.map(async ({ name, command }) => {
    const { isFine, output, seconds } = await run(command)
    process.stdout.write(`${isFine ? "ok    " : "FAILED"} ${name} (${seconds.toFixed(1)} s)\n`)
    if (!isFine) process.stdout.write(`${output.trim()}\n\n`)
    return isFine
  }),
)
process.exit(results.every(isFine => isFine) ? 0 : 1)
