import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { imageReferenceMaxLength, imageReferenceRule } from "#api/v1alpha1/image-reference.ts"
import { compile } from "#lib/cel.ts"
import {
  formatImageReference,
  type ImageReference,
  isDigest,
  isPinOf,
  normaliseImageReference,
  parseImageReference,
  pinned,
  repositoryOf,
  sameImage,
  unpinned,
} from "./reference.ts"

const hex = (length: number) => "0123456789abcdef".repeat(8).slice(0, length)
const sha256 = `sha256:${hex(64)}`

const good: Record<string, ImageReference> = {
  nginx: { path: "nginx" },
  "nginx:1.27": { path: "nginx", tag: "1.27" },
  "team/app": { path: "team/app" },
  "localhost/app": { host: "localhost", path: "app" },
  "localhost:5000": { path: "localhost", tag: "5000" }, // no slash: a name and a tag, as every runtime reads it
  "localhost:5000/app:v2": { host: "localhost:5000", path: "app", tag: "v2" },
  "registry.example.com/a/b/c:v2": { host: "registry.example.com", path: "a/b/c", tag: "v2" },
  "Registry.Example.COM/app": { host: "Registry.Example.COM", path: "app" },
  "HOST:80/app": { host: "HOST:80", path: "app" },
  "[::1]:5000/app:v1": { host: "[::1]:5000", path: "app", tag: "v1" },
  "[2001:DB8::1]/app": { host: "[2001:DB8::1]", path: "app" },
  "10.0.0.1/app": { host: "10.0.0.1", path: "app" },
  [`app@${sha256}`]: { path: "app", digest: sha256 },
  [`r.example.com:443/app:v1@${sha256}`]: { host: "r.example.com:443", path: "app", tag: "v1", digest: sha256 },
  [`app@sha512:${hex(128)}`]: { path: "app", digest: `sha512:${hex(128)}` },
  [`app@sha384:${hex(96)}`]: { path: "app", digest: `sha384:${hex(96)}` },
  "a__b/c-d---e/f.g_h": { path: "a__b/c-d---e/f.g_h" },
  "app:_tag.with-all_of.it": { path: "app", tag: "_tag.with-all_of.it" },
  [`app:${"t".repeat(128)}`]: { path: "app", tag: "t".repeat(128) },
  [`${hex(64)}:v1`]: { path: hex(64), tag: "v1" },
  [hex(63)]: { path: hex(63) },
}
for (const [text, reference] of Object.entries(good))
  test(`parses ${text.slice(0, 60)}`, () => {
    expect(parseImageReference(text)).toEqual({ ok: true, reference })
    expect(formatImageReference(reference)).toBe(text)
  })

const bad: Record<string, string> = {
  "": "empty",
  " nginx": '" "',
  "nginx ": '" "',
  "nginx:v1\n": '"\\n"',
  "über/app": '"ü"',
  Nginx: "lower case",
  "Team/app": "lower case", // an upper-case name without dot or port is a path, not a host
  "registry.example.com/Team/app": "lower case",
  "a//b": "empty part",
  "/app": "empty part",
  "app/": "empty part",
  "registry.example.com/": "empty part",
  "-app": "not part of a path",
  "app-": "not part of a path",
  "a..b": "not part of a path",
  a___b: "not part of a path",
  "a_.b": "not part of a path",
  "a_b.c/d": "not a host",
  "host-.example.com/app": "not a host",
  "host..com/app": "not a host",
  "host:port/app": "port number",
  "host:/app": "port number",
  "[::1/app": "IPv6",
  "[]/app": "IPv6",
  "[::g]/app": "IPv6",
  "[::1]": "not part of a path",
  "user@host.example.com/app": "not a digest",
  "https://registry.example.com/app": "port number",
  "app:": "not a tag",
  "app:.v1": "not a tag",
  "app:v1:v2": "not part of a path",
  [`app:${"t".repeat(129)}`]: "at most 128",
  "app@": "not a digest",
  "app@sha256": "not a digest",
  [`app@sha256:${hex(63)}`]: "64 digits",
  [`app@sha256:${hex(64).toUpperCase()}`]: "64 digits",
  [`app@md5:${hex(32)}`]: "not a digest algorithm",
  [`app@constructor:${hex(32)}`]: "not a digest algorithm",
  [`app@${sha256}@${sha256}`]: "64 digits",
  [`@${sha256}`]: "empty part",
  [hex(64)]: "image ID",
  [`a/${"b".repeat(254)}`]: "at most 255",
}
for (const [text, words] of Object.entries(bad))
  test(`refuses ${JSON.stringify(text.slice(0, 60))}: ${words}`, () => {
    const parsed = parseImageReference(text)
    expect(parsed.ok ? "accepted" : parsed.error).toContain(words)
  })

