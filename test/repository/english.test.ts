import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"

const root = join(import.meta.dirname, "../..")
/** Recorded on real servers, generated, or of other authors. */
const isForeign = (file: string) => /recorded|[.]generated[.]|^(LICENSE|NOTICE|package-lock)|go[.](mod|sum)$/.test(file)
const ourselves = "test/repository/english.test.ts"
/** It names the words that it forbids. */
const isAboutWords = (file: string) => file === ourselves || file === "CONTRIBUTING.md"

const people = "people|persons?|users?|operators?|administrators?|authors?|readers?|teams?|customers?"

/** Objects, processes and callers are not persons: CONTRIBUTING.md, "Plain words". */
const patterns: Record<string, RegExp> = {
  "he, his, him": /\b(?:he|his|him|himself)\b/gi,
  "nobody, everybody, somebody, anybody": /\b(?:nobody|everybody|somebody|anybody)(?:'s|\b)/gi,
  "who, whom, whoever": new RegExp(String.raw`(?<!\b(?:${people}) )\b(?:who|whom|whoever|whomever)\b(?! am i\b)`, "gi"),
}

type Finding = { file: string; line: number; words: string }

/** Comments and texts of a program, or the prose of a page, with everything else blanked out so that lines stay. */
function proseOf(file: string, text: string): string {
  if (file.endsWith(".md")) return text.replaceAll(/^```[^\n]*\n.*?^```/gms, blank).replaceAll(/`[^`\n]*`/g, blank)
  if (/[.](?:ya?ml|sh)$|^bin\/|Containerfile/.test(file)) return text.replaceAll(/^(?!\s*#).*?(?=#\s|$)/gm, blank)
  return text.replaceAll(/\/\*.*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|[^/"`]+|./gs, part =>
    isText(part) ? part.replaceAll(/\$\{[^}]*\}/g, blank) : blank(part),
  )
}

/** A comment, or a string of several words: one word alone is a name or data. */
const isText = (part: string) => /^\/[/*]/.test(part) || (/^["`]/.test(part) && /\s/.test(part))
const blank = (text: string) => text.replaceAll(/[^\n]/g, " ")

function findingsIn(file: string, text: string): Finding[] {
  const prose = proseOf(file, text)
  return Object.values(patterns).flatMap(pattern =>
    [...prose.matchAll(pattern)].map(({ index, 0: words }) => ({
      file,
      line: prose.slice(0, index).split("\n").length,
      words,
    })),
  )
}

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter(file => /[.](?:ts|cjs|mjs|md|ya?ml|sh)$|^bin\/|^examples\/dicom\/run$|Containerfile$/.test(file))
  .filter(file => !isForeign(file) && !isAboutWords(file))
const read = (file: string) => findingsIn(file, readFileSync(join(root, file), "utf8"))

test("things are not persons, in comments, messages and docs", () => {
  expect(files.flatMap(read).map(({ file, line, words }) => `${file}:${line}: ${words}`)).toEqual([])
})

describe("what is found", () => {
  const cases: Record<string, { file: string; text: string; words: string[] }> = {
    "a leader that is called he": { file: "a.ts", text: "// He wrote since: our copy may be old", words: ["He"] },
    "a clause that begins with who": { file: "a.ts", text: "/** Who has rested asks anew. */", words: ["Who"] },
    "a follower that is called whoever": { file: "a.ts", text: "x() // whoever comes later", words: ["whoever"] },
    "nobody, in a message": { file: "a.ts", text: "say(`it is for nobody`)", words: ["nobody"] },
    "somebody else's, on a page": { file: "a.md", text: "It is somebody else's.", words: ["somebody"] },
    "a comment of a manifest": { file: "a.yaml", text: "a: 1 # for everybody", words: ["everybody"] },
    "people, who are persons": { file: "a.md", text: "For people who write it, and users who read it.", words: [] },
    "a name in the code": { file: "a.ts", text: "const who = his.whoami(nobody)", words: [] },
    "code on a page": { file: "a.md", text: "```sh\nwho\n```\nRun `kubectl auth whoami`, or `who`.", words: [] },
    "words that only contain one": { file: "a.md", text: "The whole history; whose label this is.", words: [] },
  }
  for (const [name, { file, text, words }] of Object.entries(cases))
    test(name, () => expect(findingsIn(file, text).map(found => found.words)).toEqual(words))
})
