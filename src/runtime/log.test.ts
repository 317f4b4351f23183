import { describe, expect, test } from "vitest"
import { KubeError } from "./client/errors.ts"
import { virtualClock } from "./clock.ts"
import { createLogger, type LogOptions } from "./log.ts"

function logger(options: LogOptions = {}) {
  const lines: string[] = []
  const clock = virtualClock(Date.UTC(2026, 0, 2, 3, 4, 5, 6))
  return { lines, log: createLogger({ clock, write: line => lines.push(line), ...options }) }
}
const parsed = (lines: string[]) => lines.map(line => JSON.parse(line))

describe("JSON lines", () => {
  test("carry the level as a word, the time as text, the message and the facts", () => {
    const { lines, log } = logger()
    log.with({ controller: "stamper" }).info("began", { keys: 3 })
    expect(lines[0]).toMatch(/^\{.*\}\n$/)
    expect(parsed(lines)).toEqual([
      { level: "info", time: "2026-01-02T03:04:05.006Z", controller: "stamper", keys: 3, message: "began" },
    ])
  })

  test("below the level nothing is written", () => {
    const { lines, log } = logger({ level: "warn" })
    log.debug("a")
    log.info("b")
    log.warn("c")
    log.error("d")
    expect(parsed(lines).map(line => line.message)).toEqual(["c", "d"])
  })

  test("an error brings its chain of causes, the words callers decide by, and the innermost stack", () => {
    const { lines, log } = logger()
    const refused = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" })
    const cause = new KubeError("Unreachable", "GET /api", { status: 503, cause: refused })
    log.error("reconcile failed", { error: new Error("evicting pod web-0", { cause }) })
    const { error } = parsed(lines)[0]
    expect(error.message).toBe("evicting pod web-0")
    expect(error.stack).toBeUndefined()
    expect(error.cause).toMatchObject({ type: "KubeError", kind: "Unreachable", status: 503 })
    expect(error.cause.cause).toMatchObject({ message: "connect refused", code: "ECONNREFUSED" })
    expect(error.cause.cause.stack).toContain("log.test.ts")
  })

  test("an endless chain of causes ends, and a thrown non-error is logged", () => {
    const { lines, log } = logger()
    const loop = new Error("loop")
    loop.cause = loop
    log.error("a", { error: loop })
    log.error("b", { error: new Error("outer", { cause: "only words" }) })
    expect(lines[0]!.length).toBeLessThan(10_000)
    expect(parsed(lines)[1].error.cause).toEqual({ type: "string", message: "only words" })
  })

  test("credentials never get out, by name or by form", () => {
    const { lines, log } = logger()
    const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"
    log.with({ headers: { Authorization: "hunter2" } }).error(`sent Bearer ${jwt}`, {
      registryPassword: "hunter2",
      nested: { list: [{ token: "hunter2" }] },
      url: "https://user:hunter2@registry.example/v2/",
      error: new Error(`401 for ${jwt}`, { cause: new Error("header Basic aHVudGVyMjpodW50ZXIy") }),
      tokens: 3,
    })
    expect(lines[0]).not.toMatch(/hunter2|eyJ|aHVudGVy/)
    expect(parsed(lines)[0].tokens).toBe(3)
  })

  test("facts stay small, and a circle among them does no harm", () => {
    const { lines, log } = logger()
    const circle: Record<string, unknown> = { name: "me" }
    circle.self = circle
    log.info("big", { words: "x".repeat(100_000), keys: Array.from({ length: 1000 }, (_, i) => i), circle })
    expect(lines[0]!.length).toBeLessThan(6000)
    expect(parsed(lines)[0].keys.at(-1)).toBe("… 980 more")
  })
})

describe("text", () => {
  test("is one readable line", () => {
    const { lines, log } = logger({ format: "text" })
    log.warn("cannot evict", {
      key: "shop/web-0",
      why: "budget spent",
      error: new Error("a", { cause: new Error("b") }),
    })
    expect(lines).toEqual([`03:04:05 WARN  cannot evict key=shop/web-0 why="budget spent" error="a: b"\n`])
  })

  test("does not let the cluster's words write lines or move the cursor", () => {
    const { lines, log } = logger({ format: "text" })
    log.info("pod says \x1b[2J\nERROR forged", { note: "\x1b[31mred\n\u009b2J" })
    expect(
      lines[0]!
        .trimEnd()
        .split("")
        .filter(letter => letter < " " || letter === "\u009b"),
    ).toEqual([])
  })

  test("is coloured when asked", () => {
    const { lines, log } = logger({ format: "text", colour: true })
    log.error("no")
    expect(lines[0]).toContain("\x1b[31mERROR\x1b[0m")
  })
})
