/** Stands for what no two runs share: the same ID is the same word within one transcript. */
export class Names {
  #words: [string, string][]
  #known = new Map<string, string>()
  #counts = new Map<string, number>()

  constructor(words: [string, string][]) {
    this.#words = words
  }

  /** `what: value`, one line for each field of an object. */
  lines(what: string, value: unknown): string[] {
    if (typeof value !== "object" || value === null)
      return [this.clean(`${what}: ${value}`).replaceAll("\n", "\\n").trimEnd()]
    if (Array.isArray(value)) {
      if (value.length === 0) return [`${what}: []`]
      return value.flatMap((item, index) => this.lines(`${what}[${index}]`, item))
    }
    // Maps come in any order.
    const entries = Object.entries(value).filter(([, each]) => each !== undefined)
    entries.sort(([a], [b]) => (a < b ? -1 : 1))
    if (entries.length === 0) return [`${what}: {}`]
    return entries.flatMap(([key, each]) => this.lines(`${what}.${key}`, each))
  }

  clean(text: string): string {
    let clean = text
    for (const [from, to] of this.#words) clean = clean.replaceAll(from, to).replaceAll(encodeURIComponent(from), to)
    return clean
      .replace(/sha256:[0-9a-f]{64}/g, digest => this.#name(digest, "DIGEST"))
      .replace(/\b[0-9a-f]{64}\b/g, id => this.#name(id, "ID"))
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, uid => this.#name(uid, "UID"))
      .replace(/\b10\.\d+\.\d+\.\d+\b/g, "ADDRESS")
  }

  #name(found: string, word: string): string {
    const known = this.#known.get(found)
    if (known) return known
    const count = (this.#counts.get(word) ?? 0) + 1
    this.#counts.set(word, count)
    this.#known.set(found, `${word}${count}`)
    return `${word}${count}`
  }
}
