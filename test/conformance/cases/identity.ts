import { type Json, type Script, topic } from "../harness/script.ts"
import {
  account,
  accountName,
  allow,
  allowEverywhere,
  anna,
  as,
  bearer,
  newAccount,
  rule,
  tokenOf,
  untilAllowed,
  user,
  whoami,
} from "./identities.ts"
import { configMap, idlePod } from "./objects.ts"

const tokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews"
const reviewToken = (on: Script, spec: Json) => on.send("POST", tokenReviews, { body: { spec } })

const nodeName = async (on: Script): Promise<string> => {
  const { items } = await on.quietly.list("nodes")
  return items.map(({ metadata }: Json) => metadata.name).sort()[0]
}

const until401 = (on: Script, token: string) =>
  on.until("the token is no longer accepted", async () => {
    const { status } = await on.unrecorded("GET", on.path("pods"), { headers: bearer(token) })
    return status === 401
  })

export const authentication = topic("authentication", "auth", {
  "no credentials are the anonymous user's": async on => {
    const headers = { authorization: "" }
    await on.send("GET", "/healthz", { headers })
    await on.send("GET", "/api", { headers })
    await on.send("GET", on.path("pods"), { headers })
    await whoami(on, headers)
  },
  "a token of nothing is refused": async on => {
    for (const authorization of ["Bearer nothing", "Bearer a.b.c", "bearer nothing"]) {
      await on.send("GET", on.path("pods"), { headers: { authorization } })
      await on.send("GET", "/healthz", { headers: { authorization } })
    }
  },
  "credentials of a kind that is not known are none": on =>
    on.send("GET", on.path("pods"), { headers: { authorization: "Basic YTpi" } }).then(() => {}),
  "the administrator": async on => {
    await whoami(on, {})
  },
  "a service account by its token": async on => {
    await whoami(on, bearer(await newAccount(on, "sa")))
  },
  "a token bound to a pod names the pod": async on => {
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    await on.quietly.create("pods", idlePod("a", { "spec.serviceAccountName": "sa" }))
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "a" }
    await whoami(on, bearer(await tokenOf(on, "sa", { boundObjectRef })))
  },
  "a token bound to a pod on a node names both": async on => {
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    const node = await nodeName(on)
    await on.quietly.create("pods", idlePod("a", { "spec.serviceAccountName": "sa", "spec.nodeName": node }))
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "a" }
    await whoami(on, bearer(await tokenOf(on, "sa", { boundObjectRef })))
  },
  "a token bound to a node names it": async on => {
    const boundObjectRef = { apiVersion: "v1", kind: "Node", name: await nodeName(on) }
    await whoami(on, bearer(await newAccount(on, "sa", { boundObjectRef })))
  },
  "a token bound to a secret": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    await whoami(
      on,
      bearer(await newAccount(on, "sa", { boundObjectRef: { apiVersion: "v1", kind: "Secret", name: "a" } })),
    )
  },
  "what a token says": async on => {
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    await on.quietly.create("pods", idlePod("a", { "spec.serviceAccountName": "sa" }))
    for (const spec of [
      {},
      { audiences: ["one", "two"], expirationSeconds: 7200 },
      { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "a" } },
    ]) {
      const token = await tokenOf(on, "sa", spec)
      const { exp, iat, nbf, ...claims } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString())
      on.note("claims", { ...claims, seconds: exp - iat, isValidAtOnce: nbf === iat })
    }
  },
  "token requests and their answers": async on => {
    const path = `${on.path("serviceaccounts", "default")}/token`
    await on.send("POST", path, { body: {} })
    await on.send("POST", path, { body: { spec: { audiences: ["one"], expirationSeconds: 600 } } })
    await on.send("POST", path, { body: { metadata: { name: "default" }, spec: {} } })
  },
  "token requests that are refused": async on => {
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    await on.quietly.create("pods", idlePod("a"))
    await on.quietly.create("configmaps", configMap("a"))
    const path = `${on.path("serviceaccounts", "sa")}/token`
    const bound = (reference: Json) => ({ boundObjectRef: { apiVersion: "v1", name: "a", ...reference } })
    for (const spec of [
      { expirationSeconds: 60 },
      { expirationSeconds: 2 ** 33 },
      bound({ kind: "ConfigMap" }),
      bound({ kind: "Deployment", apiVersion: "apps/v1" }),
      bound({ kind: "Pod" }),
      bound({ kind: "Pod", name: "none" }),
      bound({ kind: "Secret", name: "none" }),
      bound({ kind: "Node", name: "none" }),
    ])
      await on.send("POST", path, { body: { spec } })
    await on.send("POST", path, { body: { metadata: { name: "other" }, spec: {} } })
    await on.send("POST", path, { body: { metadata: { namespace: "other" }, spec: {} } })
  },
  "a token bound to an object of another uid": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const uid = "00000000-0000-4000-8000-000000000000"
    await on.send("POST", `${on.path("serviceaccounts", "default")}/token`, {
      body: { spec: { boundObjectRef: { apiVersion: "v1", kind: "Secret", name: "a", uid } } },
    })
  },
  "a token for others is none for the server": async on => {
    const token = await newAccount(on, "sa", { audiences: ["others"] })
    await on.send("GET", on.path("pods"), { headers: bearer(token) })
    await reviewToken(on, { token })
    await reviewToken(on, { token, audiences: ["others", "more"] })
  },
  "reviews of tokens": async on => {
    const token = await newAccount(on, "sa")
    await reviewToken(on, { token })
    await reviewToken(on, { token, audiences: ["others"] })
    await reviewToken(on, { token: "nothing" })
    await reviewToken(on, {})
  },
  "a token ends with its account": async on => {
    const token = await newAccount(on, "sa")
    await on.send("GET", on.path("pods"), { headers: bearer(token) })
    await on.quietly.remove("serviceaccounts", "sa")
    await until401(on, token)
    await on.send("GET", on.path("pods"), { headers: bearer(token) })
  },
  "a token does not pass to a new account of the same name": async on => {
    const token = await newAccount(on, "sa")
    await on.quietly.remove("serviceaccounts", "sa")
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    await until401(on, token)
  },
  "a token ends with the secret it is bound to": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" } })
    const boundObjectRef = { apiVersion: "v1", kind: "Secret", name: "a" }
    const token = await newAccount(on, "sa", { boundObjectRef })
    await on.quietly.remove("secrets", "a")
    await until401(on, token)
    const { body } = await on.quietly.send("POST", tokenReviews, { body: { spec: { token } } })
    on.note("review", body.status)
  },
  "a token ends with the pod it is bound to": async on => {
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    await on.quietly.create("pods", idlePod("a", { "spec.serviceAccountName": "sa" }))
    const token = await tokenOf(on, "sa", { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "a" } })
    await whoami(on, bearer(token))
    await on.quietly.remove("pods", "a", { gracePeriodSeconds: 0 })
    await until401(on, token)
  },
})

