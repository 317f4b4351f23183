import { isNode, LineCounter, type Node, parseAllDocuments, type Tags } from "yaml"
import type { Problem } from "./validate.ts"

/** One object of a YAML or JSON text, with the lines of its fields. */
export type Manifest = {
  value: unknown
  /** The line, from 1, of a field such as `spec.tiers[0].image`, or of its parent where the field is missing. */
  lineOf(path: string): number
}

export type ManifestProblem = Problem & { line: number }

/**
 * Reads every object of a text as kubectl would: YAML 1.1 (`yes` is true, `012` is ten), lists of objects opened.
 * Never throws: the text is not trusted.
 */
export function parseManifests(text: string): { manifests: Manifest[]; errors: ManifestProblem[] } {
  const lines = new LineCounter()
  const manifests: Manifest[] = []
  const errors: ManifestProblem[] = []
  for (const document of parseAllDocuments(text, {
    version: "1.1",
    customTags: asKubectl,
    lineCounter: lines,
    prettyErrors: false,
    // Otherwise the parser prints warnings to the terminal by itself.
    logLevel: "error",
  })) {
    for (const { message, pos } of document.errors) errors.push({ path: "", message, line: lines.linePos(pos[0]).line })
    if (document.errors.length > 0) continue
    const value = read(() => document.toJS())
    if (value instanceof Error) errors.push({ path: "", message: value.message, line: lineAt(document.contents) })
    else if (value !== null) manifests.push(...opened(value, [], path => lineAt(nodeAt(path))))

    function nodeAt(path: Path): unknown {
      for (let length = path.length; length > 0; length--) {
        const node = document.getIn(path.slice(0, length), true)
        if (isNode(node)) return node
      }
      return document.contents
    }
  }
  return { manifests, errors }

  function lineAt(node: unknown): number {
    const range = (node as Node | null)?.range
    return range ? lines.linePos(range[0]).line : 1
  }
}

type Path = (string | number)[]

/** `kind: List`, as `kubectl get -o yaml` prints it, stands for its items. */
function opened(value: unknown, at: Path, line: (path: Path) => number): Manifest[] {
  const { kind, items } = value as { kind?: unknown; items?: unknown }
  if (kind === "List" && Array.isArray(items))
    return items.flatMap((item, index) => opened(item, [...at, "items", index], line))
  return [{ value, lineOf: path => line([...at, ...segments(path)]) }]
}

/** `spec.tiers[0].labels[example.com/a]` as a list of keys. */
const segments = (path: string): Path =>
  [...path.matchAll(/\[([^\]]*)\]|[^.[]+/g)].map(([segment, key]) =>
    key === undefined ? segment : /^\d+$/.test(key) ? Number(key) : key,
  )

/**
 * Dates and sexagesimal numbers of YAML 1.1 stay text, and `0o12` is ten as in YAML 1.2, because kubectl's parser
 * reads them so.
 */
const asKubectl = (tags: Tags): Tags => [
  ...tags.filter(tag => typeof tag === "string" || !(tag.tag.endsWith(":timestamp") || tag.format === "TIME")),
  "intOct",
]

function read(get: () => unknown): unknown {
  try {
    return get()
  } catch (error) {
    // A few lines with aliases of aliases can expand to gigabytes; the parser refuses to expand them.
    return error instanceof Error ? error : new Error(String(error))
  }
}
