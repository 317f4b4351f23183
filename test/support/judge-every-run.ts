import { afterEach } from "vitest"
import { onEveryRun, type Run } from "./record.ts"

// Every world a test makes is judged when the test is over, whether the test thought of it or not.

const runs: Run[] = []
onEveryRun(run => runs.push(run))

afterEach(async () => {
  if (runs.length === 0) return
  const { violationsOf } = await import("#test/simulation/invariants/invariants.ts")
  const found = runs.splice(0).flatMap(run => violationsOf(run).map(violation => `seed ${run.seed}: ${violation}`))
  if (found.length > 0) throw new Error(found.slice(0, 10).join("\n"))
})
