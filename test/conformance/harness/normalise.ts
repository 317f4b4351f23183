import type { Ground } from "./floor.ts"
import type { Transcript } from "./run.ts"
import type { Case, Json } from "./script.ts"

/**
 * A transcript as lines, one per field, without what no two runs share: names that the server invents, uids, times,
 * versions, addresses. What stands for them keeps what they say: the same uid is the same word everywhere, and of two
 * versions of one object the later has the higher number.
 */
export function normalise(transcript: Transcript, { words }: Pick<Ground, "words">, each: Case, id: string): string[] {
  const names = namesIn(transcript, each)
  const clean = (text: string) => cleaned(text, [...words, [id, "CASE"]], names)
  const lines = transcript.entries.flatMap(({ step, answer }) => [
    `» ${clean(step)}`,
    ...flat(meant(answer, each, names, clean), "  "),
  ])
  return transcript.trouble === undefined ? lines : [...lines, ...clean(`! ${transcript.trouble}`).split("\n")]
}

/** What stands for the names that a run invented. */
type Names = {
  uids: Map<string, string>
  versions: Map<string, string>
  hashes: Map<string, string>
  withHashes: boolean
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

function namesIn({ entries }: Transcript, { withHashes }: Case): Names {
  const versions = new Map<string, Set<number>>()
  const see = (uid: string, version: string) => {
    const seen = versions.get(uid) ?? new Set()
    versions.set(uid, seen.add(Number(version)))
  }
  const walk = (value: Json): void => {
    if (typeof value === "string") {
      // Of what kubectl prints: as JSON and as YAML, where the two stand beside each other.
      for (const [, version, uid] of value.matchAll(/resourceVersion"?: "(\d+)",?\s+"?uid"?: "?([0-9a-f-]{36})/g))
        see(uid as string, version as string)
      return
    }
    if (typeof value !== "object" || value === null) return
    const { uid, resourceVersion } = value
    if (typeof uid === "string" && /^\d+$/.test(resourceVersion)) see(uid, resourceVersion)
    for (const each of Object.values(value)) walk(each)
  }
  for (const { answer } of entries) walk(answer)
  const ranks = [...versions.values()].flatMap(seen =>
    [...seen].sort((a, b) => a - b).map((version, rank) => [String(version), `RV${rank + 1}`] as const),
  )
  return { uids: new Map(), hashes: new Map(), versions: new Map(ranks), withHashes }
}

const ordinal = (known: Map<string, string>, word: string) => (name: string) => {
  const token = known.get(name) ?? `${word}${known.size + 1}`
  known.set(name, token)
  return token
}

/** The alphabet of what the server invents leaves out vowels and what looks like them, so that no word is among it. */
const invented = "[bcdfghjklmnpqrstvwxz2456789]"
const suffix = new RegExp(`([-_])${invented}{5}(?![a-z0-9])`, "g")
const hash = new RegExp(`(?<=^|[-=:" (])${invented}{6,10}(?![a-zA-Z0-9])`, "g")
const instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g

function cleaned(text: string, words: [string | RegExp, string][], names: Names): string {
  let clean = text
  for (const [from, to] of words) clean = clean.replaceAll(from, to)
  clean = clean
    .replace(uuid, ordinal(names.uids, "UID"))
    .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, "TOKEN")
    .replace(instant, (_, fraction) => (fraction ? "TIME.FRACTION" : "TIME"))
    .replace(/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, "TIME")
    .replace(/(?<=\.)[0-9a-f]{16}\b/g, "EVENT")
    .replace(/\b(containerd:\/\/)[0-9a-f]{64}/g, "$1ID")
    .replace(/\bsha256:[0-9a-f]{64}/g, "sha256:DIGEST")
    .replace(/\b(real|kwok|node)-\d+\b/g, "NODE")
    .replace(/\b(10|172)\.\d+\.\d+\.\d+\b/g, "ADDRESS")
    .replace(/(resourceVersion\\*"?: ?\\*")(\d+)/g, (_, key, version) => `${key}${names.versions.get(version) ?? "RV"}`)
    .replace(/(?<=Resource Version: +)\d+/g, "RV")
    .replace(/--resource-version=\d+/g, "--resource-version=RV")
    .replace(/resourceVersion=(?!0\b|1\b|9{12})\d+/g, "resourceVersion=RV")
    .replace(/ResourceVersion in record \(\d+\)/g, "ResourceVersion in record (RV)")
    .replace(/resource version: \d+/g, "resource version: RV")
    .replace(/resource version: RV, current: \d+/g, "resource version: RV, current: RV")
    .replace(/resource version: RV \(\d+\)/g, "resource version: RV (RV)")
    .replace(/:3\d{4}\/(TCP|UDP)/g, ":PORT/$1")
    // The server collects these paths from a map: their order is another one in each run.
    .replace(/(?<=atomic arrays, maps or structs: )[^\s,]+(, [^\s,]+)*/g, paths => paths.split(", ").sort().join(", "))
    .replace(/-\d{8}(?=-|\b)/g, "-MINUTE")
    .replace(suffix, "$1XXXXX")
  return names.withHashes ? clean : clean.replace(hash, ordinal(names.hashes, "HASH"))
}

