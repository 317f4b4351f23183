import type { Json } from "../object.ts"

/** Text that is no JSON, worded as Go's parser words it. */
export class JsonSyntaxError extends Error {
  override name = "JsonSyntaxError"
}

/** `duplicates`: keys that are twice in one object, as paths in the server's form: `spec.replicas`. */
export type ReadJson = { value: Json; duplicates: string[] }

/** Parses JSON and finds duplicate keys, which JSON.parse drops. */
export function readJson(text: string): ReadJson {
  const value = parse(text)
  const duplicates: string[] = []
  new Scanner(text, path => duplicates.push(path)).all()
  return { value, duplicates }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    new Scanner(text, () => {}).all() // throws with Go's words
    throw new JsonSyntaxError("unexpected end of JSON input")
  }
}

class Scanner {
  at = 0
  readonly text: string
  readonly onDuplicate: (path: string) => void

  constructor(text: string, onDuplicate: (path: string) => void) {
    this.text = text
    this.onDuplicate = onDuplicate
  }

  all() {
    this.value("", "looking for beginning of value")
    if (this.peek() !== undefined) this.refuse("after top-level value")
  }

  /** The next character that is no space. */
  peek(): string | undefined {
    while (" \t\r\n".includes(this.text[this.at] ?? "x")) this.at++
    return this.text[this.at]
  }

  refuse(where: string): never {
    const found = this.peek()
    if (found === undefined) throw new JsonSyntaxError("unexpected end of JSON input")
    const shown = found === "'" ? `'\\''` : found === '"' ? `'"'` : `'${found}'`
    throw new JsonSyntaxError(`invalid character ${shown} ${where}`)
  }

  value(path: string, where: string) {
    const next = this.peek()
    if (next === "{") return this.object(path)
    if (next === "[") return this.array(path)
    if (next === '"') return void this.string()
    const literal = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(this.text.slice(this.at, this.at + 40))
    if (!literal) this.refuse(where)
    this.at += literal[0].length
  }

  object(path: string) {
    this.at++
    if (this.peek() === "}") return void this.at++
    const seen = new Set<string>()
    for (;;) {
      if (this.peek() !== '"') this.refuse("looking for beginning of object key string")
      const key = this.string()
      const inside = path === "" ? key : `${path}.${key}`
      if (seen.has(key)) this.onDuplicate(inside)
      seen.add(key)
      if (this.peek() !== ":") this.refuse("after object key")
      this.at++
      this.value(inside, "looking for beginning of value")
      const next = this.peek()
      if (next !== "," && next !== "}") this.refuse("after object key:value pair")
      this.at++
      if (next === "}") return
    }
  }

  array(path: string) {
    this.at++
    if (this.peek() === "]") return void this.at++
    for (let index = 0; ; index++) {
      this.value(`${path}[${index}]`, "looking for beginning of value")
      const next = this.peek()
      if (next !== "," && next !== "]") this.refuse("after array element")
      this.at++
      if (next === "]") return
    }
  }

  string(): string {
    const from = this.at++
    while (this.text[this.at] !== '"') {
      if (this.at >= this.text.length) throw new JsonSyntaxError("unexpected end of JSON input")
      this.at += this.text[this.at] === "\\" ? 2 : 1
    }
    this.at++
    try {
      return JSON.parse(this.text.slice(from, this.at))
    } catch {
      throw new JsonSyntaxError("invalid character in string literal")
    }
  }
}