const normalised: Record<string, string> = {
  nginx: "docker.io/library/nginx:latest",
  "nginx:1": "docker.io/library/nginx:1",
  "team/app": "docker.io/team/app:latest",
  "docker.io/nginx": "docker.io/library/nginx:latest",
  "index.docker.io/nginx": "docker.io/library/nginx:latest",
  "Quay.IO/team/app:V2": "quay.io/team/app:V2",
  "quay.io/app": "quay.io/app:latest",
  [`nginx@${sha256}`]: `docker.io/library/nginx@${sha256}`,
}
for (const [text, expected] of Object.entries(normalised))
  test(`normalises ${text}`, () => expect(formatImageReference(normaliseImageReference(parsed(text)))).toBe(expected))

test("the same image in different words", () => {
  expect(sameImage("nginx", "docker.io/library/nginx:latest")).toBe(true)
  expect(sameImage(`app:v1@${sha256}`, `app:v2@${sha256}`)).toBe(true)
  expect(sameImage("nginx:1", "nginx:2")).toBe(false)
  expect(sameImage(`app:v1@${sha256}`, "app:v1")).toBe(false) // the tag may have moved
  expect(sameImage(`quay.io/app@${sha256}`, `docker.io/app@${sha256}`)).toBe(false) // pulled from elsewhere
  expect(sameImage("Not Valid", "Not Valid")).toBe(true)
  expect(sameImage("Not Valid", "nginx")).toBe(false)
})

test("the repository has neither tag nor digest", () => {
  expect(repositoryOf(parsed(`nginx:1@${sha256}`))).toBe("docker.io/library/nginx")
})

const part = fc.stringMatching(/^[a-z0-9]{1,8}((\.|_|__|-{1,3})[a-z0-9]{1,8}){0,2}$/)
const host = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9]{1,8}(\.[A-Za-z0-9]{1,8}){1,3}(:[0-9]{1,5})?$/),
  fc.stringMatching(/^[A-Za-z0-9]{1,8}:[0-9]{1,5}$/),
  fc.constantFrom("localhost", "[::1]:5000", "docker.io", "index.docker.io"),
)
const reference = fc
  .record({
    host: fc.option(host, { nil: undefined }),
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
    tag: fc.option(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/), { nil: undefined }),
    digest: fc.constantFrom(undefined, sha256, `sha512:${hex(128)}`),
  })
  // Without a host, a first part with a dot (or "localhost") would be read as one.
  .filter(({ host, parts }) => host !== undefined || parts.length === 1 || !/[.]|^localhost$/.test(parts[0]!))
  .map(
    ({ host, parts, tag, digest }): ImageReference => ({
      ...(host && { host }),
      path: parts.join("/"),
      ...(tag && { tag }),
      ...(digest && { digest }),
    }),
  )

test("what is formatted parses to the same reference", () => {
  fc.assert(fc.property(reference, it => void expect(parsed(formatImageReference(it))).toEqual(it)))
})

test("normalising twice is normalising once, and stays the same image", () => {
  fc.assert(
    fc.property(reference, it => {
      const once = normaliseImageReference(it)
      expect(normaliseImageReference(once)).toEqual(once)
      expect(parsed(formatImageReference(once))).toEqual(once)
      expect(sameImage(formatImageReference(it), formatImageReference(once))).toBe(true)
    }),
  )
})

/** Any UTF-16, halves of characters included. */
const anything = fc.string({ unit: fc.nat(0xffff).map(code => String.fromCharCode(code)) })

test("no text makes the parser throw, and what it accepts it also formats back", () => {
  fc.assert(
    fc.property(fc.oneof(anything, almost()), text => {
      const result = parseImageReference(text)
      if (result.ok) expect(formatImageReference(result.reference)).toBe(text)
    }),
    { numRuns: 2000 },
  )
})

// What would take hours if any step looked at every pair of characters.
for (const unit of ["a", "a-", "-", "a/", ":", "@", "[", ".", "a:", "A.", "_a"])
  test(`a million characters of ${unit} take no time`, () => {
    const started = performance.now()
    parseImageReference(unit.repeat(1_000_000 / unit.length))
    parseImageReference(`app@sha256:${unit.repeat(1_000_000 / unit.length)}`)
    expect(performance.now() - started).toBeLessThan(30_000) // on a busy machine, too
  })

