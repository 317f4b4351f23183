import type { Sight } from "#explain/workloads/facts.ts"
import { whyUpdate } from "#explain/workloads/why.ts"
import type { Instant } from "#lib/instant.ts"
import type { Resource } from "#runtime/resource.ts"
import { connectionOf, type Input, type World } from "../command.ts"
import type { Answered } from "../render/why.ts"
import { lookAtWorkload } from "./look.ts"

type Told = { answer: Answered; now: Instant }
type Asked = { resource: Resource; name: string; namespace: string }

/** Adds how an update in place stands to why a workload has its image. What is under way comes first. */
export async function withUpdate(input: Input, world: World, asked: Asked, { answer, now }: Told): Promise<Told> {
  const sight = await look(input, world, asked)
  const found = whyUpdate(sight)
  if (!found) return { answer, now }
  const { reason, sentences, since, isPressing } = found
  const isFirst = isPressing || answer.reason === "NotSelected"
  return isFirst
    ? { answer: { ...answer, reason, since, sentences: [...sentences, ...answer.sentences] }, now: sight.now }
    : { answer: { ...answer, sentences: [...answer.sentences, ...sentences] }, now }
}

async function look(input: Input, world: World, asked: Asked): Promise<Sight> {
  const client = await world.connect(connectionOf(input))
  try {
    return await lookAtWorkload(client, world, asked)
  } finally {
    client.close()
  }
}
