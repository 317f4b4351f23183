import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { repositoryMaxLength, repositoryRule } from "#api/v1alpha1/image-reference.ts"
import { compile } from "#lib/cel.ts"
import { imageAt, isEquivalent, replacementOf, repositoryProblem, sameSource } from "./equivalent.ts"
import { parseImageReference, repositoryOf } from "./reference.ts"

const hex = "0123456789abcdef".repeat(4)
const digest = `sha256:${hex}`
const set = (...equivalentRepositories: string[]) => ({ equivalentRepositories })

describe("the set an image belongs to", () => {
  const replacements = [
    set("quay.io/fairwinds/docker-demo", "ehazlett/docker-demo"),
    set("nginx", "mirror.example.com:5000/nginx", "[::1]:5000/nginx"),
    set("Quay.IO/team/app", "localhost/team/app"),
    set("ehazlett/docker-demo", "quay.io/other"),
  ]
  const cases: Record<string, [index: number, repository: string] | undefined> = {
    "quay.io/fairwinds/docker-demo:1.0": [0, "quay.io/fairwinds/docker-demo"],
    "quay.io/fairwinds/docker-demo": [0, "quay.io/fairwinds/docker-demo"],
    "ehazlett/docker-demo:1": [0, "ehazlett/docker-demo"], // it stands in the last set too; the first counts
    "docker.io/ehazlett/docker-demo:1": [0, "ehazlett/docker-demo"],
    "index.docker.io/ehazlett/docker-demo:1": [0, "ehazlett/docker-demo"],
    "quay.io/other:1": [3, "quay.io/other"],
    nginx: [1, "nginx"],
    "docker.io/library/nginx:1.27": [1, "nginx"],
    "index.docker.io/nginx": [1, "nginx"],
    [`library/nginx@${digest}`]: [1, "nginx"],
    "mirror.example.com:5000/nginx:1": [1, "mirror.example.com:5000/nginx"],
    "MIRROR.example.com:5000/nginx:1": [1, "mirror.example.com:5000/nginx"],
    "[::1]:5000/nginx:1": [1, "[::1]:5000/nginx"],
    "quay.io/team/app:1": [2, "Quay.IO/team/app"],
    "localhost/team/app": [2, "localhost/team/app"],
    // Whole repositories on the same port only.
    "quay.io/fairwinds/docker-demo2:1": undefined,
    "quay.io/fairwinds/docker": undefined,
    "quay.io/fairwinds/docker-demo/more": undefined,
    "mirror.example.com/nginx:1": undefined,
    "mirror.example.com:5001/nginx:1": undefined,
    "[::1]/nginx": undefined,
    "team/nginx": undefined,
    "quay.io/nginx": undefined,
    "": undefined,
    "Not Valid": undefined,
    "nginx:": undefined,
  }
  for (const [image, expected] of Object.entries(cases))
    test(image || "none", () => {
      const [index, repository] = expected ?? []
      expect(replacementOf(image, replacements)).toEqual(expected && { index, repository })
    })

  test("an entry that is no repository matches nothing", () => {
    expect(replacementOf("nginx:1", [set("nginx:1", "NGINX", "", `nginx@${digest}`)])).toBeUndefined()
  })
  test("of two spellings the first is used", () => {
    expect(replacementOf("nginx", [set("docker.io/nginx", "nginx")])?.repository).toBe("docker.io/nginx")
  })
})

describe("an image at another repository", () => {
  const cases: [image: string, repository: string, expected: string][] = [
    ["quay.io/team/app:V1.0_x", "ehazlett/docker-demo", "ehazlett/docker-demo:V1.0_x"],
    ["host:5000/app", "nginx", "nginx"],
    ["host:5000/app:5000", "[::1]:5000/nginx", "[::1]:5000/nginx:5000"],
    ["[::1]:5000/app:v1", "Quay.IO/app", "Quay.IO/app:v1"],
    [`app@${digest}`, "quay.io/app", `quay.io/app@${digest}`],
    [`app:v1@${digest}`, "quay.io/app", `quay.io/app:v1@${digest}`],
    ["Not Valid", "quay.io/app", "Not Valid"],
  ]
  for (const [image, repository, expected] of cases)
    test(`${image} at ${repository}`, () => expect(imageAt(image, repository)).toBe(expected))
})

test("the same place in different words", () => {
  expect(sameSource("nginx:1", "docker.io/library/nginx")).toBe(true)
  expect(sameSource("Quay.io/a/b:1", `quay.io/a/b@${digest}`)).toBe(true)
  expect(sameSource("quay.io/a/b", "quay.io/a/c")).toBe(false)
  expect(sameSource("quay.io/a/b", "quay.io:443/a/b")).toBe(false)
  expect(sameSource("", "")).toBe(false)
})

