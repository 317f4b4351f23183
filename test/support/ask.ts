import type { IncomingMessage } from "node:http"
import { request } from "node:https"
import { text } from "node:stream/consumers"
import { type Access, floor, type Json } from "./floor.ts"

/** What a server says to a request, with the places it finds fault with and the warnings beside its answer. */
export type Answer = { status: number; body: Json; causes: { field?: string; message: string }[]; warnings: string }

/** Beside what the floor's client gives: refusals as values, the places of the faults, and the warnings. */
export async function ask(
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
  { access = floor().access, headers: more = {} }: { access?: Access; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { server, token, certificateAuthority: ca } = access
  const contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json"
  const headers = { authorization: `Bearer ${token}`, "content-type": contentType, ...more }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request(new URL(path, server), { method, headers, ca }, resolve)
    .once("error", reject)
    .end(body && JSON.stringify(body))
  const response = await promise
  const answer = JSON.parse(await text(response))
  const warnings = String(response.headers.warning ?? "").replaceAll('\\"', '"')
  return { status: response.statusCode ?? 0, body: answer, causes: answer.details?.causes ?? [], warnings }
}