const age = /^((\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?|<invalid>)$/
const isText = (value: Json): value is { code: number; stdout: string; stderr: string } =>
  typeof value?.stdout === "string" && typeof value?.stderr === "string"

/** The answer without what does not count. */
function meant(value: Json, each: Case, names: Names, clean: (text: string) => string, key = ""): Json {
  const go = (inner: Json, name: string) => meant(inner, each, names, clean, name)
  if (typeof value === "string") {
    if (key === "resourceVersion" && /^\d+$/.test(value))
      return value === "0" ? value : (names.versions.get(value) ?? "RV")
    // A list's, or a bookmark's: it moves with what others write.
    if (key === "resourceVersion of nothing") return value === "0" ? value : "RV"
    if (key === "continue" && value) return "CONTINUE"
    if (key === "cell" && value && age.test(value)) return "AGE"
    return clean(value)
  }
  if (key === "nodePort") return "PORT"
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map(item => go(item, key === "cells" || key === "cell" ? "cell" : ""))
    const managers = each.withoutStatus ? items.filter(item => item.manager !== "kube-controller-manager") : items
    // Sorted by the second in which they were written, and so not the same in two runs.
    return key === "managedFields" ? managers.sort((a, b) => (words(a) < words(b) ? -1 : 1)) : items
  }
  if (isText(value)) return { code: value.code, stdout: clean(page(value.stdout)), stderr: clean(page(value.stderr)) }
  const entries = Object.entries(value)
    .filter(([name]) => !(each.withoutManagedFields && name === "managedFields"))
    .filter(
      ([name]) => !(each.withoutStatus && (controllersNotes.includes(name) || (name === "status" && value.metadata))),
    )
    .map(([name, inner]) => [
      clean(name),
      go(inner, name === "resourceVersion" && value.uid === undefined ? "resourceVersion of nothing" : name),
    ])
  return Object.fromEntries(entries)
}

const controllersNotes = ["deployment.kubernetes.io/revision"]

const words = ({ manager, operation, subresource = "", apiVersion }: Json) =>
  [manager, operation, subresource, apiVersion].join(" ")

/** What kubectl prints, without ages and the width of columns. */
function page(text: string): string {
  return (
    text
      .replace(/(?<=[\s(])((\d+y)?(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?s|\d+[mh]|\d+m\d+s|<invalid>)(?=[\s)]|$)/g, "AGE")
      .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}/g, "TIME")
      .replace(/\/tmp\/(LIVE|MERGED)-\d+/g, "/tmp/$1")
      .replace(/\/tmp\/kubectl-edit-\d+/g, "/tmp/kubectl-edit")
      .replace(/AGE \(x\d+ over AGE\)/g, "AGE (xN over AGE)")
      .replace(/(?<=\S) {2,}(?=\S)/g, "  ")
      .replace(/ +$/gm, "")
      // What kubectl's libraries log about connections that they end themselves.
      .replace(/^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n?/gm, "")
  )
}

/** One line per field; text of several lines as it is. */
function flat(value: Json, at: string): string[] {
  if (typeof value === "string" && value.includes("\n"))
    return [
      `${at}:`,
      ...value
        .replace(/\n$/, "")
        .split("\n")
        .map(line => `    | ${line}`),
    ]
  if (typeof value !== "object" || value === null) return [`${at} = ${JSON.stringify(value)}`]
  const separator = at === "  " ? "" : "."
  const lines = Array.isArray(value)
    ? value.flatMap((item, index) => flat(item, `${at}[${index}]`))
    : Object.keys(value)
        .sort()
        .flatMap(key => flat(value[key], `${at}${separator}${key}`))
  return lines.length > 0 ? lines : [`${at} = ${Array.isArray(value) ? "[]" : "{}"}`]
}
