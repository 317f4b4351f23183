import { parse } from "#cli/program.ts"
import { testWorld } from "#cli/test-world.ts"
import { commands } from "#cli/tree.ts"
import { createClient } from "#runtime/client/index.ts"
import { seededRandom } from "#runtime/random.ts"
import type { World } from "./scenario.ts"

type Outcome = { text: string; exitCode: number; next?: string | undefined } | { error: Error }

export type Typed = {
  /** What it printed as progress. */
  said: string[]
  /** What it printed as a result before its end. */
  written: string[]
  /** How it ended, after as much time as that takes. */
  outcome(): Promise<Outcome>
  /** The same for a command that answers at once: no time passes in the cluster. */
  atOnce(): Promise<Outcome>
  interrupt(): void
}

/** Types a command line beside a simulated cluster, without waiting for its end. */
export async function typeInto(world: Pick<World, "cluster" | "clock" | "until">, line: string): Promise<Typed> {
  const client = createClient({
    transport: { send: world.cluster.transport.send, close: () => {} },
    clock: world.clock,
    random: seededRandom(1),
  })
  const { world: outside, said, written, interrupt } = testWorld({ client }, { clock: world.clock, commands })
  const decision = parse(line.split(" ").slice(1), outside)
  if (decision.do !== "run") throw new Error(`${line} is not run: ${JSON.stringify(decision)}`)
  // Code is loaded in real time, so it must be there before time passes in the cluster.
  const { run } = await decision.command.load()
  let outcome: Outcome | undefined
  run(decision.input, outside).then(
    answer => (outcome = answer),
    error => (outcome = { error }),
  )
  return {
    said,
    written,
    interrupt,
    async outcome() {
      await world.until(`${line} to end`, () => outcome !== undefined, "2h")
      return outcome!
    },
    async atOnce() {
      while (outcome === undefined) {
        await world.clock.advance(0)
        await new Promise(resolve => setImmediate(resolve))
      }
      return outcome
    },
  }
}

/** What a command line that answers at once prints, on either stream. */
export async function printed(world: Parameters<typeof typeInto>[0], line: string): Promise<string> {
  const outcome = await (await typeInto(world, line)).atOnce()
  return "text" in outcome ? outcome.text : outcome.error.message
}
