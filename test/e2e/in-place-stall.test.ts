import { test } from "vitest"
import { expectStallHarmless, useHoldPolicy } from "#test/support/real-in-place.ts"

useHoldPolicy()

test("kube-controller-manager is stopped across flip and release of 20 Deployments and 20 StatefulSets: no pod is replaced", () =>
  expectStallHarmless(20))
