import { expect, test } from "vitest"
import { decode, kubernetesSchema } from "../schema/index.ts"
import { readProtobuf } from "./protobuf.ts"

/** Bodies that kubectl v1.36.3 sent, and their content without empty fields. */
const read = (text: string) => {
  const body = readProtobuf(Buffer.from(text, "base64"))
  const schema = kubernetesSchema(body.apiVersion, body.kind)
  if (!schema) throw new Error(`no schema of ${body.kind}`)
  return decode(schema, body, { apiVersion: body.apiVersion, kind: body.kind, validation: "Strict" }).value
}

test("kubectl create deployment d3 --image=x:1 --replicas=3 --port=80", () => {
  const deployment = read(
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50Eq0BCh0KAmQzEgAaACIAKgAyADgAQgBaCQoDYXBwEgJkMxJ+CAMSCwoJCgNhcHASAmQzGmUKGwoAEgAaACIAKgAyADgAQgBaCQoDYXBwEgJkMxJGEigKAXgSA3g6MSoAMgoKABAAGFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA",
  )
  expect(deployment).toMatchObject({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "d3", labels: { app: "d3" } },
  })
  expect(deployment.spec).toMatchObject({ replicas: 3, selector: { matchLabels: { app: "d3" } } })
  expect(deployment.spec.template.spec.containers).toEqual([
    { name: "x", image: "x:1", ports: [{ containerPort: 80 }], resources: {} },
  ])
})

test("kubectl create pdb p9 --min-available=50%: a number or a text", () => {
  const budget = read(
    "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOQoSCgJwORIAGgAiACoAMgA4AEIAEhcKCQgBEAAaAzUwJRIKCggKA2FwcBIBeBoKCAAYACAAKAAwABoAIgA=",
  )
  expect(budget.spec).toEqual({ minAvailable: "50%", selector: { matchLabels: { app: "x" } } })
})

test("kubectl create secret generic s9: bytes are base64 in JSON", () => {
  const secret = read("azhzAAoMCgJ2MRIGU2VjcmV0Eh4KEgoCczkSABoAIgAqADIAOABCABIGCgFhEgFiGgAaACIA")
  expect(secret.data).toEqual({ a: "Yg==" })
})

test("truncated bodies and other formats are refused", () => {
  const body = Buffer.from("azhzAAoMCgJ2MRIGU2VjcmV0Eh4KEgoCczkSABoAIgAqADIAOABCABIGCgFhEgFiGgAaACIA", "base64")
  expect(() => readProtobuf(body.subarray(0, 40))).toThrow("unexpected EOF")
  expect(() => readProtobuf(Buffer.from("{}"))).toThrow("does not appear to be a protobuf message")
})
