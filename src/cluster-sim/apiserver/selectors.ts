import type { Obj } from "../object.ts"
import type { ServedKind } from "./kind.ts"
import { labelValueRule, qualifiedName } from "./names.ts"
import { badRequest, quote } from "./refusals.ts"
import type { Selection } from "./storage.ts"

export type Matches = (object: Obj) => boolean

/** The filter of a list or watch; undefined: every object passes. Throws the server's refusal of a bad selector. */
export function selector(kind: ServedKind, { labelSelector, fieldSelector }: Selection): Matches | undefined {
  const tests: Matches[] = []
  if (labelSelector) tests.push(...parseLabelSelector(labelSelector).map(byLabels))
  if (fieldSelector) tests.push(...parseFieldSelector(kind, fieldSelector))
  if (tests.length === 0) return undefined
  return object => tests.every(test => test(object))
}

type Operator = "in" | "notin" | "exists" | "!" | ">" | "<"
type Requirement = { key: string; operator: Operator; values: string[] }

function byLabels({ key, operator, values }: Requirement): Matches {
  const limit = Number(values[0])
  return ({ metadata: { labels } }) => {
    const value = labels?.[key]
    if (operator === "!") return value === undefined
    if (operator === "notin") return value === undefined || !values.includes(value)
    if (value === undefined) return false
    if (operator === "exists") return true
    if (operator === "in") return values.includes(value)
    if (!/^-?\d+$/.test(value)) return false
    return operator === ">" ? Number(value) > limit : Number(value) < limit
  }
}

const special = "=!(),><"
const keywords = new Set([")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("])
const binary = "in, notin, =, ==, !=, gt, lt" // as the server lists them

type Token = { is: string; text: string } // `is`: the keyword, "identifier", "end" or "error"

function* tokens(text: string): Generator<Token> {
  let at = 0
  for (;;) {
    while (/[ \t\r\n]/.test(text[at] ?? "")) at++
    const first = text[at]
    if (first === undefined) break
    const start = at
    if (special.includes(first)) {
      let last: string | undefined
      while (at < text.length && special.includes(text[at] as string)) {
        const longer = text.slice(start, at + 1)
        if (keywords.has(longer)) last = longer
        else if (last !== undefined) break
        at++
      }
      yield last === undefined
        ? { is: "error", text: `error expected: keyword found '${text.slice(start, at)}'` }
        : { is: last, text: last }
    } else {
      while (at < text.length && !special.includes(text[at] as string) && !/[ \t\r\n]/.test(text[at] as string)) at++
      const word = text.slice(start, at)
      yield { is: keywords.has(word) ? word : "identifier", text: word }
    }
  }
  yield { is: "end", text: "" }
}

