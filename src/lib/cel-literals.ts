/**
 * `JSONPatch{op: 'add'}` and `Object.spec{replicas: 1}` as calls. The library's grammar has no such literals and its
 * parser cannot be extended, so they are rewritten before it reads the expression.
 */
export function withoutLiterals(expression: string): string {
  if (!/\b(?:Object|JSONPatch)\b/.test(expression)) return expression
  const tokens = expression.match(token) ?? []
  return copied({ tokens, at: 0 }, () => false)
}

/** A comment, a text with its prefix, a name, blanks, or one character. */
const token =
  /\/\/[^\n]*|[rRbB]{0,2}(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|[A-Za-z_]\w*|\s+|[\s\S]/g

type Reader = { readonly tokens: readonly string[]; at: number }

const isBlank = (text: string | undefined) => text !== undefined && (/^\s/.test(text) || text.startsWith("//"))
const isName = (text: string | undefined): text is string => text !== undefined && /^[A-Za-z_]\w*$/.test(text)

/** What follows, its literals rewritten, up to a token outside of all brackets that ends it. */
function copied(reader: Reader, ends: (token: string) => boolean): string {
  let text = ""
  let depth = 0
  while (reader.at < reader.tokens.length) {
    const next = reader.tokens[reader.at]!
    if (depth === 0 && ends(next)) break
    const call = callAt(reader)
    if (call !== undefined) {
      text += call
      continue
    }
    if (/^[([{]$/.test(next)) depth++
    if (/^[)\]}]$/.test(next)) depth--
    text += next
    reader.at++
  }
  return text
}

function skipBlanks(reader: Reader): string | undefined {
  while (isBlank(reader.tokens[reader.at])) reader.at++
  return reader.tokens[reader.at]
}

/** The call that stands for the literal here; undefined where none is, or none that is whole. */
function callAt(reader: Reader): string | undefined {
  const begin = reader.at
  const before = reader.tokens.slice(0, begin).findLast(each => !isBlank(each))
  const type = before === "." ? undefined : typeAt(reader)
  const fields = type === undefined ? undefined : fieldsAt(reader)
  if (type === undefined || !fields) {
    reader.at = begin
    return undefined
  }
  const names = fields.map(({ name }) => `'${name}'`).join(", ")
  const values = fields.map(({ value }) => `dyn(${value})`).join(", ")
  const call = type === "JSONPatch" ? "jsonPatchLiteral(" : `objectLiteral('${type}', `
  return `${call}[${names}], [${values}])`
}

function typeAt(reader: Reader): string | undefined {
  const root = reader.tokens[reader.at]
  if (root !== "Object" && root !== "JSONPatch") return undefined
  let type: string = root
  reader.at++
  while (skipBlanks(reader) === "." && root === "Object") {
    reader.at++
    const name = skipBlanks(reader)
    if (!isName(name)) return undefined
    type += `.${name}`
    reader.at++
  }
  if (reader.tokens[reader.at] !== "{") return undefined
  reader.at++
  return type
}

type Field = { name: string; value: string }

function fieldsAt(reader: Reader): Field[] | undefined {
  const fields: Field[] = []
  while (skipBlanks(reader) !== "}") {
    const isOptional = reader.tokens[reader.at] === "?"
    if (isOptional) reader.at++
    const name = skipBlanks(reader)
    reader.at++
    if (!isName(name) || skipBlanks(reader) !== ":") return undefined
    reader.at++
    const value = copied(reader, each => each === "," || each === "}")
    fields.push({ name: isOptional ? `?${name}` : name, value })
    if (reader.tokens[reader.at] === ",") reader.at++
    else if (reader.tokens[reader.at] !== "}") return undefined
  }
  reader.at++
  return fields
}
