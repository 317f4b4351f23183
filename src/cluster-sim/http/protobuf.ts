import { readKubeObject } from "#lib/kube-protobuf.ts"
import { ProtobufError } from "#lib/protobuf.ts"
import { badRequest } from "../apiserver/refusals.ts"
import type { Json } from "../object.ts"

/**
 * Reads bodies in Kubernetes' protobuf, which kubectl's own commands send (`create namespace`, `auth can-i`). Answers are
 * JSON, which every client accepts. Bytes that are no protobuf are the sender's mistake.
 */
export function readProtobuf(body: Buffer): Json {
  try {
    return readKubeObject(body)
  } catch (error) {
    throw error instanceof ProtobufError ? badRequest(error.message) : error
  }
}
