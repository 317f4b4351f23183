import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, expect, test } from "vitest"
import { virtualClock } from "../clock.ts"
import { inClusterConfig } from "./in-cluster.ts"
import { temporaryFolder } from "./test-server.ts"

const env = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" }
let directory: string
beforeEach(() => {
  directory = temporaryFolder()
  mount("token", "first\n")
  mount("ca.crt", "the CA")
  mount("namespace", "aim-system\n")
})
const mount = (file: string, text: string) => writeFileSync(join(directory, file), text)

test("reads address, CA, namespace and token of the pod", async () => {
  const { credentials, ...config } = await inClusterConfig({ env, directory })
  expect(config).toEqual({
    server: "https://10.96.0.1:443",
    namespace: "aim-system",
    tls: { ca: "the CA", verify: true },
    headers: {},
  })
  expect(await credentials.current()).toEqual({ authorization: "Bearer first" })
})

test("an IPv6 address is written as URLs want it", async () => {
  const { server } = await inClusterConfig({ env: { ...env, KUBERNETES_SERVICE_HOST: "fd00::1" }, directory })
  expect(server).toBe("https://[fd00::1]:443")
})

test("a rotated token is noticed within a minute, and at once after a 401", async () => {
  const clock = virtualClock()
  const { credentials } = await inClusterConfig({ env, directory, clock })
  mount("token", "second")
  await clock.advance(59_999)
  expect((await credentials.current()).authorization).toBe("Bearer first")
  await clock.advance(1)
  const second = await credentials.current()
  expect(second.authorization).toBe("Bearer second")

  mount("token", "third")
  expect((await credentials.current()).authorization).toBe("Bearer second")
  expect((await credentials.renew(second))?.authorization).toBe("Bearer third")
  expect((await credentials.current()).authorization).toBe("Bearer third")
  expect(await credentials.renew(await credentials.current())).toBeUndefined()
})

test("a token file that is away for a moment does not matter", async () => {
  const clock = virtualClock()
  const { credentials } = await inClusterConfig({ env, directory, clock })
  rmSync(join(directory, "token"))
  await clock.advance(120_000)
  expect((await credentials.current()).authorization).toBe("Bearer first")
  mount("token", "second")
  await clock.advance(60_000)
  expect((await credentials.current()).authorization).toBe("Bearer second")
})

test("says what is missing", async () => {
  await expect(inClusterConfig({ env: {}, directory })).rejects.toThrow("not in a pod: KUBERNETES_SERVICE_HOST")
  rmSync(join(directory, "ca.crt"))
  await expect(inClusterConfig({ env, directory })).rejects.toThrow(
    /ca\.crt: cannot read it; set automountServiceAccountToken/,
  )
  mount("token", "")
  await expect(inClusterConfig({ env, directory })).rejects.toThrow(/token is empty/)
})