export const impersonation = topic("impersonation", "auth", {
  "the administrator as another user": async on => {
    await whoami(on, as("anna"))
    await whoami(on, as("anna", "dev"))
    await whoami(on, as("anna", "system:unauthenticated"))
    await whoami(on, { ...as("anna", "dev"), "impersonate-uid": "7", "impersonate-extra-reason": "a test" })
    await whoami(on, { ...as("anna"), "impersonate-extra-example.com%2fteam": "blue" })
  },
  "the administrator as a service account": async on => {
    await whoami(on, as(accountName(on, "none")))
    await whoami(on, as(accountName(on, "none"), "dev"))
    await whoami(on, as("system:serviceaccount:Not:one"))
  },
  "the administrator as the anonymous user": async on => {
    await whoami(on, as("system:anonymous"))
    await whoami(on, as("system:anonymous", "system:authenticated"))
  },
  "as a node": async on => {
    // An account of its own: a server tries first what it last allowed to the same user.
    const headers = bearer(await newAccount(on, "sa"))
    await allowEverywhere(on, account(on, "sa"), [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }])
    await whoami(on, { ...headers, ...as("system:node:none") })
    await whoami(on, { ...headers, ...as("system:node:none", "system:nodes") })
  },
  "the administrator as a member of the masters": async on => {
    await whoami(on, as("anna", "system:masters"))
    await on.send("GET", on.path("secrets"), { headers: as("anna", "system:masters") })
  },
  "a group without a user": async on => {
    await whoami(on, { "impersonate-group": "dev" })
    await whoami(on, { "impersonate-uid": "7" })
    await whoami(on, { "impersonate-extra-reason": "a test" })
    await whoami(on, { "impersonate-group": "dev", "impersonate-extra-reason": "a test" })
  },
  "a user that may not be others": async on => {
    const headers = bearer(await newAccount(on, "sa"))
    await on.send("GET", on.path("pods"), { headers: { ...headers, ...as("anna") } })
    await on.send("GET", on.path("pods", "a"), { headers: { ...headers, ...as(accountName(on, "other")) } })
    await on.send("GET", "/api/v1/nodes", { headers: { ...headers, ...as("system:node:none") } })
    await on.send("GET", "/healthz", { headers: { ...headers, ...as("anna", "dev") } })
    await on.send("POST", on.path("pods"), { body: idlePod("a"), headers: { ...headers, ...as("anna") } })
  },
  "a user that may be one other": async on => {
    const headers = bearer(await newAccount(on, "sa"))
    const may = rule(["users"], ["impersonate"], { resourceNames: [anna(on)] })
    await allowEverywhere(on, account(on, "sa"), [may])
    await whoami(on, { ...headers, ...as(anna(on)) })
    await whoami(on, { ...headers, ...as("bert") })
    await whoami(on, { ...headers, ...as(anna(on), "dev") })
    await whoami(on, { ...headers, ...as(anna(on)), "impersonate-uid": "7" })
    await on.send("GET", on.path("pods"), { headers: { ...headers, ...as(anna(on)) } })
  },
  "a user that may be others with groups, uids and more": async on => {
    const headers = bearer(await newAccount(on, "sa"))
    const more = { apiGroups: ["authentication.k8s.io"], verbs: ["impersonate"] }
    await allowEverywhere(on, account(on, "sa"), [
      rule(["users", "groups"], ["impersonate"]),
      { ...more, resources: ["uids"] },
      { ...more, resources: ["userextras/reason"] },
    ])
    await untilAllowed(on, {
      ...{ user: accountName(on, "sa"), verb: "impersonate", group: "authentication.k8s.io" },
      resource: "uids",
    })
    await whoami(on, { ...headers, ...as("anna", "dev"), "impersonate-uid": "7", "impersonate-extra-reason": "a test" })
    await whoami(on, { ...headers, ...as("anna"), "impersonate-extra-other": "a test" })
    await whoami(on, { ...headers, ...as("anna", "system:masters") })
  },
  "service accounts of one namespace": async on => {
    const headers = bearer(await newAccount(on, "sa"))
    await allow(on, account(on, "sa"), [rule(["serviceaccounts"], ["impersonate"])])
    await whoami(on, { ...headers, ...as(accountName(on, "other")) })
    await whoami(on, { ...headers, ...as("system:serviceaccount:kube-system:other") })
    await whoami(on, { ...headers, ...as("anna") })
  },
  "as another user, for some verbs only": async on => {
    const headers = { ...bearer(await newAccount(on, "sa")), ...as(anna(on)) }
    const may = { apiGroups: ["authentication.k8s.io"], resources: ["users"], verbs: ["impersonate:user-info"] }
    await allowEverywhere(on, account(on, "sa"), [may])
    await allow(on, account(on, "sa"), [rule(["configmaps"], ["impersonate-on:user-info:list"])])
    await allow(on, user(anna(on)), [rule(["configmaps"], ["list", "get"])], "annas")
    await on.send("GET", on.path("configmaps", "kube-root-ca.crt"), { headers })
    const { status } = await on.unrecorded("GET", on.path("configmaps"), { headers })
    on.note("list", status)
  },
  "rights are those of the other": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get"])])
    await on.quietly.create("configmaps", configMap("a"))
    await on.send("GET", on.path("configmaps", "a"), { headers: as(anna(on)) })
    await on.send("GET", on.path("secrets", "a"), { headers: as(anna(on)) })
  },
})
