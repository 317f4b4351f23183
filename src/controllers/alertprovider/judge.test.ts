import { expect, test } from "vitest"
import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { seenWith } from "../test-usable.ts"
import { judge } from "./judge.ts"

type Given = { spec?: object; keys?: Record<string, string>; allow?: readonly string[] }
const hidden = { secretRef: { name: "slack" } }

const cases: Record<string, [Given, string, string]> = {
  "a public address": [{ spec: { address: "https://hooks.example.com/x" } }, "Usable", "Canaries can send alerts to slack"],
  "a Service of its namespace": [{ spec: { address: "http://chat/x" } }, "Usable", ""],
  "a proxy": [{ spec: { address: "https://hooks.example.com/x", proxy: "http://proxy" } }, "NotSupported", "spec.proxy is not supported: leave it out"],
  "a private address": [{ spec: { address: "http://10.0.0.7/x" } }, "AddressForbidden", "spec.address: 10.0.0.7 is a private address: an administrator may allow it with --allow-egress shop=10.0.0.7:80"],
  "the same, allowed": [{ spec: { address: "http://10.0.0.7/x" }, allow: ["*=10.0.0.7:80"] }, "Usable", ""],
  "an address in a Secret": [{ spec: hidden, keys: { address: "https://hooks.example.com/hunter2\n" } }, "Usable", ""],
  "a Secret without an address": [{ spec: hidden, keys: { token: "hunter2" } }, "SecretMissing", "Secret slack has no key address"],
  "a private address in a Secret": [{ spec: hidden, keys: { address: "http://10.0.0.7/hunter2" } }, "AddressForbidden", "the key address of Secret slack is neither a public address"],
  "a Secret that has no address": [{ spec: hidden, keys: { address: "hunter2" } }, "InvalidAddress", "the key address of Secret slack is no address"],
} // biome-ignore format: a table
for (const [name, [{ spec, keys, allow }, reason, message]] of Object.entries(cases))
  test(name, () => {
    const object = {
      metadata: { name: "on-call", namespace: "shop" },
      spec: { type: "slack", ...spec },
    } as AlertProvider
    const found = judge(seenWith(object, { keys, allow }))
    expect(found).toMatchObject({ reason, message: expect.stringContaining(message) })
    expect(JSON.stringify(found)).not.toMatch(/hunter2|10\.0\.0\.7\/h/)
  })