const rule = compile(imageReferenceRule.rule, ["self"])

test("the schema's rule accepts what the parser accepts", () => {
  const texts = [...Object.keys(good), ...Object.keys(bad)].filter(text => text !== "" && !isWeakerInTheSchema(text))
  const differing = texts.filter(text => rule({ self: text }) !== parseImageReference(text).ok)
  expect(differing).toEqual([])
})

test("rule and parser agree on texts that are nearly right", () => {
  fc.assert(
    fc.property(almost(), text => {
      fc.pre(text !== "" && text.length <= imageReferenceMaxLength && !isWeakerInTheSchema(text))
      expect(rule({ self: text })).toBe(parseImageReference(text).ok)
    }),
    { numRuns: 3000 },
  )
})

/** CEL's regular expressions cannot limit the length of the whole name; everything else they can say. */
function isWeakerInTheSchema(text: string): boolean {
  const parsed = parseImageReference(text)
  return !parsed.ok && parsed.error.includes("the name has")
}

/** Texts made of what references are made of, right and wrong in every mixture. */
function almost() {
  const piece = fc.constantFrom(
    "a",
    "b1",
    "Z",
    ".",
    "-",
    "_",
    "/",
    ":",
    "@",
    "[",
    "]",
    "::1",
    "5000",
    "localhost",
    sha256,
    "sha256:",
    " ",
    "x.y",
    "\n",
  )
  return fc.array(piece, { maxLength: 9 }).map(pieces => pieces.join(""))
}

function parsed(text: string): ImageReference {
  const result = parseImageReference(text)
  if (!result.ok) throw new Error(`${text}: ${result.error}`)
  return result.reference
}

describe("pins", () => {
  const other = `sha256:${"0".repeat(64)}`
  test.each(["nginx", "nginx:1.27", "localhost:5000/team/app", "localhost:5000/team/app:v1"])("%s and back", image => {
    expect(pinned(image, sha256)).toBe(`${image}@${sha256}`)
    expect(unpinned(pinned(image, sha256))).toBe(image)
    expect(parseImageReference(pinned(image, sha256))).toMatchObject({ ok: true, reference: { digest: sha256 } })
  })
  test("what has a digest keeps it", () => expect(pinned(`app:v1@${other}`, sha256)).toBe(`app:v1@${other}`))
  test("what has none stays", () => expect(unpinned("host:5000/app:v1")).toBe("host:5000/app:v1"))

  test.each([
    [`app:v1@${sha256}`, "app:v1", true],
    [`app:v1@${sha256}`, "docker.io/library/app:v1", true],
    [`app@${sha256}`, "app", true],
    [`app:v1@${sha256}`, "app:v2", false],
    [`app:v1@${sha256}`, "other:v1", false],
    [`app@${sha256}`, "app:v1", false],
    [`app:v1@${sha256}`, `app:v1@${sha256}`, false], // the spec itself names a digest
    [`app:v1@${sha256}`, `app:v1@${other}`, false],
    ["app:v1", "app:v1", false],
    ["app:v1@sha256:12", "app:v1", false],
    ["@", "", false],
  ])("%s is a pin of %s: %s", (text, image, expected) => expect(isPinOf(text, image)).toBe(expected))

  test.each([
    [sha256, true],
    [sha256.toUpperCase(), false],
    [`${sha256}0`, false],
    [`${sha256}, ${sha256}`, false],
    [`md5:${hex(32)}`, false],
    ["__proto__:0", false],
    ["", false],
  ])("%s is a digest: %s", (text, expected) => expect(isDigest(text)).toBe(expected))
})

test("what two texts mean does not depend on what was compared before", () => {
  const answers = () => [
    sameImage("nginx", "docker.io/library/nginx:latest"),
    sameImage("nginx:1", "nginx:2"),
    sameImage("not an image", "not an image either"),
    sameImage("Not/An:Image", "nginx"),
  ]
  const first = answers()
  expect(first).toEqual([true, false, false, false])
  for (let index = 0; index < 5000; index++)
    expect(sameImage(`web:${index}`, `docker.io/library/web:${index}`)).toBe(true)
  expect([answers(), answers()]).toEqual([first, first])
})
