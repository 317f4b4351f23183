import { type Json, type Script, topic } from "../harness/script.ts"
import {
  accessReviews,
  account,
  accountName,
  allow,
  allowEverywhere,
  anna,
  answerTo,
  as,
  bearer,
  binding,
  members,
  newAccount,
  reviewOf,
  role,
  rule,
  untilAllowed,
  user,
} from "./identities.ts"
import { configMap, deployment, dicom, idlePod } from "./objects.ts"

const rbac = "rbac.authorization.k8s.io"

/** A request as a user. */
const ask = (on: Script, method: string, path: string, body?: Json, by = anna(on)) =>
  on.send(method, path, {
    headers: { ...as(by), ...(method === "PATCH" && { "content-type": "application/merge-patch+json" }) },
    ...(body && { body }),
  })

/** Only whether it was let through: the answer is another case's. */
async function passes(on: Script, method: string, path: string, body?: Json, query: Json = {}): Promise<void> {
  const headers = { ...as(anna(on)), ...(method === "PATCH" && { "content-type": "application/merge-patch+json" }) }
  const { status, body: answer } = await on.unrecorded(method, path, { headers, query, ...(body && { body }) })
  on.note(`${method} ${path}`, { status, message: status >= 400 ? answer.message : undefined })
}

export const refusals = topic("refusals", "auth", {
  "each verb": async on => {
    const [all, one] = [on.path("pods"), on.path("pods", "a")]
    await ask(on, "GET", all)
    await ask(on, "GET", one)
    await ask(on, "POST", all, idlePod("a"))
    await ask(on, "PUT", one, idlePod("a"))
    await ask(on, "PATCH", one, {})
    await ask(on, "DELETE", one)
    await ask(on, "DELETE", all)
    await ask(on, "GET", `${all}?watch=1`)
    await ask(on, "GET", `${all}?watch=0`)
  },
  "what is the cluster's": async on => {
    for (const path of ["/api/v1/nodes", "/api/v1/nodes/none", "/api/v1/namespaces", "/api/v1/pods"])
      await ask(on, "GET", path)
    await ask(on, "GET", `/api/v1/namespaces/${on.namespace}`)
    await ask(on, "PUT", `/api/v1/namespaces/${on.namespace}/finalize`, {})
    await ask(on, "POST", "/api/v1/namespaces", { metadata: { name: `${on.id}-more` } })
  },
  subresources: async on => {
    await ask(on, "GET", `${on.path("pods", "a")}/log`)
    await ask(on, "PATCH", `${on.path("pods", "a")}/status`, {})
    await ask(on, "POST", `${on.path("pods", "a")}/eviction`, {})
    await ask(on, "PUT", `${on.path("deployments", "a")}/scale`, {})
    await ask(on, "POST", `${on.path("serviceaccounts", "default")}/token`, {})
  },
  "kinds of our own": async on => {
    await ask(on, "GET", on.path("dicoms"))
    await ask(on, "POST", on.path("dicoms"), dicom("a"))
    await ask(on, "GET", on.path("serviceimages"))
    await ask(on, "PATCH", `${on.path("dicoms", "a")}/status`, {})
  },
  "what is not there": async on => {
    await ask(on, "GET", `/api/v1/namespaces/${on.namespace}/nothings`)
    await ask(on, "GET", "/apis/none.example.com/v1/nothings/a")
    await ask(on, "GET", "/nothing")
    await ask(on, "GET", on.path("pods", "none"))
    await ask(on, "GET", `/api/v1/namespaces/none/pods`)
  },
  "paths that are no resources": async on => {
    await ask(on, "GET", "/healthz")
    await ask(on, "GET", "/metrics")
    await ask(on, "GET", "/healthz/x")
    await ask(on, "POST", "/healthz", {})
    await ask(on, "GET", "/apis/apps/v2")
    for (const path of ["/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version"]) await passes(on, "GET", path)
  },
  "names that look like something else": async on => {
    await ask(on, "GET", on.path("pods"), undefined, "<b>anna & co</b>")
    await ask(on, "GET", on.path("pods"), undefined, 'an "na')
    await ask(on, "GET", `${on.path("pods")}%2f..%2fsecrets`)
  },
})

