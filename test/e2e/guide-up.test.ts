import { join } from "node:path"
import { test } from "vitest"
import { emptyHome, follow } from "#test/support/follow-guide.ts"

const fleet = "docs/guides/upgrade-a-fleet.md"
const outage = "docs/guides/when-a-registry-fails.md"
const restarts = "docs/guides/restart-and-pre-pull.md"
const inPlace = "docs/guides/update-in-place.md"
const canary = "docs/guides/canary.md"
const dicom = "examples/dicom/README.md"
const minutes = 60_000

test("the guide, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(fleet, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the guide about a registry that fails, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(outage, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the guide about restarts and pulls, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(restarts, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the guide about updates in place, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(inPlace, "up", join(home, "aim-up.kubeconfig"), text => text, home, "Try it")
})

test("the guide about Canaries, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(canary, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})

test("the example of a kind of one's own, followed on aim up", { timeout: 10 * minutes }, async () => {
  const home = emptyHome()
  await follow(dicom, "up", join(home, "aim-up.kubeconfig"), text => text, home)
})
