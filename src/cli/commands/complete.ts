import type { KindPlural } from "#api/names.ts"
import { workloadKinds } from "#core/workloads/kinds.ts"
import { imagesIn, type Seen } from "#operations/rollout.ts"
import type { Client } from "#runtime/client/client.ts"
import { core, type KubeObject, type Resource, resourceOf } from "#runtime/resource.ts"
import { type Completes, connectionOf, type Input, type Run, type World } from "../command.ts"
import { kindNamed, ours, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { restartable } from "../restart/target.ts"
import { updatable } from "../workloads/words.ts"

type Asked = {
  what: string
  /** What was typed so far. */
  prefix: string
  /** The rollout that the line is about. */
  of: string
}

/** Runs for a Tab key: quick, silent, and never an error. */
export const run: Run = async (input, world) => {
  const [what = "", prefix = "", of = ""] = input.arguments
  const names = await candidates({ what, prefix, of }, input, world)
  return { text: names.map(name => `${name}\n`).join(""), exitCode: 0 }
}

/** Candidates from the cluster. */
export async function candidates(asked: Asked, input: Input, world: World): Promise<string[]> {
  const { what, prefix } = asked
  const ask = Object.hasOwn(answers, what) ? answers[what as keyof typeof answers] : undefined
  if (!ask) return []
  const names = await withClient(input, world, client => ask(client, asked, input, world)).catch(() => [])
  return names.filter(name => name.startsWith(prefix))
}

type Answer = (client: Client, asked: Asked, input: Input, world: World) => Promise<string[]>

const namespaces = core("namespaces", "Namespace", false)

const answers: Record<Exclude<Completes, "files" | "contexts">, Answer> = {
  ...(Object.fromEntries(ours.map(resource => [resource.plural, namesOf(resource)])) as Record<KindPlural, Answer>),
  ours: async (...given) => (await Promise.all(ours.map(resource => namesOf(resource)(...given)))).flat(),
  // Ours, and workloads: first their kinds, then the objects of the typed one.
  rollouts: async (client, asked, input, world) => {
    const [word = "", name] = asked.prefix.split("/")
    const found = updatable.find(({ words }) => words.includes(word))
    if (name !== undefined && found) {
      const namespace = await namespaceOf(input, world)
      return (await listed(client, found.resource, world, namespace)).map(({ metadata }) => `${word}/${metadata.name}`)
    }
    const kinds = name === undefined ? updatable.map(({ words }) => `${words[0]}/`) : []
    return [...(await answers.ours(client, asked, input, world)), ...kinds]
  },
  namespaces: async (client, _, __, world) =>
    (await listed(client, namespaces, world)).map(({ metadata }) => metadata.name),
  tiers: async (client, { of }, _, world) => tiersOf(await rollout(client, of, world)),
  settings: async (client, { of }, _, world) => tiersOf(await rollout(client, of, world)).map(tier => `${tier}=`),
  // Only the last one can be rolled back.
  operations: async (client, { of }, _, world) => {
    const id = (await rollout(client, of, world))?.status?.operation?.id
    return id === undefined ? [] : [id]
  },
  objects,
  // First kinds, then the objects of the typed kind.
  workloads: async (client, { prefix }, input, world) => {
    const [word = "", name] = prefix.split("/")
    if (name === undefined) return restartable.map(({ words }) => `${words[0]}/`)
    const found = restartable.find(({ words }) => words.includes(word))
    if (!found) return []
    const namespace = await namespaceOf(input, world)
    return (await listed(client, found.resource, world, namespace)).map(({ metadata }) => `${word}/${metadata.name}`)
  },
}

function namesOf(resource: Resource): Answer {
  return async (client, _, input, world) => {
    const namespace = resource.namespaced ? await namespaceOf(input, world).catch(() => undefined) : undefined
    const items = await listed(client, resource, world, namespace).catch(() => [])
    return items.map(({ metadata }) => `${shortOf(resource)}/${metadata.name}`)
  }
}

/** The one without a name cannot be completed. */
const tiersOf = (object: Seen | undefined) =>
  object ? imagesIn(object.spec).tiers.flatMap(tier => tier.upgradeTier || []) : []

const rollout = async (client: Client, of: string, world: World) =>
  (await listed<Seen>(client, serviceImages, world)).find(({ metadata }) => of.endsWith(`/${metadata.name}`))

const wellKnown = [
  { words: ["pod", "pods", "po"], resource: core("pods", "Pod") },
  ...workloadKinds
    .filter(({ isTarget }) => isTarget)
    .map(kind => ({ words: [kind.name, kind.plural, ...kind.shortNames], resource: resourceOf(kind) })),
]

/** For `aim why`: first kinds (ours and those that rollouts stamp), then the objects of the typed kind. */
async function objects(client: Client, { prefix }: Asked, input: Input, world: World): Promise<string[]> {
  const [word = "", name] = prefix.split("/")
  const targets = (await listed<Seen>(client, serviceImages, world).catch(() => [])).map(({ spec }) => spec.target)
  if (name === undefined) {
    const kinds = new Set([
      ...wellKnown.map(({ words }) => words[0]!),
      ...targets.map(({ kind }) => kind.toLowerCase()),
    ])
    return [...ours.map(resource => `${shortOf(resource)}/`), ...[...kinds].map(kind => `${kind}/`)]
  }
  const known = kindNamed(word)
  if (known) return namesOf(known)(client, { what: "", prefix, of: "" }, input, world)
  const target = targets.find(({ kind }) => kind.toLowerCase() === word.toLowerCase())
  const resource =
    wellKnown.find(({ words }) => words.includes(word))?.resource ??
    (target && (await client.discover(target.apiVersion, target.kind)))
  if (!resource) return []
  const namespace = input.options.namespace as string | undefined
  return (await listed(client, resource, world, namespace)).map(({ metadata }) => `${word}/${metadata.name}`)
}

async function listed<T extends KubeObject>(
  client: Client,
  resource: Resource,
  world: World,
  namespace?: string,
): Promise<T[]> {
  const tooLong = new AbortController()
  const cancel = world.clock.after(2000, () => tooLong.abort())
  try {
    return (await client.list<T>(resource, { namespace, limit: 500 }, tooLong.signal)).items
  } finally {
    cancel()
  }
}

async function withClient<T>(input: Input, world: World, act: (client: Client) => Promise<T>): Promise<T> {
  const client = await world.connect(connectionOf(input))
  try {
    return await act(client)
  } finally {
    client.close()
  }
}
