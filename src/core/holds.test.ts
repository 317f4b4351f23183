import { expect, test } from "vitest"
import { Holds, scopeName } from "./holds.ts"

test("a grant releases what was held in its namespace, and returns just that", () => {
  const holds = new Holds<"Forbidden">()
  const why = { reason: "Forbidden" as const, message: "no" }
  holds.add({ key: "shop/web-0" }, why, 0)
  holds.add({ key: "shopping/web-0" }, why, 0)
  holds.add({ namespace: "shop" }, why, 0)
  expect(holds.release("shop").sort()).toEqual([scopeName({ namespace: "shop" }), "shop/web-0"])
  expect(holds.on("shop/web-0", "shop")).toBeUndefined()
  expect(holds.has("shopping/web-0")).toBe(true)
  expect(holds.release(undefined)).toEqual(["shopping/web-0"])
})
