import { expect, test } from "vitest"
import { runProgram } from "#test/support/program.ts"

test("the story is told in plain lines where there is no terminal, and ends well", async () => {
  const { code, stdout } = await runProgram("bin/aim", ["demo"])
  expect(code).toBe(0)
  const sentences = [
    "24 tenants sign up",
    "Halted 15/24",
    "tier late were not touched",
    "goes on by itself",
    "24 of 24 tenants run v2",
    "To try next",
  ]
  const places = sentences.map(sentence => stdout.indexOf(sentence))
  expect(
    places.every(place => place >= 0),
    stdout,
  ).toBe(true)
  expect([...places].sort((a, b) => a - b)).toEqual(places)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the beginning of a colour or of a movement of the cursor
  expect(stdout).not.toMatch(/\x1b/)
})

test("--list names the stories, and a story that is not there is wrong usage", async () => {
  expect(await runProgram("bin/aim", ["demo", "--list"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^upgrade +a fleet/),
  })
  expect(await runProgram("bin/aim", ["demo", "opera"])).toMatchObject({
    code: 2,
    output: expect.stringContaining("there is no story opera"),
  })
})
