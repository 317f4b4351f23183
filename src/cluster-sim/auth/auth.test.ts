import { describe, expect, test } from "vitest"
import type { Json } from "../object.ts"
import { testCluster } from "../test-cluster.ts"

const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
const group = "rbac.authorization.k8s.io"
const maps = "/api/v1/namespaces/default/configmaps"
const accounts = "/api/v1/namespaces/default/serviceaccounts"
const reads = { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"] }

const as = (user: string) => ({ "impersonate-user": user })
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

function world(options: Parameters<typeof testCluster>[0] = {}) {
  const { send, clock, cluster, client } = testCluster(options)
  const subjects = (user: string) => [{ kind: "User", name: user, apiGroup: group }]
  const roleRef = (name: string) => ({ apiGroup: group, kind: "Role", name })
  return {
    send,
    clock,
    cluster,
    client,
    async allow(user: string, ...rules: Json[]) {
      const metadata = { name: `of-${user}` }
      await send("POST", `${rbac}/roles`, { metadata, rules })
      await send("POST", `${rbac}/rolebindings`, { metadata, roleRef: roleRef(`of-${user}`), subjects: subjects(user) })
    },
    bind: (name: string, role: string, by: string) =>
      send(
        "POST",
        `${rbac}/rolebindings`,
        { metadata: { name }, roleRef: roleRef(role), subjects: subjects("x") },
        as(by),
      ),
    async account(name: string, spec: Json = {}): Promise<string> {
      await send("POST", accounts, { metadata: { name } })
      return (await send("POST", `${accounts}/${name}/token`, { spec })).body.status.token
    },
  }
}

describe("in process", () => {
  test("a request without credentials may do everything, and no binding is read", async () => {
    const { send } = world()
    expect((await send("GET", maps)).status).toBe(200)
    const { body } = await send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    expect(body.status.userInfo.groups).toContain("system:masters")
  })
  test("a request with credentials has the rights of its user", async () => {
    const { send, allow } = world({ users: { annas: { name: "anna", groups: [] } } })
    expect((await send("GET", maps, undefined, bearer("annas"))).status).toBe(403)
    expect((await send("GET", maps, undefined, bearer("berts"))).status).toBe(401)
    await allow("anna", reads)
    expect((await send("GET", maps, undefined, bearer("annas"))).status).toBe(200)
  })
})

describe("bindings", () => {
  test("count from the moment they are written until they are gone", async () => {
    const { send, allow } = world()
    const listed = async () => (await send("GET", maps, undefined, as("anna"))).status
    expect(await listed()).toBe(403)
    await allow("anna", reads)
    expect(await listed()).toBe(200)
    await send("PATCH", `${rbac}/rolebindings/of-anna`, { subjects: [{ kind: "User", name: "bert", apiGroup: group }] })
    expect(await listed()).toBe(403)
    expect((await send("GET", maps, undefined, as("bert"))).status).toBe(200)
    await send("DELETE", `${rbac}/rolebindings/of-anna`)
    expect((await send("GET", maps, undefined, as("bert"))).status).toBe(403)
  })
  test("count for every group of a user, once", async () => {
    const { send } = world()
    const metadata = { name: "dev" }
    const subjects = ["dev", "system:authenticated"].map(name => ({ kind: "Group", name, apiGroup: group }))
    await send("POST", `${rbac}/roles`, { metadata, rules: [reads] })
    const roleRef = { apiGroup: group, kind: "Role", name: "dev" }
    await send("POST", `${rbac}/rolebindings`, { metadata, roleRef, subjects })
    const spec = { user: "anna", groups: ["dev", "system:authenticated"] }
    const resourceAttributes = { verb: "get", resource: "configmaps", namespace: "default" }
    const reviewed = await send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
      spec: { ...spec, resourceAttributes },
    })
    expect(reviewed.body.status.reason).toBe('RBAC: allowed by RoleBinding "dev/default" of Role "dev" to Group "dev"')
  })
})

describe("tokens of service accounts", () => {
  const whoami = async (send: ReturnType<typeof world>["send"], token: string) => {
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    const { status, body } = await send("POST", path, {}, bearer(token))
    return status === 401 ? 401 : (body.status?.userInfo ?? body.details.kind)
  }
  test("end with their time", async () => {
    const { send, clock, account } = world({ hasDefaultRoles: true })
    const token = await account("a", { expirationSeconds: 600 })
    expect(await whoami(send, token)).toMatchObject({ username: "system:serviceaccount:default:a" })
    await clock.advance(600_000 + 59_000)
    expect(await whoami(send, token)).toMatchObject({ username: "system:serviceaccount:default:a" })
    await clock.advance(2_000)
    expect(await whoami(send, token)).toBe(401)
  })
  test("are refused with another key, with other claims, or without a signature", async () => {
    const token = await world({ tokenKey: "one" }).account("a")
    const { send, account } = world({ tokenKey: "two", hasDefaultRoles: true })
    expect(await whoami(send, token)).toBe(401)
    const own = await account("a")
    const [header, , signature] = own.split(".")
    const claims = JSON.parse(Buffer.from(own.split(".")[1] ?? "", "base64url").toString())
    const other = Buffer.from(JSON.stringify({ ...claims, sub: "x" })).toString("base64url")
    expect(await whoami(send, [header, other, signature].join("."))).toBe(401)
    expect(await whoami(send, own.split(".").slice(0, 2).join("."))).toBe(401)
    expect(await whoami(send, `${own.split(".").slice(0, 2).join(".")}.`)).toBe(401)
    expect(await whoami(send, own)).toMatchObject({ uid: claims["kubernetes.io"].serviceaccount.uid })
  })
})

describe("escalation", () => {
  const grants = { apiGroups: [group], resources: ["roles", "rolebindings"], verbs: ["create", "patch"] }
  test("a role or binding gives no more than its writer has", async () => {
    const { send, allow, bind } = world()
    await allow("anna", grants, reads)
    await send("POST", `${rbac}/roles`, { metadata: { name: "more" }, rules: [{ ...reads, verbs: ["*"] }] })
    await send("POST", `${rbac}/roles`, { metadata: { name: "less" }, rules: [reads] })
    const write = (name: string, verbs: string[]) =>
      send("POST", `${rbac}/roles`, { metadata: { name }, rules: [{ ...reads, verbs }] }, as("anna"))
    expect((await write("a", ["get"])).status).toBe(201)
    expect((await write("b", ["get", "delete"])).body.message).toBe(
      `roles.rbac.authorization.k8s.io "b" is forbidden: user "anna" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}`,
    )
    expect((await bind("a", "less", "anna")).status).toBe(201)
    expect((await bind("b", "more", "anna")).status).toBe(403)
    expect((await bind("c", "none", "anna")).status).toBe(404)
    const change = { rules: [{ ...reads, verbs: ["*"] }] }
    expect((await send("PATCH", `${rbac}/roles/a`, change, as("anna"))).status).toBe(403)
    expect((await send("PATCH", `${rbac}/roles/a`, change)).status).toBe(200)
  })
})
