import { join } from "node:path"
import { test } from "vitest"
import { emptyHome, follow } from "#test/support/follow-guide.ts"
import { prepareOamRuntime } from "#tools/kube/binaries.ts"

const guide = "docs/guides/oam.md"
const minutes = 60_000

// In the long form: its runtime loses a change of a component now and then (see the guide), and is not ours to mend.

test("the guide about OAM, followed on aim up with a real OAM runtime", { timeout: 30 * minutes }, async () => {
  const home = emptyHome()
  // Its build takes minutes the first time.
  await prepareOamRuntime(line => process.stderr.write(`oam: ${line}\n`))
  await follow(guide, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})