export const rights = topic("rights", "auth", {
  "a role, in its namespace": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get", "list", "watch"])])
    await on.quietly.create("configmaps", configMap("a"))
    await ask(on, "GET", on.path("configmaps", "a"))
    await passes(on, "GET", on.path("configmaps"))
    await passes(on, "GET", on.path("configmaps"), undefined, { watch: 1, timeoutSeconds: 1 })
    await passes(on, "DELETE", on.path("configmaps", "a"))
    await passes(on, "GET", "/api/v1/configmaps")
    await passes(on, "GET", "/api/v1/namespaces/default/configmaps")
  },
  "a cluster role, in one namespace": async on => {
    await on.quietly.create("clusterroles", role(on.id, [rule(["configmaps", "nodes"], ["list"])]))
    await on.quietly.create("rolebindings", binding("own", `ClusterRole/${on.id}`, user(anna(on))))
    await untilAllowed(on, { user: anna(on), verb: "list", resource: "configmaps", namespace: on.namespace })
    await passes(on, "GET", on.path("configmaps"))
    await passes(on, "GET", "/api/v1/configmaps")
    await passes(on, "GET", "/api/v1/nodes")
  },
  "a cluster role, everywhere": async on => {
    await allowEverywhere(on, user(anna(on)), [rule(["configmaps", "nodes"], ["list"])])
    for (const path of [on.path("configmaps"), "/api/v1/configmaps", "/api/v1/nodes", "/api/v1/pods"])
      await passes(on, "GET", path)
  },
  "a group": async on => {
    await allow(on, members(`${on.id}-dev`), [rule(["configmaps"], ["list"])])
    for (const inGroup of [`${on.id}-dev`, "other"]) {
      const { status } = await on.unrecorded("GET", on.path("configmaps"), { headers: as("anna", inGroup) })
      on.note(inGroup, status)
    }
  },
  "service accounts, by name and by group": async on => {
    const token = await newAccount(on, "sa")
    await allow(on, account(on, "sa"), [rule(["configmaps"], ["list"])])
    await allow(on, members(`system:serviceaccounts:${on.namespace}`), [rule(["secrets"], ["list"])], "all")
    for (const kind of ["configmaps", "secrets", "pods"]) {
      const { status } = await on.unrecorded("GET", on.path(kind), { headers: bearer(token) })
      on.note(kind, status)
    }
  },
  "a service account of another namespace": async on => {
    const subject = { kind: "ServiceAccount", namespace: "default", name: `${on.id}-sa` }
    await allow(on, subject, [rule(["configmaps"], ["list"])])
    const by = (namespace: string) => as(`system:serviceaccount:${namespace}:${on.id}-sa`)
    for (const namespace of ["default", on.namespace]) {
      const { status } = await on.unrecorded("GET", on.path("configmaps"), { headers: by(namespace) })
      on.note(namespace, status)
    }
  },
  "objects by name": async on => {
    await on.quietly.create("configmaps", configMap("a"))
    await on.quietly.create("configmaps", configMap("b"))
    const verbs = ["get", "list", "watch", "create", "delete", "deletecollection"]
    await allow(on, user(anna(on)), [rule(["configmaps"], verbs, { resourceNames: ["a"] })])
    await passes(on, "GET", on.path("configmaps", "a"))
    await passes(on, "GET", on.path("configmaps", "b"))
    await passes(on, "GET", on.path("configmaps"))
    await passes(on, "GET", on.path("configmaps"), undefined, { fieldSelector: "metadata.name=a" })
    await passes(on, "GET", on.path("configmaps"), undefined, { fieldSelector: "metadata.name=b" })
    await passes(on, "GET", on.path("configmaps"), undefined, { fieldSelector: "metadata.name!=b" })
    await passes(on, "POST", on.path("configmaps"), configMap("a"))
    await passes(on, "DELETE", on.path("configmaps"))
    await passes(on, "DELETE", on.path("configmaps", "a"))
  },
  "an asterisk for resources, subresources and verbs": async on => {
    const [bert, cleo, dora] = ["bert", "cleo", "dora"].map(name => `${on.id}-${name}`) as [string, string, string]
    await allow(on, user(anna(on)), [{ apiGroups: ["apps"], resources: ["*"], verbs: ["get"] }], "a")
    await allow(on, user(bert), [{ apiGroups: ["*"], resources: ["*/scale"], verbs: ["*"] }], "b")
    await allow(on, user(cleo), [{ apiGroups: [""], resources: ["pods/log"], verbs: ["get"] }], "c")
    await allow(on, user(dora), [{ apiGroups: [""], resources: ["pods", "pods/*"], verbs: ["get"] }], "d")
    const places = [
      { group: "apps", resource: "deployments" },
      { group: "apps", resource: "deployments", subresource: "scale" },
      { group: "apps", resource: "nothings" },
      { resource: "pods" },
      { resource: "pods", subresource: "log" },
      { resource: "pods", subresource: "*" },
      { group: "*", resource: "*" },
    ]
    for (const by of [anna(on), bert, cleo, dora])
      for (const place of places)
        for (const verb of ["get", "update", "*"])
          on.note(
            `${by} ${verb} ${JSON.stringify(place)}`,
            (await answerTo(on, { user: by, verb, namespace: on.namespace, ...place })).allowed,
          )
  },
  "paths that are no resources, by role": async on => {
    const rules = [{ nonResourceURLs: ["/metrics", "/logs/*"], verbs: ["get"] }]
    await allowEverywhere(on, user(anna(on)), rules)
    for (const path of ["/metrics", "/metrics/more", "/logs", "/logs/", "/logs/a/b", "/"])
      for (const verb of ["get", "post"])
        on.note(`${verb} ${path}`, (await answerTo(on, { user: anna(on), verb, path })).allowed)
  },
  "a binding to a role that is not there": async on => {
    await on.quietly.create("rolebindings", binding("own", "Role/none", user(anna(on))))
    await on.until("the binding is known", async () => {
      const { reason } = await answerTo(on, { user: anna(on), verb: "get", resource: "pods", namespace: on.namespace })
      return reason !== undefined
    })
    await ask(on, "GET", on.path("pods"))
    await on.quietly.create("rolebindings", binding("other", `ClusterRole/${on.id}-none`, user(anna(on))))
    await on.until("both are known", async () => {
      const { reason } = await answerTo(on, { user: anna(on), verb: "get", resource: "pods", namespace: on.namespace })
      return reason?.includes("clusterrole")
    })
    const { body } = await on.unrecorded("GET", on.path("pods"), { headers: as(anna(on)) })
    on.note(
      "both",
      body.message
        .replace(/\[.*\]/, "[$&]")
        .split(/[[\],]/)
        .map((part: string) => part.trim())
        .sort(),
    )
  },
  "rights that come and go": async on => {
    const may = { user: anna(on), verb: "list", resource: "configmaps", namespace: on.namespace }
    await allow(on, user(anna(on)), [rule(["configmaps"], ["list"])])
    await passes(on, "GET", on.path("configmaps"))
    await on.quietly.patch("roles", "own", "merge", { rules: [rule(["secrets"], ["list"])] })
    await untilAllowed(on, may, false)
    await passes(on, "GET", on.path("configmaps"))
    await passes(on, "GET", on.path("secrets"))
    await on.quietly.patch("rolebindings", "own", "merge", { subjects: [user("other")] })
    await untilAllowed(on, { ...may, resource: "secrets" }, false)
    await passes(on, "GET", on.path("secrets"))
    await on.quietly.patch("rolebindings", "own", "merge", { subjects: [user("other"), user(anna(on))] })
    await untilAllowed(on, { ...may, resource: "secrets" })
    await on.quietly.remove("rolebindings", "own")
    await untilAllowed(on, { ...may, resource: "secrets" }, false)
    await passes(on, "GET", on.path("secrets"))
  },
  "a cluster role made of others": async on => {
    const labels = { [`aggregate-to-${on.id}`]: "true" }
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: labels }] }
    await on.quietly.create("clusterroles", { metadata: { name: on.id }, aggregationRule })
    await on.quietly.create("rolebindings", binding("own", `ClusterRole/${on.id}`, user(anna(on))))
    // A refusal names a role that the server does not know yet. It knows them in the order of the writes.
    await allowEverywhere(on, user(`${on.id}-later`), [rule(["pods"], ["list"])], "later")
    await on.quietly.create("rolebindings", binding("later", "ClusterRole/view", user(`${on.id}-last`)))
    await untilAllowed(on, { user: `${on.id}-last`, verb: "list", resource: "pods", namespace: on.namespace })
    await passes(on, "GET", on.path("configmaps"))
    await on.quietly.create("clusterroles", {
      ...role(`${on.id}-part`, [rule(["configmaps"], ["list"])]),
      metadata: { name: `${on.id}-part`, labels },
    })
    await untilAllowed(on, { user: anna(on), verb: "list", resource: "configmaps", namespace: on.namespace })
    await passes(on, "GET", on.path("configmaps"))
    const { rules } = await on.quietly.get("clusterroles", on.id)
    on.note("rules", rules)
  },
  "the roles that every cluster has": async on => {
    for (const name of ["view", "edit", "admin", "cluster-admin"]) {
      const subject = `${on.id}-${name}`
      await on.quietly.create("rolebindings", binding(name, `ClusterRole/${name}`, user(subject)))
      await untilAllowed(on, { user: subject, verb: "list", resource: "pods", namespace: on.namespace })
      const may: string[] = []
      for (const resource of ["pods", "secrets", "nodes", "serviceaccounts", "resourcequotas", "events"])
        for (const verb of ["get", "create", "impersonate"])
          if ((await answerTo(on, { user: subject, verb, resource, namespace: on.namespace })).allowed)
            may.push(`${verb} ${resource}`)
      for (const resource of ["roles", "rolebindings"])
        for (const verb of ["get", "create", "bind", "escalate"])
          if ((await answerTo(on, { user: subject, verb, group: rbac, resource, namespace: on.namespace })).allowed)
            may.push(`${verb} ${resource}`)
      on.note(name, may)
    }
  },
  "roles and bindings of the server itself": async on => {
    for (const kind of ["clusterroles", "clusterrolebindings"]) {
      const { items } = await on.quietly.list(kind, { labelSelector: "kubernetes.io/bootstrapping=rbac-defaults" })
      for (const { metadata, rules, roleRef, subjects } of items)
        if (metadata.name !== "admin" && metadata.name !== "edit" && metadata.name !== "view")
          on.note(metadata.name, { rules, roleRef, subjects, annotations: metadata.annotations })
    }
  },
  "an apply that creates": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["patch", "get"])])
    const apply = (name: string) =>
      on.send("PATCH", on.path("configmaps", name), {
        ...{ body: configMap(name, { a: "b" }), query: { fieldManager: "x" } },
        headers: { ...as(anna(on)), "content-type": "application/apply-patch+yaml" },
      })
    await apply("a")
    await on.quietly.create("configmaps", configMap("a"))
    await apply("a")
  },
  "an update that creates": async on => {
    const leases = { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["update"] }
    await allow(on, user(anna(on)), [leases])
    await ask(on, "PUT", on.path("leases", "a"), { metadata: { name: "a" }, spec: {} })
    await on.quietly.patch("roles", "own", "merge", { rules: [{ ...leases, verbs: ["update", "create"] }] })
    const may = { user: anna(on), verb: "create", group: "coordination.k8s.io", resource: "leases" }
    await untilAllowed(on, { ...may, namespace: on.namespace })
    await ask(on, "PUT", on.path("leases", "a"), { metadata: { name: "a" }, spec: {} })
  },
  "a scale without its deployment": async on => {
    await on.quietly.create("deployments", deployment("a"))
    const apps = { apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["get", "patch"] }
    await allow(on, user(anna(on)), [apps])
    await passes(on, "GET", `${on.path("deployments", "a")}/scale`)
    await passes(on, "PATCH", `${on.path("deployments", "a")}/scale`, { spec: { replicas: 0 } })
    await passes(on, "GET", on.path("deployments", "a"))
    await passes(on, "PATCH", on.path("deployments", "a"), {})
  },
})

