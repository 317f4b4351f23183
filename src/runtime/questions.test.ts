import { expect, test } from "vitest"
import { createQuestions } from "./questions.ts"

const start = (more: { most?: number } = {}) => {
  let now = 1000
  const questions = createQuestions<string>({
    clock: { now: () => now },
    rememberMs: 60_000,
    most: more.most ?? 10,
    failed: error => `failed: ${(error as Error).message}`,
  })
  const asked = (key: string, said: () => Promise<string>) =>
    new Promise<string | undefined>(resolve => questions.ask(key, said, () => resolve(questions.get(key)?.said)))
  return { questions, asked, advance: (ms: number) => (now += ms) }
}

test("an answer is there for the next look, and the same question is asked once", async () => {
  const { questions } = start()
  const calls: string[] = []
  const gate = Promise.withResolvers<string>()
  const ask = () => {
    calls.push("asked")
    return gate.promise
  }
  const heard = [1, 2].map(() => new Promise<void>(resolve => questions.ask("a", ask, resolve)))
  expect(questions.areOpen).toBe(true)
  expect(questions.get("a")).toBeUndefined()
  gate.resolve("yes")
  await Promise.all(heard)
  expect(calls).toEqual(["asked"])
  expect(questions.get("a")).toEqual({ at: 1000, said: "yes" })
  expect(questions.areOpen).toBe(false)
})

test("a question that throws has an answer too", async () => {
  const { asked } = start()
  expect(await asked("a", () => Promise.reject(new Error("down")))).toBe("failed: down")
})

test("answers are forgotten when they are old, when there are too many, and when told to", async () => {
  const { questions, asked, advance } = start({ most: 2 })
  for (const key of ["a", "b", "c"]) await asked(key, async () => key)
  expect(["a", "b", "c"].map(key => questions.get(key)?.said)).toEqual([undefined, "b", "c"])
  advance(60_000)
  await asked("d", async () => "d")
  expect(["b", "c", "d"].map(key => questions.get(key)?.said)).toEqual([undefined, undefined, "d"])
  questions.forget(key => key === "d")
  expect(questions.get("d")).toBeUndefined()
})
