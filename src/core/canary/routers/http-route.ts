/** The part of an HTTPRoute that is read and written. Every other field is kept as it is. */

export type Header = { readonly name: string; readonly value: string }
export type HeaderChange = {
  readonly add?: readonly Header[]
  readonly set?: readonly Header[]
  readonly remove?: readonly string[]
}

export type Ref = {
  readonly group?: string
  readonly kind?: string
  readonly name: string
  readonly namespace?: string
  readonly port?: number
  readonly weight?: number
  readonly filters?: readonly Filter[]
}

export type Filter = {
  readonly type: string
  readonly requestMirror?: { readonly backendRef: Ref; readonly percent?: number }
  readonly responseHeaderModifier?: HeaderChange
  readonly [other: string]: unknown
}

type TextMatch = { readonly type?: string; readonly name: string; readonly value: string }

export type Match = {
  readonly path?: { readonly type: string; readonly value: string }
  readonly headers?: readonly TextMatch[]
  readonly queryParams?: readonly TextMatch[]
  readonly method?: string
}

export type Rule = {
  readonly matches?: readonly Match[]
  readonly filters?: readonly Filter[]
  readonly backendRefs?: readonly Ref[]
  readonly [other: string]: unknown
}

export type Condition = {
  readonly type: string
  readonly status: string
  readonly observedGeneration?: number
  readonly reason?: string
  readonly message?: string
}

export type ParentRef = {
  readonly group?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly sectionName?: string
  readonly port?: number
}

export type ParentStatus = { readonly parentRef: ParentRef; readonly conditions?: readonly Condition[] }

/** What a rule without matches is for. */
const everyPath: readonly Match[] = [{ path: { type: "PathPrefix", value: "/" } }]

export const matchesOf = ({ matches }: Rule) => (matches && matches.length > 0 ? matches : everyPath)

/** Requests that fit one of the first and one of the second. Of one header or parameter only one comparison counts. */
export const bothOf = (first: readonly Match[], second: readonly Match[]): readonly Match[] =>
  second.flatMap(there =>
    first.map(ours => {
      const headers = joined(ours.headers, there.headers)
      const queryParams = joined(ours.queryParams, there.queryParams)
      return { ...there, ...(headers.length > 0 && { headers }), ...(queryParams.length > 0 && { queryParams }) }
    }),
  )

function joined(ours: readonly TextMatch[] = [], there: readonly TextMatch[] = []): readonly TextMatch[] {
  const isOurs = ({ name }: TextMatch) => ours.some(each => each.name.toLowerCase() === name.toLowerCase())
  return [...ours, ...there.filter(each => !isOurs(each))]
}

/** Adds a header to answers: a list of filters may change them once, so what is there already gets it too. */
export function withAnswerHeader(filters: readonly Filter[] = [], header: Header): readonly Filter[] {
  const isChange = ({ type }: Filter) => type === "ResponseHeaderModifier"
  if (!filters.some(isChange))
    return [...filters, { type: "ResponseHeaderModifier", responseHeaderModifier: { add: [header] } }]
  return filters.map(filter => {
    if (!isChange(filter)) return filter
    const { add = [], ...rest } = filter.responseHeaderModifier ?? {}
    return { ...filter, responseHeaderModifier: { ...rest, add: [...add, header] } }
  })
}

/** Writes a text into a pattern (RE2). */
export const quoted = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
