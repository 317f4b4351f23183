import { Refusal } from "./guard.ts"
import { pageOf } from "./kinds/all.ts"
import type { ActionName, ActionRequest, ObjectId, Page } from "./wire.ts"

type Json = Readonly<Record<string, unknown>>

const bad = (message: string, field?: string) =>
  new Refusal(400, { error: "BadRequest", message, ...(field && { field }) })

export function textIn(body: Json, field: string, most = 4096): string | undefined {
  const value = body[field]
  if (value === undefined) return undefined
  if (typeof value !== "string" || value.length > most)
    throw bad(`${field} must be a text of at most ${most} characters`, field)
  return value
}

function listIn(body: Json, field: string): string[] | undefined {
  const value = body[field]
  if (value === undefined) return undefined
  if (
    !Array.isArray(value) ||
    value.length > 100 ||
    !value.every(each => typeof each === "string" && each.length <= 1024)
  )
    throw bad(`${field} must be a list of texts`, field)
  return value as string[]
}

/** Names become parts of paths, so they are checked as the server's own names are. */
export function objectIn(body: Json): ObjectId {
  const [kind, namespace, name] = [
    textIn(body, "kind", 63),
    textIn(body, "namespace", 63) ?? "",
    textIn(body, "name", 253),
  ]
  if (!kind || !/^[A-Za-z][A-Za-z0-9]*$/.test(kind)) throw bad("kind must name a kind", "kind")
  if (!name || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) throw bad("name must be the name of an object", "name")
  if (namespace !== "" && !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace))
    throw bad("namespace must be the name of a namespace", "namespace")
  return { kind, namespace, name }
}

const pagesMost = 50

export function pagesIn(body: Json): Page[] {
  const { pages } = body
  if (!Array.isArray(pages) || pages.length > pagesMost)
    throw bad(`pages must be a list of at most ${pagesMost}`, "pages")
  return pages.map((each: unknown): Page => {
    const page = (typeof each === "object" && each !== null ? each : {}) as Json
    if (page.page === "overview") return { page: "overview" }
    if (page.page !== "details") throw bad("a page is the overview or the details of an object", "pages")
    const at = objectIn(page)
    if (!pageOf(at.kind))
      throw new Refusal(404, { error: "NotFound", message: `the dashboard does not show ${at.kind}` })
    return { page: "details", ...at }
  })
}

const actions: readonly ActionName[] = ["approve", "pause", "resume", "rollback", "set-image"]

export function actionIn(body: Json): ActionRequest {
  const action = actions.find(each => each === body.action)
  if (!action) throw bad(`action must be one of ${actions.join(", ")}`, "action")
  const [tiers, settings] = [listIn(body, "tiers"), listIn(body, "settings")]
  return {
    ...objectIn(body),
    action,
    ...(tiers && { tiers }),
    ...(settings && { settings }),
    ...(body.supersede === true && { supersede: true }),
  }
}