const granting = [
  { apiGroups: [rbac], resources: ["roles", "rolebindings"], verbs: ["create", "update", "patch", "get"] },
]

export const escalation = topic("escalation", "auth", {
  "a role of more than its writer has": async on => {
    await allow(on, user(anna(on)), [...granting, rule(["configmaps"], ["get"])])
    const write = (name: string, rules: Json[]) => ask(on, "POST", on.path("roles"), role(name, rules))
    await write("a", [rule(["configmaps"], ["get"])])
    await write("b", [rule(["configmaps", "secrets"], ["get", "list"])])
    await write("c", [rule(["secrets"], ["get"], { resourceNames: ["one", "two"] })])
    await write("d", [rule(["*"], ["*"])])
    await write("e", [rule(["configmaps"], ["get"], { resourceNames: ["one"] })])
    await write("f", [])
    await write("g", [rule(["configmaps"], [])])
  },
  "a cluster role of more than its writer has": async on => {
    const own = { apiGroups: [rbac], resources: ["clusterroles"], verbs: ["create"] }
    await allowEverywhere(on, user(anna(on)), [own, rule(["nodes"], ["get"])])
    const write = (name: string, rules: Json[], more: Json = {}) =>
      ask(on, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
        ...role(`${on.id}-${name}`, rules),
        ...more,
      })
    await write("a", [rule(["nodes"], ["get"])])
    await write("b", [rule(["nodes"], ["get", "delete"]), { nonResourceURLs: ["/metrics", "/logs/*"], verbs: ["get"] }])
    await write("c", [], { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] } })
    await write("d", [], { aggregationRule: { clusterRoleSelectors: [] } })
  },
  "a change of a role": async on => {
    await allow(on, user(anna(on)), [...granting, rule(["configmaps"], ["get"])])
    await on.quietly.create("roles", role("a", [rule(["secrets"], ["get"])]))
    await ask(on, "PATCH", on.path("roles", "a"), { rules: [rule(["secrets"], ["get", "list"])] })
    await ask(on, "PATCH", on.path("roles", "a"), { metadata: { labels: { a: "b" } } })
    await ask(on, "PATCH", on.path("roles", "a"), { metadata: { finalizers: ["example.com/hold"] } })
    await ask(on, "PATCH", on.path("roles", "a"), { metadata: { finalizers: null } })
    await ask(on, "PATCH", on.path("roles", "a"), { rules: [rule(["configmaps"], ["get"])] })
  },
  "the right to escalate": async on => {
    const own = { apiGroups: [rbac], resources: ["roles"], verbs: ["create", "patch", "escalate"] }
    await allow(on, user(anna(on)), [own])
    await ask(on, "POST", on.path("roles"), role("a", [rule(["secrets"], ["*"])]))
    await ask(on, "PATCH", on.path("roles", "a"), { rules: [rule(["*"], ["*"])] })
  },
  "the right to escalate one role": async on => {
    const own = { apiGroups: [rbac], resources: ["roles"] }
    await allow(on, user(anna(on)), [
      { ...own, verbs: ["create", "patch"] },
      { ...own, verbs: ["escalate"], resourceNames: ["a"] },
    ])
    await on.quietly.create("roles", role("a", []))
    await on.quietly.create("roles", role("b", []))
    for (const name of ["a", "b"])
      await ask(on, "PATCH", on.path("roles", name), { rules: [rule(["secrets"], ["get"])] })
    await ask(on, "POST", on.path("roles"), role("c", [rule(["secrets"], ["get"])]))
  },
  "a binding to a role of more than its writer has": async on => {
    await allow(on, user(anna(on)), [...granting, rule(["configmaps"], ["get"])])
    await on.quietly.create("roles", role("less", [rule(["configmaps"], ["get"])]))
    await on.quietly.create("roles", role("more", [rule(["configmaps"], ["get", "list"]), rule(["pods/log"], ["get"])]))
    const bind = (name: string, to: string) =>
      ask(on, "POST", on.path("rolebindings"), binding(name, to, user(anna(on))))
    const other = `${on.id}-other`
    await on.quietly.create("rolebindings", binding("other", "Role/more", user(other)))
    await untilAllowed(on, { user: other, verb: "list", resource: "configmaps", namespace: on.namespace })
    await bind("a", "Role/less")
    await bind("b", "Role/more")
    await bind("c", "ClusterRole/cluster-admin")
    await bind("d", "Role/none")
    await bind("e", `ClusterRole/${on.id}-none`)
  },
  "the right to bind": async on => {
    await allow(on, user(anna(on)), [
      { apiGroups: [rbac], resources: ["clusterroles"], verbs: ["bind"], resourceNames: ["view"] },
      ...granting,
    ])
    await ask(on, "POST", on.path("rolebindings"), binding("a", "ClusterRole/view", user("bert")))
    const { status, body } = await on.unrecorded("POST", on.path("rolebindings"), {
      ...{ headers: as(anna(on)), body: binding("b", "ClusterRole/system:basic-user", user("bert")) },
    })
    on.note("another", { status, message: body.message })
    await ask(on, "PATCH", on.path("rolebindings", "a"), { subjects: [user("bert"), user("cleo")] })
  },
  "a binding for the whole cluster": async on => {
    const own = { apiGroups: [rbac], resources: ["clusterrolebindings"], verbs: ["create"] }
    await allowEverywhere(on, user(anna(on)), [own, rule(["nodes"], ["list"])])
    await on.quietly.create("clusterroles", role(`${on.id}-less`, [rule(["nodes"], ["list"])]))
    await on.quietly.create("clusterroles", role(`${on.id}-more`, [rule(["nodes"], ["list", "delete"])]))
    const other = `${on.id}-other`
    await on.quietly.create("clusterrolebindings", binding(other, `ClusterRole/${on.id}-more`, user(other)))
    await untilAllowed(on, { user: other, verb: "delete", resource: "nodes" })
    for (const name of ["less", "more"])
      await ask(
        on,
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        binding(`${on.id}-${name}`, `ClusterRole/${on.id}-${name}`, user("bert")),
      )
  },
  "the administrator of a namespace": async on => {
    await on.quietly.create("rolebindings", binding("own", "ClusterRole/admin", user(anna(on))))
    const may = { user: anna(on), verb: "create", group: rbac, resource: "rolebindings", namespace: on.namespace }
    await untilAllowed(on, may)
    await passes(on, "POST", on.path("rolebindings"), binding("a", "ClusterRole/edit", user("bert")))
    await passes(on, "POST", on.path("roles"), role("a", [rule(["pods", "secrets"], ["*"])]))
    await passes(on, "POST", on.path("roles"), role("b", [rule(["pods"], ["get", "list"])]))
    await passes(on, "POST", on.path("roles"), role("c", [rule(["nodes"], ["get"])]))
    await passes(on, "POST", "/api/v1/namespaces/default/configmaps", configMap("a"))
    await passes(on, "DELETE", on.path("rolebindings", "own"))
  },
})