/** The grammar of apimachinery's labels.Parse, with its complaints. */
function parseLabelSelector(text: string): Requirement[] {
  const list = [...tokens(text)]
  let position = 0
  const asValue = (token: Token): Token =>
    token.is === "in" || token.is === "notin" ? { is: "identifier", text: token.text } : token
  const ahead = () => asValue(list[position] as Token)
  const take = () => asValue(list[position++] as Token)
  const refuse = (why: string) => badRequest(why)
  const inRequirement = (why: string) => refuse(`unable to parse requirement: ${why}`)

  function value(): string[] {
    const next = ahead()
    if (next.is === "end" || next.is === ",") return [""]
    const token = take()
    if (token.is !== "identifier") throw inRequirement(`found '${token.text}', expected: identifier`)
    return [token.text]
  }

  function values(): string[] {
    const open = take()
    if (open.is !== "(") throw inRequirement(`found '${open.text}' expected: '('`)
    const next = ahead()
    if (next.is === ")") {
      take()
      return [""]
    }
    if (next.is !== "identifier" && next.is !== ",")
      throw inRequirement(`found '${next.text}', expected: ',', ')' or identifier`)
    const found = new Set<string>()
    for (;;) {
      const token = take()
      if (token.is === "identifier") {
        found.add(token.text)
        const after = ahead()
        if (after.is === ",") continue
        if (after.is === ")") break
        throw inRequirement(`found '${after.text}', expected: ',' or ')'`)
      }
      if (token.is !== ",") throw inRequirement(`found '${token.text}', expected: ',', or identifier`)
      if (found.size === 0) found.add("")
      if (ahead().is === ",") found.add("")
      if (ahead().is === ")") {
        found.add("")
        break
      }
    }
    take() // the closing bracket
    return [...found].sort()
  }

  function requirement(): Requirement {
    let token = take()
    const isNegated = token.is === "!"
    if (isNegated) token = take()
    if (token.is !== "identifier") throw inRequirement(`found '${token.text}', expected: identifier`)
    const key = token.text
    const wrongKey = qualifiedName(key)
    if (wrongKey.length > 0) throw inRequirement(`<nil>: Invalid value: ${quote(key)}: ${wrongKey.join("; ")}`)
    const next = ahead()
    if (isNegated) return { key, operator: "!", values: [] }
    if (next.is === "end" || next.is === ",") return { key, operator: "exists", values: [] }
    const { is, text: word } = list[position++] as Token
    if (is === "in" || is === "notin") return checked({ key, operator: is, values: values() })
    if (is === "=" || is === "==") return checked({ key, operator: "in", values: value() })
    if (is === "!=") return checked({ key, operator: "notin", values: value() })
    if (is === ">" || is === "<") return checked({ key, operator: is, values: value() })
    throw inRequirement(`found '${word}', expected: ${binary}`)
  }

  function checked(found: Requirement): Requirement {
    if (found.operator === ">" || found.operator === "<") {
      if (!/^[+-]?\d+$/.test(found.values[0] ?? ""))
        throw inRequirement(
          `values[0]: Invalid value: ${quote(found.values[0] ?? "")}: for 'Gt', 'Lt' operators, the value must be an integer`,
        )
    }
    for (const [index, each] of found.values.entries()) {
      const wrong = labelValueRule(each)
      if (wrong.length > 0)
        throw inRequirement(`values[${index}][${found.key}]: Invalid value: ${quote(each)}: ${wrong.join("; ")}`)
    }
    return found
  }

  const requirements: Requirement[] = []
  for (;;) {
    const token = ahead()
    if (token.is === "end") return requirements
    if (token.is !== "identifier" && token.is !== "!")
      throw refuse(`found '${token.text}', expected: !, identifier, or 'end of string'`)
    requirements.push(requirement())
    const next = take()
    if (next.is === "end") return requirements
    if (next.is !== ",") throw refuse(`found '${next.text}', expected: ',' or 'end of string'`)
    const after = ahead()
    if (after.is !== "identifier" && after.is !== "!")
      throw refuse(`found '${after.text}', expected: identifier after ','`)
  }
}

function parseFieldSelector(kind: ServedKind, text: string): Matches[] {
  return splitTerms(text)
    .filter(term => term !== "")
    .map(term => {
      const found = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
      if (!found) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
      const [, field = "", operator, raw = ""] = found
      const value = unescaped(raw)
      const read = fieldReader(kind, field)
      return operator === "!=" ? object => read(object) !== value : object => read(object) === value
    })
}

function fieldReader(kind: ServedKind, field: string): (object: Obj) => string {
  if (field === "metadata.name") return object => object.metadata.name
  if (field === "metadata.namespace") return object => object.metadata.namespace ?? ""
  const { selectableFields } = kind.strategy
  if (!selectableFields)
    throw badRequest(
      kind.isCustom
        ? `field label not supported: ${field}`
        : `${quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    )
  if (!Object.hasOwn(selectableFields(nothing(kind)), field)) throw badRequest(`field label not supported: ${field}`)
  return object => selectableFields(object)[field] ?? ""
}

/** An empty object: shows which fields a kind can be selected by when no object exists. */
const nothing = ({ kind }: ServedKind): Obj => ({
  apiVersion: "",
  kind,
  metadata: { name: "", uid: "", resourceVersion: "", creationTimestamp: "" },
  spec: {},
  status: {},
})

/** At commas that are not escaped. */
const splitTerms = (text: string) => text.match(/(?:\\.|[^,\\])+|\\$/gs) ?? []

function unescaped(value: string): string {
  let plain = ""
  for (let at = 0; at < value.length; at++) {
    const letter = value[at] as string
    if (letter === "\\") {
      const next = value[++at]
      if (next === undefined || !"\\,=".includes(next))
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next ?? ""}`)
      plain += next
    } else if (letter === "=")
      throw badRequest(`invalid field selector: unescaped character in value: ${letter.charCodeAt(0)}`)
    else plain += letter
  }
  return plain
}
