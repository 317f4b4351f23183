/** Where a query is no PromQL, and what to write there. */
export type SyntaxProblem = { readonly at: number; readonly what: string }

/**
 * The first place at which a query is no PromQL, or undefined. Only the form is read: whether a function exists, and
 * what it takes, its server knows, and servers differ in it. Linear in the length, since tenants write queries.
 */
export function promqlProblem(query: string): SyntaxProblem | undefined {
  try {
    const reader = new Reader(tokensOf(query))
    reader.expression(0)
    reader.end()
    return undefined
  } catch (problem) {
    if (problem instanceof NoPromql) return { at: problem.at, what: problem.message }
    throw problem
  }
}

class NoPromql extends Error {
  readonly at: number
  constructor(at: number, what: string) {
    super(what)
    this.at = at
  }
}

type Token = {
  readonly is: "name" | "number" | "string" | "sign" | "end"
  readonly text: string
  readonly at: number
}

/** `1h30m`, the largest unit first; `i` is VictoriaMetrics' own. */
const duration = `(?=[0-9]+[a-z])${["y", "w", "d", "h", "m", "s", "ms", "i"].map(unit => `(?:[0-9]+${unit}(?![a-z]))?`).join("")}`
/** `0x1f`, `1e3`, `.5` and `1_000`. */
const number = "0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\\.[0-9_]*)?|\\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?"
/** In the order of the groups of the pattern, after one for space and comments. */
const kinds = ["number", "name", "string", "sign"] as const
const pattern = (name: string) => [
  "\\s+|#[^\\n]*",
  `(?:${number}|${duration})(?![A-Za-z0-9_.])`,
  name,
  `"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`[^\`]*\``,
  "[=!]~|[=!<>]=|[<>]/|[-+*/%^<>=(){}\\[\\],:@]",
]
const source = (name: string) =>
  pattern(name)
    .map(each => `(${each})`)
    .join("|")
/** Names of metrics may have colons. In square brackets a colon stands between two durations. */
const sources = { plain: source("[A-Za-z_:][A-Za-z0-9_:]*"), inBrackets: source("[A-Za-z_][A-Za-z0-9_]*") }

/** Reads on only as far as it is asked: most of a long text that is no PromQL is never looked at. */
function tokensOf(query: string): (index: number) => Token {
  const tokens: Token[] = []
  const [plain, inBrackets] = [new RegExp(sources.plain, "y"), new RegExp(sources.inBrackets, "y")]
  let offset = 0
  let brackets = 0
  return index => {
    while (tokens.length <= index) tokens.push(read())
    return tokens[index]!
  }

  function read(): Token {
    while (offset < query.length) {
      const at = offset
      const next = brackets > 0 ? inBrackets : plain
      next.lastIndex = at
      const found = next.exec(query)
      if (!found) throw new NoPromql(at, unread(query[at]!))
      offset = next.lastIndex
      const kind = found.findIndex((text, group) => group > 0 && text !== undefined)
      if (kind < 2) continue
      const [text] = found
      if (text === "[") brackets++
      if (text === "]") brackets--
      return { is: kinds[kind - 2]!, text, at }
    }
    return { is: "end", text: "", at: query.trimEnd().length }
  }
}

function unread(character: string): string {
  if (/["'`]/.test(character)) return `the text that begins with ${character} does not end`
  return /[0-9.]/.test(character) ? "this is neither a number nor a duration, such as 0.5 or 1m30s" : notRead(character)
}

const notRead = (character: string) =>
  /[!-~]/.test(character) ? `${character} has no meaning here` : "this character has no meaning here"

/** `default`, `if` and `ifnot` are VictoriaMetrics' own. */
const operators = new Set([
  ...["+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<=", ">/", "</"],
  ...["and", "or", "unless", "atan2", "default", "if", "ifnot"],
])
const matching = new Set(["on", "ignoring"])
const matchingMore = new Set(["group_left", "group_right", "fill", "fill_left", "fill_right"])
const grouping = new Set(["by", "without"])
const aggregations = new Set([
  ...["sum", "avg", "count", "min", "max", "group", "stddev", "stdvar", "topk", "bottomk", "count_values", "quantile"],
  ...["limitk", "limit_ratio"],
])
/** In the place of a duration. */
const durationWords = new Set(["step", "range", "min", "max"])
const deepest = 100

class Reader {
  readonly #token: (index: number) => Token
  #next = 0

  constructor(token: (index: number) => Token) {
    this.#token = token
  }

  end(): void {
    const { is, text, at } = this.#peek
    if (is === "end") return
    if (/^[)\]}]$/.test(text)) throw new NoPromql(at, `${text} closes nothing`)
    throw new NoPromql(at, `an operator is missing before ${shown(this.#peek)}`)
  }

  /** Operands with operators between them. Which binds closer does not matter for the form. */
  expression(depth: number): void {
    if (depth > deepest) throw new NoPromql(this.#peek.at, `brackets are nested more than ${deepest} deep`)
    this.#operand(depth)
    while (this.#operator()) {
      if (this.#word === "bool") this.#next++
      this.#matching(depth)
      this.#operand(depth)
    }
  }

  #operator(): boolean {
    const { is, text } = this.#peek
    const isOne = operators.has(is === "sign" ? text : this.#word)
    if (isOne) this.#next++
    return isOne
  }

  #matching(depth: number): void {
    if (matching.has(this.#word) && this.#isCall) {
      this.#next++
      this.#labels("labels that both sides have")
      while (matchingMore.has(this.#word)) {
        const isFill = this.#word.startsWith("fill")
        this.#next++
        if (isFill) this.#arguments(depth)
        else if (this.#is("(")) this.#labels("labels")
      }
    }
  }

  #operand(depth: number): void {
    while (this.#is("-") || this.#is("+")) this.#next++
    const { is, text, at } = this.#peek
    if (is === "number" || is === "string") this.#next++
    else if (text === "(") this.#within("(", ")", () => this.expression(depth + 1))
    else if (text === "{") this.#matchers()
    else if (is === "name") this.#named(depth)
    else if (is === "end") throw new NoPromql(at, this.#next === 0 ? "the query is empty" : "a value is missing here")
    else throw new NoPromql(at, `a value is missing before ${text}`)
    this.#modifiers(depth)
  }

  /** A metric, a function or an aggregation. Their words may also be names of metrics. */
  #named(depth: number): void {
    const word = this.#word
    this.#next++
    if (aggregations.has(word) && grouping.has(this.#word)) {
      this.#grouping()
      this.#arguments(depth)
    } else if (this.#is("(")) {
      this.#arguments(depth)
      if (grouping.has(this.#word)) this.#grouping()
    } else if (this.#is("{")) this.#matchers()
  }

  #grouping(): void {
    this.#next++
    this.#labels("the labels of by or without")
  }

  #arguments(depth: number): void {
    this.#within("(", ")", () => {
      if (this.#is(")")) return
      do this.expression(depth + 1)
      while (this.#take(","))
    })
  }

  #labels(what: string): void {
    if (!this.#is("(")) throw new NoPromql(this.#peek.at, `( is missing, with ${what}`)
    this.#within("(", ")", () => {
      while (!this.#is(")") && this.#peek.is !== "end") {
        const { is, at } = this.#peek
        if (is !== "name" && is !== "string") throw new NoPromql(at, `a label is missing before ${shown(this.#peek)}`)
        this.#next++
        if (!this.#take(",")) return
      }
    })
  }

  #matchers(): void {
    this.#within("{", "}", () => {
      while (!this.#is("}") && this.#peek.is !== "end") {
        const label = this.#peek
        if (label.is !== "name" && label.is !== "string")
          throw new NoPromql(label.at, `the name of a label is missing before ${shown(label)}`)
        this.#next++
        // A text alone is the name of the metric.
        if (label.is === "name" || this.#isMatch) this.#match(label.text)
        if (!this.#take(",") && this.#word !== "or") return
        if (this.#word === "or") this.#next++
      }
    })
  }

  get #isMatch(): boolean {
    return /^([=!]~|!?=)$/.test(this.#peek.text) && this.#peek.is === "sign"
  }

  #match(label: string): void {
    if (!this.#isMatch) throw new NoPromql(this.#peek.at, `=, !=, =~ or !~ is missing after label ${label}`)
    this.#next++
    const { is, at, text } = this.#peek
    if (is !== "string")
      throw new NoPromql(
        at,
        is === "name" ? `the value of a label stands in quotes: write "${text}"` : "the value of a label is missing",
      )
    this.#next++
  }

  #modifiers(depth: number): void {
    for (;;) {
      if (this.#is("[")) this.#window(depth)
      else if (this.#word === "offset") this.#offset()
      else if (this.#is("@")) this.#time()
      else if (/^(anchored|smoothed|keep_metric_names)$/.test(this.#word)) this.#next++
      else return
    }
  }

  #window(depth: number): void {
    this.#within("[", "]", () => {
      this.#duration(depth)
      if (this.#take(":") && !this.#is("]")) this.#duration(depth)
    })
  }

  #duration(depth: number): void {
    const { is, at } = this.#peek
    const isOne = is === "number" || this.#is("(") || this.#is("-") || this.#is("+") || durationWords.has(this.#word)
    if (!isOne) throw new NoPromql(at, "a duration is missing, such as 1m")
    this.expression(depth + 1)
  }

  #offset(): void {
    this.#next++
    if (this.#is("-") || this.#is("+")) this.#next++
    if (this.#is("(")) this.#within("(", ")", () => this.#duration(0))
    else this.#number("offset needs a duration, such as 5m")
  }

  #time(): void {
    this.#next++
    if (/^(start|end)$/.test(this.#word)) {
      this.#next++
      this.#within("(", ")", () => {})
    } else {
      if (this.#is("-") || this.#is("+")) this.#next++
      this.#number("@ needs a time, start() or end()")
    }
  }

  #number(what: string): void {
    if (this.#peek.is !== "number") throw new NoPromql(this.#peek.at, what)
    this.#next++
  }

  #within(open: string, close: string, inside: () => void): void {
    const { text, at } = this.#peek
    if (text !== open) throw new NoPromql(at, `${open} is missing`)
    this.#next++
    inside()
    if (this.#take(close)) return
    const next = this.#peek
    if (next.is === "end") throw new NoPromql(next.at, `${close} is missing, which closes ${open}`)
    throw new NoPromql(next.at, `${close} or an operator is missing before ${shown(next)}`)
  }

  get #peek(): Token {
    return this.#token(this.#next)
  }

  /** Keywords are read in any case; "" where the next is no name. */
  get #word(): string {
    const { is, text } = this.#peek
    return is === "name" ? text.toLowerCase() : ""
  }

  get #isCall(): boolean {
    const { is, text } = this.#token(this.#next + 1)
    return is === "sign" && text === "("
  }

  #is(sign: string): boolean {
    const { is, text } = this.#peek
    return is === "sign" && text === sign
  }

  #take(sign: string): boolean {
    const isThere = this.#is(sign)
    if (isThere) this.#next++
    return isThere
  }
}

const shown = ({ is, text }: Token) => (is === "end" ? "the end" : text.length > 24 ? `${text.slice(0, 24)}…` : text)