const reviews = "/apis/authorization.k8s.io/v1"
const selfReviews = `${reviews}/selfsubjectaccessreviews`

export const accessQuestions = topic("access reviews", "auth", {
  "of oneself": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get"], { resourceNames: ["a"] })])
    const headers = as(anna(on))
    for (const attributes of [
      { verb: "get", resource: "configmaps", name: "a", namespace: on.namespace },
      { verb: "get", resource: "configmaps", name: "b", namespace: on.namespace },
      { verb: "get", resource: "configmaps", name: "a" },
    ])
      await on.send("POST", selfReviews, { headers, body: { spec: { resourceAttributes: attributes } } })
    const { body } = await on.quietly.send("POST", selfReviews, {
      headers,
      body: { spec: { nonResourceAttributes: { verb: "get", path: "/healthz" } } },
    })
    on.note("a path, which two roles allow", body.status.allowed)
  },
  "of the administrator": async on => {
    await on.send("POST", selfReviews, { body: { spec: { resourceAttributes: { verb: "dance", resource: "pods" } } } })
    await on.send("POST", accessReviews, {
      body: reviewOf({ user: "x", groups: ["system:masters"], verb: "get", resource: "pods" }),
    })
  },
  "of others": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get"])])
    await allow(on, members(`${on.id}-dev`), [rule(["secrets"], ["get"])], "dev")
    await allow(on, account(on, "sa"), [rule(["pods"], ["get"])], "sa")
    const where = { verb: "get", namespace: on.namespace }
    const ask = (question: Json) => on.send("POST", accessReviews, { body: reviewOf({ ...where, ...question }) })
    await ask({ user: anna(on), resource: "configmaps" })
    await ask({ user: anna(on), resource: "secrets" })
    await ask({ user: anna(on), groups: [`${on.id}-dev`], resource: "secrets" })
    await ask({ groups: [`${on.id}-dev`], resource: "secrets" })
    await ask({ user: accountName(on, "sa"), resource: "pods" })
  },
  "of a role that gives it everywhere": async on => {
    await allowEverywhere(on, user(anna(on)), [rule(["nodes"], ["get"])])
    await on.send("POST", accessReviews, { body: reviewOf({ user: anna(on), verb: "get", resource: "nodes" }) })
    await on.send("POST", accessReviews, {
      body: reviewOf({ user: anna(on), groups: ["system:authenticated"], verb: "get", path: "/apis/" }),
    })
    await on.send("POST", accessReviews, { body: reviewOf({ user: anna(on), verb: "get", path: "/apis/" }) })
  },
  "in a namespace": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get"])])
    const path = `${reviews}/namespaces/${on.namespace}/localsubjectaccessreviews`
    const ask = (namespace: string | undefined) =>
      on.send("POST", path, { body: reviewOf({ user: anna(on), verb: "get", resource: "configmaps", namespace }) })
    await ask(on.namespace)
    await ask("other")
    await ask(undefined)
  },
  "that are not complete": async on => {
    await on.send("POST", selfReviews, { body: { spec: {} } })
    await on.send("POST", accessReviews, { body: { spec: { resourceAttributes: { verb: "get" } } } })
    await on.send("POST", `${reviews}/selfsubjectrulesreviews`, { body: { spec: {} } })
  },
  "are a right too": async on => {
    const headers = as(anna(on))
    const spec = { user: "x", resourceAttributes: { verb: "get", resource: "pods" } }
    await on.send("POST", accessReviews, { headers, body: { spec } })
    await on.send("POST", `${reviews}/namespaces/${on.namespace}/localsubjectaccessreviews`, {
      headers,
      body: { spec },
    })
    await on.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", { headers, body: { spec: { token: "x" } } })
    await on.send("GET", selfReviews, { headers })
  },
  "all rules of a user": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get"], { resourceNames: ["a"] }), rule(["pods"], ["*"])])
    const { body } = await on.quietly.send("POST", `${reviews}/selfsubjectrulesreviews`, {
      ...{ headers: as(anna(on)), body: { spec: { namespace: on.namespace } } },
    })
    const sorted = (rules: Json[]) => rules.map(each => JSON.stringify(each, Object.keys(each).sort())).sort()
    const { resourceRules, nonResourceRules, ...status } = body.status
    on.note("resources", sorted(resourceRules))
    on.note("paths", sorted(nonResourceRules))
    on.note("rest", { ...body, status })
  },
})

