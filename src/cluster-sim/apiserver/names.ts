import type { ServedKind } from "./kind.ts"

/** Rules for names and labels, with the sentences of k8s.io/apimachinery. Each returns what is wrong, or nothing. */
type Rule = (value: string) => string[]

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
const subdomain = `${label}(\\.${label})*`
const qualified = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
const labelValue = `(${qualified})?`

const matches = (format: string) => {
  const expression = new RegExp(`^${format}$`)
  return (value: string) => expression.test(value)
}
const isLabel = matches(label)
const isSubdomain = matches(subdomain)
const isQualified = matches(qualified)
const isLabelValue = matches(labelValue)

const tooLong = (max: number) => `must be no more than ${max} bytes`
const tooLongName = (max: number) => `must be no more than ${max} characters` // the server has both wordings
const mismatch = (sentence: string, format: string, ...examples: string[]) =>
  `${sentence} (e.g. ${examples.map(example => `'${example}'`).join(",  or ")}, regex used for validation is '${format}')`

export const dnsLabel: Rule = value => {
  const wrong: string[] = []
  if (value.length > 63) wrong.push(tooLongName(63))
  if (!isLabel(value))
    wrong.push(
      isSubdomain(value)
        ? "must not contain dots"
        : mismatch(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            label,
            "my-name",
            "123-abc",
          ),
    )
  return wrong
}

export const dnsSubdomain: Rule = value => {
  const wrong: string[] = []
  if (value.length > 253) wrong.push(tooLongName(253))
  if (!isSubdomain(value))
    wrong.push(
      mismatch(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        subdomain,
        "example.com",
      ),
    )
  return wrong
}

/** The rule for every name that is part of a path. */
const pathSegment: Rule = value => {
  if (value === "." || value === "..") return [`may not be '${value}'`]
  return ["/", "%"].filter(illegal => value.includes(illegal)).map(illegal => `may not contain '${illegal}'`)
}

/** The rule for names of labels, annotations and finalizers. */
export const qualifiedName: Rule = value => {
  const wrong: string[] = []
  const parts = value.split("/")
  const [prefix, name] = parts.length === 2 ? parts : [undefined, parts[0]]
  const sentence =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
  if (parts.length > 2)
    return [
      `${mismatch("a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character", qualified, "MyName", "my.name", "123-abc")} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  if (prefix === "") wrong.push("prefix part must be non-empty")
  else if (prefix !== undefined) wrong.push(...dnsSubdomain(prefix).map(each => `prefix part ${each}`))
  if (!name) wrong.push("name part must be non-empty")
  else if (name.length > 63) wrong.push(`name part ${tooLong(63)}`)
  if (!isQualified(name ?? "")) wrong.push(mismatch(sentence, qualified, "MyName", "my.name", "123-abc"))
  return wrong
}

export const labelValueRule: Rule = value => {
  const wrong: string[] = []
  if (value.length > 63) wrong.push(tooLong(63))
  if (!isLabelValue(value))
    wrong.push(
      mismatch(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        labelValue,
        "MyValue",
        "my_value",
        "12345",
      ),
    )
  return wrong
}

/** The rule for the names of this kind's objects: a DNS subdomain, with a few exceptions. */
export function nameRule({ group, plural }: ServedKind): Rule {
  if (group === "" && (plural === "namespaces" || plural === "services")) return dnsLabel
  if (group === "apps" && plural === "statefulsets") return dnsLabel
  if (group === "rbac.authorization.k8s.io") return pathSegment
  return dnsSubdomain
}

const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

/** The prefix and five letters, never longer than a label. */
export function generateName(prefix: string, random: () => number): string {
  const letters = Array.from({ length: 5 }, () => suffixLetters[Math.floor(random() * suffixLetters.length)])
  return prefix.slice(0, 63 - letters.length) + letters.join("")
}
