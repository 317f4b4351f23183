import { expect, test } from "vitest"
import { shareOf } from "./share.ts"

test.each([
  [{}, 0],
  [{ phase: "Progressing", canaryWeight: 40 }, 40],
  [{ phase: "Promoting", canaryWeight: 100 }, 100],
  [{ phase: "Finalising", canaryWeight: 0 }, 100],
  [{ phase: "Succeeded", canaryWeight: 0 }, 0],
] as const)("%o: %d", (status, share) => expect(shareOf(status)).toBe(share))