const lines = ({ code, stdout, stderr }: Json) => ({ code, stdout: stdout.split("\n").sort().join("\n"), stderr })

export const kubectlRights = topic("kubectl rights", "auth", {
  "as a user without rights": async on => {
    for (const args of [
      ["get", "pods"],
      ["get", "nodes"],
      ["create", "configmap", "a"],
      ["delete", "pod", "a"],
    ])
      await on.kubectl([...args, "--as", anna(on)])
    await on.kubectl(["get", "pods", "-A", "--as", anna(on), "--as-group", "dev"])
    await on.kubectl(["get", "pods", "--as-group", "dev"])
  },
  "may I": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get", "list"])])
    for (const args of [
      ["get", "configmaps"],
      ["delete", "configmaps"],
      ["get", "configmaps/a"],
      ["get", "pods", "--subresource=log"],
      ["get", "/healthz"],
      ["get", "/metrics"],
      ["*", "*"],
    ])
      await on.kubectl(["auth", "can-i", ...args, "--as", anna(on)])
    await on.kubectl(["auth", "can-i", "get", "configmaps", "-A", "--as", anna(on)])
  },
  "all that I may": async on => {
    await allow(on, user(anna(on)), [rule(["configmaps"], ["get", "list"], { resourceNames: ["a"] })])
    await on.kubectl(["auth", "can-i", "--list", "--as", anna(on)], { only: lines })
  },
  whoami: async on => {
    await on.kubectl(["auth", "whoami"])
    await on.kubectl(["auth", "whoami", "--as", "anna", "--as-group", "dev", "--as-group", "a, b", "--as-uid", "7"])
    await on.kubectl(["auth", "whoami", "--as", "anna", "-o", "jsonpath={.status.userInfo}"])
  },
  "a token of a service account": async on => {
    await on.quietly.create("serviceaccounts", { metadata: { name: "sa" } })
    await allow(on, account(on, "sa"), [rule(["configmaps"], ["list"])])
    const { stdout } = await on.kubectl(["create", "token", "sa", "--duration", "20m"])
    const token = stdout.trim()
    await on.kubectl(["auth", "can-i", "list", "configmaps", "--token", token])
    await on.kubectl(["auth", "can-i", "list", "secrets", "--token", token])
    await on.kubectl(["get", "secrets", "--token", token])
    await on.kubectl(["get", "configmaps", "--token", "nothing"])
    await on.kubectl(["create", "token", "sa", "--duration", "1m"])
    await on.kubectl(["create", "token", "sa", "--bound-object-kind", "Pod", "--bound-object-name", "none"])
  },
  "a role and its binding": async on => {
    await on.kubectl(["create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps"])
    await on.kubectl(["create", "rolebinding", "reader", "--role=reader", `--user=${anna(on)}`])
    await untilAllowed(on, { user: anna(on), verb: "list", resource: "pods", namespace: on.namespace })
    await on.kubectl(["get", "pods", "--as", anna(on)])
    await on.kubectl(["describe", "role", "reader"])
    await on.kubectl(["describe", "rolebinding", "reader"])
    await on.kubectl(["create", "rolebinding", "more", "--clusterrole=edit", "--user=bert", "--as", anna(on)])
  },
  "roles from a file": async on => {
    const file = on.file("role.yaml", {
      ...{ apiVersion: `${rbac}/v1`, kind: "Role" },
      ...role("reader", [rule(["pods"], ["get"])]),
    })
    await on.kubectl(["auth", "reconcile", "-f", file])
    await on.kubectl(["auth", "reconcile", "-f", file])
  },
})
