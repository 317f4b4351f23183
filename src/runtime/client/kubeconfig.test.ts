import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { virtualClock } from "../clock.ts"
import { connect } from "./connect.ts"
import { loadKubeconfig } from "./kubeconfig.ts"
import { ConfigError } from "./server-config.ts"
import { makeCertificates, temporaryFolder } from "./test-server.ts"

const certificates = makeCertificates()
const base64 = (text: string) => Buffer.from(text).toString("base64")

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
function file(name: string, text: string | object): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, typeof text === "string" ? text : JSON.stringify(text)) // JSON is YAML
  return path
}
/** A whole config in one file: a cluster and a user with these fields. */
const config = (cluster: object = {}, user: object = {}, context: object = {}) => ({
  "current-context": "c",
  contexts: [{ name: "c", context: { cluster: "one", user: "me", ...context } }],
  clusters: [{ name: "one", cluster: { server: "https://one.test:6443", ...cluster } }],
  users: [{ name: "me", user }],
})
const load = (cluster: object = {}, user: object = {}, allowExec = false) =>
  loadKubeconfig({ file: file("config", config(cluster, user)), allowExec })
const authorization = async (user: object) => (await (await load({}, user)).credentials.current()).authorization

describe("where it is read from", () => {
  const cluster = (name: string, server: string) => ({ clusters: [{ name, cluster: { server } }] })
  const context = (name: string, of: string, more: object = {}) => ({
    contexts: [{ name, context: { cluster: of, ...more } }],
  })

  test("~/.kube/config by default", async () => {
    file(".kube/config", config())
    expect((await loadKubeconfig({ env: { HOME: folder } })).server).toBe("https://one.test:6443")
  })

  test("KUBECONFIG lists several: the first to name something wins whole, missing files are skipped", async () => {
    const first = file("first", {
      ...cluster("one", "https://first.test"),
      ...context("a", "one", { namespace: "here" }),
    })
    const second = file("second", {
      "current-context": "b",
      clusters: [
        { name: "one", cluster: { server: "https://second.test", "tls-server-name": "from-second" } },
        { name: "two", cluster: { server: "https://two.test" } },
      ],
      ...context("b", "two"),
    })
    const third = file("third", { "current-context": "a" })
    const env = { KUBECONFIG: [join(folder, "missing"), first, "", second, third].join(":") }
    expect(await loadKubeconfig({ env })).toMatchObject({ server: "https://two.test", namespace: "default" })
    const a = await loadKubeconfig({ env, context: "a" })
    expect(a).toMatchObject({ server: "https://first.test", namespace: "here" })
    expect(a.tls).toEqual({ verify: true })
  })

  test("an explicit file wins over KUBECONFIG and must exist", async () => {
    const env = { KUBECONFIG: file("other", config({ server: "https://other.test" })) }
    expect((await loadKubeconfig({ env, file: file("mine", config()) })).server).toBe("https://one.test:6443")
    await expect(loadKubeconfig({ env, file: join(folder, "none") })).rejects.toThrow(
      /none: cannot read the kubeconfig/,
    )
  })

  test("paths inside are relative to the file they stand in", async () => {
    file("deep/ca.crt", certificates.ca)
    file("deep/token", "secret\n")
    const path = file("deep/config", config({ "certificate-authority": "ca.crt" }, { tokenFile: "token" }))
    const { tls, credentials } = await loadKubeconfig({ file: path })
    expect(tls.ca).toBe(certificates.ca)
    expect(await credentials.current()).toEqual({ authorization: "Bearer secret" })
  })

  test("connect takes the file, then KUBECONFIG, then the home, then the pod", async () => {
    const home = { HOME: folder }
    await expect(connect({ env: home })).rejects.toThrow(
      /no cluster: .*\.kube\/config does not exist, and this is not a pod/,
    )
    const inPod = { ...home, KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" }
    await expect(connect({ env: inPod })).rejects.toThrow("/var/run/secrets/kubernetes.io/serviceaccount/token")
    file(".kube/config", config())
    expect(await connect({ env: inPod })).toMatchObject({ describe: "https://one.test:6443", namespace: "default" })
    const listed = file("listed", config({ server: "https://listed.test/below/" }, {}, { namespace: "web" }))
    const env = { ...inPod, KUBECONFIG: listed }
    expect(await connect({ env })).toMatchObject({ describe: "https://listed.test/below", namespace: "web" })
  })
})

describe("users", () => {
  test("a token, even of digits or in YAML's odd spellings, stays the text it is", async () => {
    expect(await authorization({ token: "0123" })).toBe("Bearer 0123")
    const written = file(
      "yaml",
      "current-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\nclusters:\n- name: k\n  cluster: {server: https://k.test}\nusers:\n- name: u\n  user:\n    token: 0123456789012345678901\npreferences: {}\n",
    )
    expect(await (await loadKubeconfig({ file: written })).credentials.current()).toEqual({
      authorization: "Bearer 0123456789012345678901",
    })
  })
  test("a name and a password", async () =>
    expect(await authorization({ username: "me", password: "pä" })).toBe(`Basic ${base64("me:pä")}`))
  test("a token file wins over a token, as in kubectl", async () =>
    expect(await authorization({ token: "t", tokenFile: file("t", "fresh") })).toBe("Bearer fresh"))
  test("a client certificate, as data or as files", async () => {
    const { cert, key } = certificates.client
    const data = { "client-certificate-data": base64(cert), "client-key-data": base64(key) }
    expect(await (await load({}, data)).credentials.current()).toEqual({ cert, key })
    const files = {
      "client-certificate": join(certificates.folder, "client.crt"),
      "client-key": join(certificates.folder, "client.key"),
    }
    expect(await (await load({}, files)).credentials.current()).toEqual({ cert, key })
  })
  test("a user to impersonate", async () =>
    expect((await load({}, { token: "t", as: "jane", "as-groups": ["a", "b"] })).headers).toEqual({
      "impersonate-user": "jane",
      "impersonate-group": ["a", "b"],
    }))
  test("credentials are not shown to a server without TLS", async () => {
    const { credentials } = await load({ server: "http://plain.test" }, { token: "secret" })
    expect(await credentials.current()).toEqual({})
  })
})

describe("messages name the file, the field and what to write", () => {
  const other = makeCertificates()
  const wrong: Record<string, { cluster?: object; user?: object; says: RegExp }> = {
    "no server": {
      cluster: { server: "" },
      says: /config: clusters\[one\]\.cluster\.server is missing: write it as https:\/\//,
    },
    "odd server": {
      cluster: { server: "one.test:6443" },
      says: /server is "one.test:6443", which is no http\(s\) URL/,
    },
    "a server with a query": { cluster: { server: "https://a?b" }, says: /must have no user, query or fragment/ },
    "a proxy": { cluster: { "proxy-url": "http://p" }, says: /clusters\[one\]\.cluster\.proxy-url is not supported/ },
    "missing CA file": {
      cluster: { "certificate-authority": "no.crt" },
      says: /certificate-authority: ENOENT.*no\.crt/,
    },
    "CA that is no PEM": {
      cluster: { "certificate-authority-data": "AAAA" },
      says: /certificate-authority-data is not base64 of a PEM file/,
    },
    "CA and no verification": {
      cluster: { "certificate-authority-data": base64(certificates.ca), "insecure-skip-tls-verify": true },
      says: /insecure-skip-tls-verify contradicts certificate-authority/,
    },
    "odd flag": {
      cluster: { "insecure-skip-tls-verify": "yes" },
      says: /insecure-skip-tls-verify must be true or false/,
    },
    "certificate without key": {
      user: { "client-certificate-data": base64(certificates.client.cert) },
      says: /users\[me\]\.user\.client-certificate is there without client-key/,
    },
    "a key of another certificate": {
      user: {
        "client-certificate-data": base64(certificates.client.cert),
        "client-key-data": base64(other.client.key),
      },
      says: /client-certificate-data with users\[me\]\.user\.client-key-data cannot be used/,
    },
    "auth-provider": {
      user: { "auth-provider": { name: "gcp" } },
      says: /users\[me\]\.user\.auth-provider is not supported .* use exec/,
    },
    "a token that is a mapping": { user: { token: { a: "b" } }, says: /users\[me\]\.user\.token must be a string/ },
    "exec where it is not allowed": {
      user: { exec: { command: "x" } },
      says: /users\[me\]\.user\.exec names a program to run, which only a person's command line does/,
    },
    "groups without a user": { user: { "as-groups": ["a"] }, says: /users\[me\]\.user\.as is missing/ },
    "extra impersonation": { user: { as: "a", "as-user-extra": { a: ["b"] } }, says: /as-user-extra is not supported/ },
  }
  for (const [name, { cluster, user, says }] of Object.entries(wrong))
    test(name, async () => {
      const error = await load(cluster, user).catch(error => error)
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(says)
      expect(error.message.startsWith(folder)).toBe(true)
    })

  test("contexts", async () => {
    const path = file("config", config())
    await expect(loadKubeconfig({ file: path, context: "prod" })).rejects.toThrow(
      'no context is named "prod" (there are c)',
    )
    const unset = file("unset", { ...config(), "current-context": "" })
    await expect(loadKubeconfig({ file: unset })).rejects.toThrow(
      "current-context is not set; choose a context (there are c)",
    )
    const dangling = file("dangling", { ...config(), clusters: null })
    await expect(loadKubeconfig({ file: dangling })).rejects.toThrow(
      'contexts[c].context.cluster is "one", but clusters has no such entry',
    )
  })

  test("what is no YAML is not quoted: it may be a token", async () => {
    const path = file("config", 'users: [{name: a, user: {token: "secret')
    const error = await loadKubeconfig({ file: path }).catch(error => error)
    expect(error.message).toMatch(/config: not YAML: /)
    expect(error.message).not.toContain("secret")
    expect(error.cause).toBeUndefined()
  })
})

describe("exec plugins", () => {
  /** A plugin that counts its runs, records its input, and prints a status made of them. */
  function plugin(status: string, more: object = {}) {
    const script = file(
      "plugin.sh",
      `#!/bin/sh
cd ${folder}
echo x >> runs
echo "$KUBERNETES_EXEC_INFO" > info
echo "$1 $GREETING" > told
N=$(wc -l < runs | tr -d ' ')
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}}' | sed "s/RUN/$N/"
`,
    )
    chmodSync(script, 0o755)
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "./plugin.sh",
      args: ["hello"],
      env: [{ name: "GREETING", value: "world" }],
      interactiveMode: "Never",
      ...more,
    }
    return { exec }
  }
  const runs = () => readFileSync(join(folder, "runs"), "utf8").split("\n").length - 1

  test("runs once for many requests, again after it expired, and once more when refused", async () => {
    const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
    const user = plugin('{"token":"t-RUN","expirationTimestamp":"2026-01-01T01:00:00Z"}')
    const { credentials } = await loadKubeconfig({ file: file("config", config({}, user)), allowExec: true, clock })
    const tokens = async () =>
      (await Promise.all([1, 2, 3].map(() => credentials.current()))).map(one => one.authorization)
    expect(await tokens()).toEqual(["Bearer t-1", "Bearer t-1", "Bearer t-1"])
    await clock.advance(3_599_999)
    expect(await tokens()).toEqual(["Bearer t-1", "Bearer t-1", "Bearer t-1"])
    await clock.advance(1)
    const [first] = await Promise.all([credentials.current(), credentials.current()])
    expect(first.authorization).toBe("Bearer t-2")
    expect(runs()).toBe(2)
    const [renewed, also] = await Promise.all([credentials.renew(first), credentials.renew(first)])
    expect([renewed?.authorization, also?.authorization, runs()]).toEqual(["Bearer t-3", "Bearer t-3", 3])
    expect((await credentials.renew(first))?.authorization).toBe("Bearer t-3") // another request renewed it already
    expect(runs()).toBe(3)
  })

  test("is given its arguments, its environment and, where asked for, the cluster", async () => {
    const user = plugin('{"token":"t"}', { provideClusterInfo: true })
    const extensions = [{ name: "client.authentication.k8s.io/exec", extension: { audience: "a" } }]
    const { credentials } = await load(
      { "certificate-authority-data": base64(certificates.ca), extensions },
      user,
      true,
    )
    await credentials.current()
    expect(readFileSync(join(folder, "told"), "utf8")).toBe("hello world\n")
    expect(JSON.parse(readFileSync(join(folder, "info"), "utf8"))).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      spec: {
        interactive: false,
        cluster: {
          server: "https://one.test:6443",
          "certificate-authority-data": base64(certificates.ca),
          config: { audience: "a" },
        },
      },
    })
  })

  test("may print a client certificate", async () => {
    const user = plugin(JSON.stringify({ clientCertificateData: "C", clientKeyData: "K" }))
    expect(await (await load({}, user, true)).credentials.current()).toEqual({ cert: "C", key: "K" })
  })

  const wrong: Record<string, { status?: string; more?: object; says: string | RegExp }> = {
    "not installed": {
      more: { command: "aim-no-such-plugin", installHint: "Install it:\n  brew install x" },
      says: /users\[me\]\.user\.exec: aim-no-such-plugin is not installed\nInstall it:\n {2}brew install x$/,
    },
    fails: { more: { command: "false" }, says: /exec: false failed with exit code 1/ },
    "prints no JSON": { more: { command: "echo" }, says: /echo did not print JSON$/ },
    "prints nothing to use": { status: "{}", says: /printed neither a token nor a client certificate/ },
    "odd expiry": { status: '{"token":"t","expirationTimestamp":"soon"}', says: /"soon", which is not a time/ },
    "another version": {
      status: '{"token":"t"}',
      more: { apiVersion: "client.authentication.k8s.io/v1beta1" },
      says: /answered in client.authentication.k8s.io\/v1 but was asked for .*v1beta1/,
    },
    "wants a terminal": {
      status: '{"token":"t"}',
      more: { interactiveMode: "Always" },
      says: /wants to ask on a terminal/,
    },
    "removed version": {
      more: { apiVersion: "client.authentication.k8s.io/v1alpha1" },
      says: /exec\.apiVersion must be client.authentication.k8s.io\/v1 or/,
    },
    "no command": { more: { command: "" }, says: /exec\.command is missing/ },
  }
  for (const [name, { status = "{}", more, says }] of Object.entries(wrong))
    test(name, async () => {
      const asked = load({}, plugin(status, more), true).then(({ credentials }) => credentials.current())
      const error = await asked.catch(error => error)
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(says)
    })
})
