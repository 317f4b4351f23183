import { expect, test } from "vitest"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { UsageError } from "./command.ts"
import { parseNamed, parseReferences, serviceImages } from "./kinds.ts"

test("the resource is the one that is declared", () => {
  const { group, version, plural, kind, scope } = ServiceImage
  expect(serviceImages).toEqual({ group, version, plural, kind, namespaced: scope === "Namespaced" })
})

for (const text of [
  "si/a",
  "SI/a",
  "serviceimage/a",
  "ServiceImage/a",
  "serviceimages/a",
  "serviceimages.autoimagemanager.io/a",
  "serviceimages.v1alpha1.autoimagemanager.io/a",
  "serviceimage.autoimagemanager.io/a",
])
  test(`${text} is understood`, () => expect(parseNamed(text)).toEqual({ resource: serviceImages, name: "a" }))

const wrong: Record<string, string> = {
  a: "write si/a",
  si: "write si/NAME",
  "si/": "write si/NAME",
  "si/A B": "not the name of an object",
  "si/../secrets": "not the name of an object",
  "deployment/a": "no kind that aim rolls out",
  "serviceimagee/a": "write serviceimage",
  "/a": "no kind",
}
for (const [text, words] of Object.entries(wrong))
  test(`${text} is refused: ${words}`, () => {
    expect(() => parseNamed(text)).toThrow(UsageError)
    expect(() => parseNamed(text)).toThrow(words)
  })

test("one, several or all, with a slash or as kubectl takes them", () => {
  const names = (...words: string[]) => parseReferences(words).names
  expect(names()).toEqual([])
  expect(names("si")).toEqual([])
  expect(names("si/a", "serviceimage/b")).toEqual(["a", "b"])
  expect(names("si", "a", "b")).toEqual(["a", "b"])
})
