import { afterEach } from "vitest"
import { keepRuns, unjudgedRuns } from "./record.ts"

// Every world a test makes is judged when the test is over, whether the test thought of it or not.

keepRuns()

afterEach(async () => {
  const runs = unjudgedRuns()
  if (runs.length === 0) return
  const { judge } = await import("#test/simulation/invariants/invariants.ts")
  for (const run of runs) judge(run)
})
