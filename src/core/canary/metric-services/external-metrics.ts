import { parseQuantity } from "#lib/quantity.ts"
import type { Problem } from "../queries.ts"
import type { Answer } from "../verdict.ts"
import { authorizationOf, headersWithout } from "./authorization.ts"
import type { MetricService } from "./service.ts"

const form = "NAMESPACE/METRIC, and ?labelSelector=… where it needs one"

/**
 * The API of external metrics (external.metrics.k8s.io), as KEDA and metric adapters serve it. It is asked with the
 * credentials of the template and never with the controller's own rights: those would show every author the metrics of
 * all namespaces.
 */
export const externalMetrics: MetricService = {
  type: "externalmetrics",

  problemOf({ address, secretRef }) {
    if (!address) return invalid("provider.address is missing: write https://kubernetes.default.svc")
    if (!secretRef)
      return invalid(
        "provider.secretRef is missing: name a Secret with the token of an account that may list the metric",
      )
    return undefined
  },

  syntaxProblemOf(query) {
    const asked = read(query)
    return typeof asked === "string" ? { at: 0, what: asked } : undefined
  },

  requestOf({ provider, query, credentials }) {
    const url = URL.parse(provider.address ?? "")
    if (!url) return invalid("provider.address cannot be used: write https://kubernetes.default.svc")
    const authorization = authorizationOf(credentials ?? new Map())
    if (typeof authorization === "object") return authorization
    const asked = read(query)
    if (typeof asked === "string") return { reason: "InvalidQuery", message: asked }
    const { namespace, metric, labelSelector } = asked
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/apis/external.metrics.k8s.io/v1beta1/namespaces/${namespace}/${metric}`
    url.search = labelSelector ? new URLSearchParams({ labelSelector }).toString() : ""
    const headers = { ...headersWithout(provider.headers, "authorization"), authorization: authorization! }
    return { url: url.href, method: "GET", headers }
  },

  answerOf({ status, body }) {
    if (status === 401 || status === 403)
      return no(`the API server answered ${status}: the account of secretRef needs the right to list the metric`)
    if (status === 404) return no("the API server answered 404: external metrics are not served, or not this one")
    if (status < 200 || status >= 300) return no(`the API server answered ${status}`)
    const items = itemsOf(body)
    if (!items) return no("the API server did not answer with a list of external metrics: is the address right?")
    const values = items.map(({ value }) => (typeof value === "string" ? parseQuantity(value) : undefined))
    if (values.includes(undefined)) return no("the API server gave a value that is no quantity")
    // Credentials were sent, so that labels are not shown.
    return { ok: true, series: values.map(value => ({ labels: {}, value: Number(value!.nano) / 1e9 })) }
  },
}

/** What a query names, or why it names nothing. */
function read(text: string): { namespace: string; metric: string; labelSelector: string | undefined } | string {
  const [, path = "", search = ""] = /^([^?]*)(?:\?([\s\S]*))?$/.exec(text.trim()) ?? []
  const [namespace = "", metric = "", more] = path.split("/")
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(namespace) || more !== undefined) return `it must be ${form}`
  // Two dots would be a step up in the address.
  if (!/^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,252}$/.test(metric)) return `it must be ${form}`
  const parameters = new URLSearchParams(search)
  if ([...parameters.keys()].some(name => name !== "labelSelector")) return `it must be ${form}`
  return { namespace, metric, labelSelector: parameters.get("labelSelector") ?? undefined }
}

type Item = { readonly value?: unknown }

function itemsOf(body: string): readonly Item[] | undefined {
  try {
    const { items } = JSON.parse(body) as { items?: unknown }
    return Array.isArray(items) && items.every(each => typeof each === "object" && each !== null) ? items : undefined
  } catch {
    return undefined
  }
}

const invalid = (message: string): Problem => ({ reason: "InvalidSpec", message })
const no = (message: string): Answer => ({ ok: false, message })
