import { expect, test } from "vitest"
import { clip, clipMiddle, counted, nameSome, sentence, withoutControls } from "./text.ts"

test("a number and its noun agree", () => {
  expect([0, 1, 2].map(count => counted(count, "pod"))).toEqual(["0 pods", "1 pod", "2 pods"])
})

test("a few names, and how many are left", () => {
  expect(nameSome(["a", "b"], 2)).toBe("a, b")
  expect(nameSome(["a", "b"], 5)).toBe("a, b and 3 more")
})

test("a sentence has a capital letter and a full stop, unless it begins with a name", () => {
  expect(sentence("the pods stay, web restarts")).toBe("The pods stay, web restarts.")
  for (const name of ["web-0: CrashLoop", "spec.volumes: no", "3 pods wait"]) expect(sentence(name)).toBe(`${name}.`)
  expect(sentence("is one running?")).toBe("Is one running?")
})

test("what is cut ends with an ellipsis and never in half a character", () => {
  expect(clip("four", 4)).toBe("four")
  expect(clip("fourteen", 4)).toBe("fou…")
  expect(clip("ab😀cd", 4)).toBe("ab\ufffd…")
})

test("nothing that moves, reverses or hides text is left, and everything with a shape is", () => {
  const hidden = [
    ...["\0", "\x1b", "\x7f", "\x9b", "\n", "\u00ad", "\u061c", "\u200b", "\u200e", "\u2028", "\u2029", "\u202e"],
    ...["\u2060", "\u2061", "\u2062", "\u2063", "\u2064", "\u2066", "\u2069", "\u206f", "\ufeff", "\u{e0041}"],
  ]
  for (const each of hidden) expect(withoutControls(`a${each}b`, "?")).toBe("a?b")
  for (const each of ["é", "ش", "漢", "😀", "✓", "…", " "]) expect(withoutControls(each, "?")).toBe(each)
})

test("what is cut in the middle keeps its end, and no more than the room there is", () => {
  expect(clipMiddle("four", 4)).toBe("four")
  const cut = clipMiddle(
    `Back-off pulling image "${"x".repeat(300)}": unexpected status code: 503 Service Unavailable`,
    64,
  )
  expect(cut).toHaveLength(64)
  expect(cut).toMatch(/^Back-off pulling.*….*503 Service Unavailable$/)
})
