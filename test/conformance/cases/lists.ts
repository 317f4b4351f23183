import { type Json, type Script, topic } from "../harness/script.ts"
import { configMap, dicom, idlePod, service } from "./objects.ts"

const names = (list: Json) => list.items?.map((item: Json) => item.metadata.name)
const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

async function fleet(on: Script) {
  const labels: Record<string, Record<string, string>> = {
    a: { tier: "early", env: "prod" },
    b: { tier: "late", env: "prod" },
    c: { tier: "late", env: "test" },
    d: { env: "test" },
    e: {},
  }
  for (const [name, each] of Object.entries(labels))
    await on.quietly.create("secrets", { metadata: { name, labels: each } })
}

async function selected(on: Script, selectors: string[]) {
  for (const labelSelector of selectors) {
    const { status, body } = await on.quietly.send("GET", on.path("secrets"), { query: { labelSelector } })
    on.note(labelSelector, { status, names: names(body) })
  }
}

export const lists = topic("lists", "registry", {
  "a list is sorted and has no kind in its items": async on => {
    for (const name of ["b", "c", "a"]) await on.quietly.create("secrets", { metadata: { name } })
    await on.list("secrets")
  },
  "an empty list": async on => {
    await on.list("secrets")
    await on.list("dicoms")
  },
  "a list of custom resources": async on => {
    for (const name of ["b", "a"]) await on.quietly.create("dicoms", dicom(name))
    await on.list("dicoms")
  },
  "label selectors by equality": async on => {
    await fleet(on)
    await selected(on, [
      "tier=late",
      "tier==late",
      "tier!=late",
      "tier=late,env=prod",
      "tier",
      "!tier",
      "env,!tier",
      "",
    ])
  },
  "label selectors by set": async on => {
    await fleet(on)
    await selected(
      on,
      [
        "tier in (early,late)",
        "tier in (early)",
        "tier notin (late)",
        "env in (prod), tier notin (early)",
        "tier in ()",
      ].slice(0, 4),
    )
  },
  "label selectors that are not": async on => {
    for (const labelSelector of ["tier in late", "a=b=c", "=", "a b", "tier in (a", "x>y", "tier=a/b"])
      await on.list("secrets", { labelSelector })
  },
  "field selectors of every kind": async on => {
    await fleet(on)
    for (const fieldSelector of [
      "metadata.name=b",
      "metadata.name!=b",
      `metadata.namespace=${on.namespace}`,
      "metadata.name=b,metadata.name=c",
      "metadata.name==a",
    ]) {
      const { body } = await on.quietly.send("GET", on.path("secrets"), { query: { fieldSelector } })
      on.note(fieldSelector, names(body))
    }
  },
  "field selectors that are not supported": async on => {
    await on.list("configmaps", { fieldSelector: "data.x=y" })
    await on.list("configmaps", { fieldSelector: "nonsense" })
    await on.list("dicoms", { fieldSelector: "spec.image=x" })
    await on.list("deployments", { fieldSelector: "spec.replicas=1" })
  },
  "field selectors of pods": async on => {
    await on.quietly.create("pods", idlePod("a"))
    await on.quietly.create("pods", idlePod("b", { "spec.restartPolicy": "Never", "spec.schedulerName": "other" }))
    for (const fieldSelector of [
      "spec.nodeName=",
      "spec.restartPolicy=Never",
      "spec.schedulerName=nobody",
      "status.phase=Pending",
      "status.phase=Running",
      "spec.serviceAccountName=default",
      "status.podIP=",
      "spec.hostNetwork=false",
    ]) {
      const { body } = await on.quietly.send("GET", on.path("pods"), { query: { fieldSelector } })
      on.note(fieldSelector, names(body))
    }
  },
  "field selectors of events and namespaces": async on => {
    const event = (name: string, reason: string, type: string) => ({
      apiVersion: "v1",
      kind: "Event",
      metadata: { name },
      involvedObject: { kind: "Pod", namespace: on.namespace, name: "p", uid: "u" },
      reason,
      type,
    })
    await on.quietly.create("events", event("a", "Pulled", "Normal"))
    await on.quietly.create("events", event("b", "Failed", "Warning"))
    for (const fieldSelector of [
      "reason=Pulled",
      "type=Warning",
      "involvedObject.name=p",
      "involvedObject.kind=Pod,type=Normal",
      "involvedObject.uid=x",
    ]) {
      const { body } = await on.quietly.send("GET", on.path("events"), { query: { fieldSelector } })
      on.note(fieldSelector, names(body))
    }
    await on.list("namespaces", { fieldSelector: `metadata.name=${on.namespace},status.phase=Active` })
  },
  pages: async on => {
    for (const name of ["a", "b", "c", "d", "e"]) await on.quietly.create("secrets", { metadata: { name } })
    let token: string | undefined
    for (let page = 1; page <= 3; page++) {
      const { body } = await on.quietly.send("GET", on.path("secrets"), {
        query: { limit: 2, ...(token && { continue: token }) },
      })
      token = body.metadata.continue
      on.note(`page ${page}`, { names: names(body), more: token !== undefined, left: body.metadata.remainingItemCount })
    }
  },
  "pages are one snapshot": async on => {
    for (const name of ["a", "b", "c", "d"]) await on.quietly.create("secrets", { metadata: { name } })
    const first = await on.quietly.list("secrets", { limit: 2 })
    await on.quietly.remove("secrets", "c")
    await on.quietly.create("secrets", { metadata: { name: "cc" } })
    const second = await on.quietly.list("secrets", { limit: 2, continue: first.metadata.continue })
    on.note("pages", [names(first), names(second)])
    on.note("same version", first.metadata.resourceVersion === second.metadata.resourceVersion)
  },
  "pages of a selection do not count what is left": async on => {
    await fleet(on)
    const page = await on.quietly.list("secrets", { limit: 1, labelSelector: "env=prod" })
    on.note("page", {
      names: names(page),
      left: page.metadata.remainingItemCount ?? "not told",
      more: Boolean(page.metadata.continue),
    })
  },
  "page tokens that are not": async on => {
    // Not one of an old version: a real server forgets those after some minutes, so that its answer depends on its age.
    await on.list("secrets", { limit: 1, continue: "nonsense" })
    await on.list("secrets", { limit: -1 })
    await on.list("secrets", { limit: "many" })
  },
  "resourceVersion of a list": async on => {
    const made = await on.quietly.create("secrets", { metadata: { name: "a" } })
    const { resourceVersion } = made.metadata
    await on.quietly.create("secrets", { metadata: { name: "b" } })
    for (const query of [
      { resourceVersion: "0" },
      { resourceVersion },
      { resourceVersion, resourceVersionMatch: "NotOlderThan" },
    ]) {
      const list = await on.quietly.list("secrets", query)
      on.note("at least as new", Number(list.metadata.resourceVersion) >= Number(resourceVersion))
    }
    const exact = await on.quietly.list("secrets", { resourceVersion, resourceVersionMatch: "Exact" })
    on.note("exactly", { names: names(exact), sameVersion: exact.metadata.resourceVersion === resourceVersion })
  },
  "resourceVersions that are not": async on => {
    await on.list("secrets", { resourceVersion: "abc" })
    await on.list("secrets", { resourceVersionMatch: "Exact" })
    await on.list("secrets", { resourceVersion: "0", resourceVersionMatch: "Exact" })
    await on.list("secrets", { resourceVersion: "1", resourceVersionMatch: "Sometimes" })
    await on.get("secrets", "a", { resourceVersion: "abc" })
  },
  "a version of the future": async on => {
    await on.list("secrets", { resourceVersion: "999999999999" })
    await on.get("secrets", "a", { resourceVersion: "999999999999" })
  },
  "partial object metadata": async on => {
    await on.quietly.create("configmaps", configMap("a", { secret: "x" }, { labels: { l: "v" } }))
    const headers = { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json" }
    await on.send("GET", on.path("configmaps", "a"), { headers })
    const list = { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json" }
    await on.send("GET", on.path("configmaps"), { headers: list, query: { fieldSelector: "metadata.name=a" } })
  },
  "over all namespaces": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a", labels: { of: on.id } } })
    const { body } = await on.quietly.send("GET", "/api/v1/secrets", { query: { labelSelector: `of=${on.id}` } })
    on.note("found", names(body))
    await on.send("GET", "/api/v1/secrets/a")
    await on.send("POST", "/api/v1/secrets", { body: { metadata: { name: "b" } } })
  },
})

async function table(on: Script, resource: string, query = {}) {
  const { status, body } = await on.quietly.send("GET", on.path(resource), { headers: { accept: tableType }, query })
  on.note(`table of ${resource}`, {
    status,
    ...body,
    rows: body.rows?.map((row: Json) => ({
      ...row,
      object: { kind: row.object?.kind, name: row.object?.metadata?.name },
    })),
  })
}

export const tables = topic("tables", "kinds", {
  "of pods": async on => {
    await on.quietly.create("pods", idlePod("a"))
    await table(on, "pods")
  },
  "of configmaps and secrets": async on => {
    await on.quietly.create("configmaps", configMap("a", { x: "1", y: "2" }))
    await table(on, "configmaps", { fieldSelector: "metadata.name=a" })
    await on.quietly.create("secrets", { metadata: { name: "a" }, stringData: { x: "1" } })
    await table(on, "secrets")
  },
  "of services": async on => {
    await on.quietly.create("services", service("a"))
    await on.quietly.create("services", service("headless", { "spec.clusterIP": "None" }))
    await on.quietly.create(
      "services",
      service("named", { "spec.type": "NodePort", "spec.ports": [{ name: "x", port: 80 }] }),
    )
    await table(on, "services")
  },
  "of serviceaccounts, leases and budgets": async on => {
    await table(on, "serviceaccounts")
    await on.quietly.create("leases", { metadata: { name: "l" }, spec: { holderIdentity: "me" } })
    await table(on, "leases")
    await on.quietly.create("poddisruptionbudgets", {
      metadata: { name: "b" },
      spec: { minAvailable: 1, selector: { matchLabels: { a: "b" } } },
    })
    await table(on, "poddisruptionbudgets")
  },
  "of network policies": async on => {
    await on.quietly.create("networkpolicies", { metadata: { name: "all" } })
    await on.quietly.create("networkpolicies", {
      metadata: { name: "some" },
      spec: { podSelector: { matchLabels: { a: "b" }, matchExpressions: [{ key: "c", operator: "Exists" }] } },
    })
    await table(on, "networkpolicies")
  },
  "of roles": async on => {
    await on.quietly.create("roles", {
      metadata: { name: "r" },
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
    })
    await on.quietly.create("rolebindings", {
      metadata: { name: "b" },
      roleRef: { kind: "Role", name: "r", apiGroup: "rbac.authorization.k8s.io" },
      subjects: [{ kind: "ServiceAccount", name: "default", namespace: on.namespace }],
    })
    const rows = async (resource: string) => {
      const { body } = await on.quietly.send("GET", on.path(resource), { headers: { accept: tableType } })
      // The time of creation is a string of its own in one of the columns.
      on.note(resource, { columns: body.columnDefinitions, cells: body.rows.map((row: Json) => row.cells) })
    }
    await rows("roles")
    await rows("rolebindings")
  },
  "of events": async on => {
    await on.quietly.create("events", {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: "e" },
      involvedObject: {
        apiVersion: "v1",
        kind: "Pod",
        namespace: on.namespace,
        name: "p",
        uid: "u",
        fieldPath: "spec.containers{app}",
      },
      reason: "Pulled",
      message: "it was pulled",
      type: "Normal",
      count: 3,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      source: { component: "kubelet", host: "n" },
    })
    await table(on, "events")
  },
  "of a namespace": async on => {
    await table(on, "namespaces", { fieldSelector: `metadata.name=${on.namespace}` })
  },
  "of custom resources": async on => {
    await on.quietly.create("dicoms", dicom("a", { "metadata.labels": { "upgrade-tier": "early" } }))
    await on.quietly.patch("dicoms/status", "a", "merge", {
      status: {
        conditions: [
          { type: "UpToDate", status: "True", reason: "R", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" },
        ],
      },
    })
    await on.quietly.create("dicoms", dicom("b", { "spec.image": undefined }))
    await table(on, "dicoms")
  },
  "of one object": async on => {
    await on.quietly.create("configmaps", configMap("a", { x: "1" }))
    await on.send("GET", on.path("configmaps", "a"), { headers: { accept: tableType } })
  },
  "with whole objects and with none": async on => {
    await on.quietly.create("secrets", { metadata: { name: "a" }, stringData: { x: "1" } })
    await on.send("GET", on.path("secrets"), { headers: { accept: tableType }, query: { includeObject: "Object" } })
    await on.send("GET", on.path("secrets"), { headers: { accept: tableType }, query: { includeObject: "None" } })
  },
  "of what is not there": async on => {
    await on.send("GET", on.path("secrets", "none"), { headers: { accept: tableType } })
    await table(on, "secrets")
  },
  "in pages": async on => {
    for (const name of ["a", "b", "c"]) await on.quietly.create("secrets", { metadata: { name } })
    await table(on, "secrets", { limit: 2 })
  },
})
