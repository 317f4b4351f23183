import { createHash } from "node:crypto"
import { nodeImages } from "#controllers/imagepulljob/resources.ts"
import type { Client } from "#runtime/client/client.ts"
import { type Json, until } from "#tools/kube/api.ts"

/** As the stages of kwok make it: the digest of an image is that of its name. */
const digestOf = (image: string) => `sha256:${createHash("sha256").update(image).digest("hex")}`

/**
 * Answers for the agents of nodes that have no runtime: every image that a NodeImage asks for is there at once. One write
 * answers for all images of a node, as with an agent. Ends when the signal is aborted.
 */
export async function answerForAgents(client: Client, nodes: number, signal: AbortSignal): Promise<{ writes: number }> {
  const counted = { writes: 0 }
  const list = () => client.list(nodeImages, {})
  await until("every node to have a NodeImage", async () => (await list()).items.length === nodes, {
    withinMs: 120_000,
  })
  const { items, metadata } = await list()
  const answer = async (object: Json) => {
    const status = statusOf(object)
    if (!status) return
    counted.writes++
    await client.patch(nodeImages, { name: object.metadata.name }, { type: "merge", body: { status } }, asStatus)
  }
  const follow = async () => {
    const from = { resourceVersion: metadata.resourceVersion }
    for await (const { type, object } of client.watch(nodeImages, from, signal))
      if (type === "ADDED" || type === "MODIFIED") answer(object).catch(onError)
  }
  const onError = (error: unknown) => {
    if (!signal.aborted) throw error
  }
  for (const object of items) await answer(object)
  follow().catch(onError)
  return counted
}

const asStatus = { subresource: "status" } as const

/** Undefined where everything was answered. */
function statusOf({ metadata, spec, status }: Json): Json | undefined {
  const wanted = Object.entries<Json>(spec?.images ?? {})
  const isTold = (name: string, { tag, version = 0 }: Json) =>
    status?.imageStatuses?.[name]?.tags?.some((each: Json) => each.tag === tag && (each.version ?? 0) === version)
  const isComplete = wanted.every(([name, { tags = [] }]) => tags.every((each: Json) => isTold(name, each)))
  if (status?.publicKey !== undefined && isComplete) return undefined
  const tags = (name: string, { tag, version = 0 }: Json) => ({
    tag,
    version,
    phase: "Succeeded",
    attempts: 1,
    digest: digestOf(`${name}:${tag}`),
  })
  return {
    observedGeneration: metadata.generation,
    publicKey: Buffer.from(metadata.name.padEnd(32, "0")).toString("base64url").slice(0, 43),
    imageStatuses: Object.fromEntries(
      wanted.map(([name, each]) => [name, { tags: (each.tags ?? []).map((tag: Json) => tags(name, tag)) }]),
    ),
  }
}