describe("equivalent images", () => {
  const replacement = set("quay.io/team/app", "team/app", "nginx")
  const cases: [a: string, b: string, expected: boolean][] = [
    ["quay.io/team/app:1", "team/app:1", true],
    ["quay.io/team/app:1", "docker.io/team/app:1", true],
    ["quay.io/team/app", "nginx:latest", true],
    ["quay.io/team/app:1", "quay.io/team/app:1", true],
    [`quay.io/team/app:1@${digest}`, `team/app@${digest}`, true],
    ["quay.io/team/app:1", "team/app:2", false],
    ["quay.io/team/app:1", "team/app:1.0", false],
    ["quay.io/team/app:V", "team/app:v", false],
    [`quay.io/team/app:1@${digest}`, "team/app:1", true], // the same tag, nailed to its bits
    [`quay.io/team/app:1@${digest}`, "team/app:2", false],
    [`quay.io/team/app:1@${digest}`, `team/app:1@${digest.replace("0", "1")}`, false],
    ["quay.io/team/app:1", "other/app:1", false],
    ["other/app:1", "other/app:1", false],
    ["Not Valid", "Not Valid", false],
  ]
  for (const [a, b, expected] of cases)
    test(`${a} and ${b}: ${expected}`, () => {
      expect(isEquivalent(a, b, replacement)).toBe(expected)
      expect(isEquivalent(b, a, replacement)).toBe(expected)
    })
})

const part = fc.stringMatching(/^[a-z0-9]{1,6}((\.|_|__|-{1,2})[a-z0-9]{1,6})?$/)
const repository = fc
  .tuple(fc.constantFrom("", "quay.io/", "Quay.IO/", "host:5000/", "[::1]:5000/", "docker.io/", "localhost/"), part)
  .map(([host, path]) => `${host}${path}`)
const version = fc.constantFrom("", ":v1", ":V1.0-x_y", `@${digest}`, `:v1@${digest}`)

test("an image moved to a repository is there, is equivalent, and comes back unchanged", () => {
  fc.assert(
    fc.property(repository, repository, version, (from, to, suffix) => {
      const moved = imageAt(from + suffix, to)
      expect(moved).toBe(to + suffix)
      expect(sameSource(moved, to)).toBe(true)
      expect(isEquivalent(from + suffix, moved, set(from, to))).toBe(true)
      expect(imageAt(moved, from)).toBe(from + suffix)
    }),
  )
})

test("the set found is the first that names the repository", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.array(repository, { minLength: 1, maxLength: 3 }).map(list => set(...list)),
        { maxLength: 5 },
      ),
      repository,
      version,
      (replacements, at, suffix) => {
        const name = (text: string) => {
          const parsed = parseImageReference(text)
          return parsed.ok && repositoryOf(parsed.reference)
        }
        const index = replacements.findIndex(each => each.equivalentRepositories.some(one => name(one) === name(at)))
        expect(replacementOf(at + suffix, replacements)?.index ?? -1).toBe(index)
      },
    ),
  )
})

const problems: Record<string, string> = {
  "": "empty",
  "nginx:1": "is a tag",
  "quay.io/app:1": "is a tag",
  "localhost:5000": "is a tag",
  [`app@${digest}`]: "is a digest",
  [`app:v1@${digest}`]: "is a tag",
  "quay.io/App": "lower case",
  "https://quay.io/app": "port number",
  "quay.io/": "empty part",
  "quay.io//app": "empty part",
  "quay.io/app/": "empty part",
  "quay.io/*": "not part of a path",
  " quay.io/app": '" "',
  "quay.io/app\n": '"\\n"',
  [hex]: "image ID",
  [`a/${"b".repeat(254)}`]: "at most 255",
}
for (const [text, words] of Object.entries(problems))
  test(`${JSON.stringify(text.slice(0, 40))} is no repository: ${words}`, () =>
    expect(repositoryProblem(text)).toContain(words))

const fine = ["nginx", "team/app", "quay.io/a/b/c", "Quay.IO/app", "host:5000/app", "[::1]:5000/app", "localhost/app"]
for (const text of fine) test(`${text} is a repository`, () => expect(repositoryProblem(text)).toBeUndefined())

/** As the schema judges: by length, and by rule. */
const rule = compile(repositoryRule.rule, ["self"])
const accepts = (text: string) => text.length <= repositoryMaxLength && rule({ self: text }) === true

test("the schema accepts what is a repository, and nothing else", () => {
  for (const text of [...fine, ...Object.keys(problems)])
    expect(accepts(text), text).toBe(repositoryProblem(text) === undefined)
})

test("schema and code agree on texts that are nearly right", () => {
  const pieces = ["a", "b1", "Z", ".", "-", "_", "/", ":", "@", "[", "]", "::1", "5000", "localhost", "x.y", " ", "\n"]
  const almost = fc.array(fc.constantFrom(...pieces, digest, hex, "b".repeat(125)), { maxLength: 9 })
  fc.assert(
    fc.property(
      fc.oneof(
        almost.map(list => list.join("")),
        repository,
      ),
      text => {
        expect(accepts(text)).toBe(repositoryProblem(text) === undefined)
      },
    ),
    { numRuns: 3000 },
  )
})
