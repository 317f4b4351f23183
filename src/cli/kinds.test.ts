import { expect, test } from "vitest"
import { kinds } from "#api/kinds.ts"
import { type KindNames, kindNames } from "#api/names.ts"
import { UsageError } from "./command.ts"
import { alternateImageSources, parseNamed, parseReferences, serviceImages } from "./kinds.ts"

test("every kind that is declared has its names in the list", () => {
  const named = ({ group, version, plural, kind, scope, shortNames }: KindNames) => ({
    group,
    version,
    plural,
    kind,
    scope,
    shortNames,
  })
  expect(kinds.map(named)).toEqual(kindNames)
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
  "deployment/a": "not a kind of aim",
  "serviceimagee/a": "write serviceimage",
  "/a": "not a kind",
  "ais/a": "not of kind ServiceImage: write si/NAME",
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
  expect(() => names("ais")).toThrow("not of kind ServiceImage")
  expect(() => names("si/a", "ais/b")).toThrow("not of kind ServiceImage")
})

test("a command that takes both kinds returns which one was named", () => {
  const both = [serviceImages, alternateImageSources]
  const read = (...words: string[]) => parseReferences(words, both)
  expect(read()).toEqual({ resource: serviceImages, names: [] })
  expect(read("ais")).toEqual({ resource: alternateImageSources, names: [] })
  expect(read("ais/a", "AlternateImageSource/b")).toEqual({ resource: alternateImageSources, names: ["a", "b"] })
  expect(read("alternateimagesources", "a")).toEqual({ resource: alternateImageSources, names: ["a"] })
  expect(() => read("ais/a", "si/b")).toThrow("not of kind AlternateImageSource: write ais/NAME")
  expect(() => read("pods")).toThrow(
    "pods is not a kind of aim: write si or ais for a list, or si/pods for the ServiceImage of that name; for other kinds use kubectl",
  )
  expect(() => read("si,ais")).toThrow("si,ais: one kind at a time: write si or ais")
})
