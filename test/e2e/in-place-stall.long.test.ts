import { test } from "vitest"
import { expectStallHarmless, useHoldPolicy } from "#test/support/real-in-place.ts"

useHoldPolicy()

test(
  "kube-controller-manager is stopped across flip and release of 200 Deployments and 200 StatefulSets: no pod is replaced",
  () => expectStallHarmless(200),
  900_000,
)
