import type { ServedKind, Strategy, StrategyContext, TableColumn } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import type { Schema } from "../schema/schema.ts"
import { same, set } from "./edit.ts"
import served from "./recorded/served.json" with { type: "json" }

/** Where the schemas of built-in kinds come from. */
export type SchemaOf = (apiVersion: string, kind: string) => Schema | undefined

/** What a kind's own file defines. Names, verbs and columns come from the recording of a real server. */
export type Definition = {
  apiVersion: string
  kind: string
  /** Only if it is not `group/plural`. */
  storage?: string
  convert?: ServedKind["convert"]
  scale?: ServedKind["scale"]
  /** Kinds without it carry no metadata.generation. */
  hasGeneration?: boolean
  /** Kinds whose status the user cannot set, whether or not there is a /status to set it by. */
  hasStatus?: boolean
  strategy?: Strategy
  row(object: Obj, nowMs: number): Json[]
}

/** A subresource as discovery lists it. */
export type ServedSubresource = { name: string; kind: string; group?: string; version?: string; verbs: string[] }

type Recorded = {
  apiVersion: string
  kind: string
  listKind: string
  plural: string
  singularName: string
  namespaced: boolean
  verbs: string[]
  shortNames?: string[]
  categories?: string[]
  subresources: ServedSubresource[]
  columns: TableColumn[]
}

const recorded = new Map((served as Recorded[]).map(each => [`${each.apiVersion} ${each.kind}`, each]))

/** The subresources of a real server that the simulated one implements. */
const servedSubresources = new Set(["status", "scale", "eviction", "binding", "token", "log", "exec", "finalize"])

export function define(definition: Definition, schemaOf: SchemaOf): ServedKind {
  const { apiVersion, kind, row, scale, convert } = definition
  const facts = recorded.get(`${apiVersion} ${kind}`)
  if (!facts) throw new Error(`${apiVersion} ${kind} was not recorded: run tools/record-kinds.ts`)
  const [group, version] = apiVersion.includes("/") ? (apiVersion.split("/") as [string, string]) : ["", apiVersion]
  return {
    group,
    version,
    kind,
    listKind: facts.listKind,
    plural: facts.plural,
    singular: facts.singularName,
    shortNames: facts.shortNames ?? [],
    categories: facts.categories ?? [],
    namespaced: facts.namespaced,
    verbs: facts.verbs,
    subresources: facts.subresources.map(({ name }) => name).filter(name => servedSubresources.has(name)),
    schema: schemaOf(apiVersion, kind) ?? { type: "object", preservesUnknown: true },
    strategy: strategyOf(definition),
    printer: { columns: facts.columns, row },
    storage: definition.storage ?? (group ? `${group}/${facts.plural}` : facts.plural),
    isCustom: false,
    ...(scale && { scale }),
    ...(convert && { convert }),
  }
}

/** The subresources of a kind with their verbs, for discovery. */
export function subresourcesOf({ group, version, kind }: ServedKind): readonly ServedSubresource[] {
  const facts = recorded.get(`${group ? `${group}/` : ""}${version} ${kind}`)
  return facts?.subresources.filter(({ name }) => servedSubresources.has(name)) ?? []
}

/** Wraps the kind's own strategy in the common rules for status and generation. */
function strategyOf({ hasStatus, hasGeneration, strategy: own = {} }: Definition): Strategy {
  const keepStatus = (object: Json, old: Obj) => (hasStatus ? set(object, "status", old.status) : object)
  const strategy: Strategy = {
    allowsUnconditionalUpdate: true,
    allowsCreateOnUpdate: false,
    ...own,
    prepareCreate(object, context) {
      const generation = hasGeneration ? 1 : undefined
      let next = set(object, "metadata", set(object.metadata ?? {}, "generation", generation))
      if (hasStatus) next = set(next, "status", undefined)
      return own.prepareCreate ? own.prepareCreate(next, context) : next
    },
    prepareUpdate(object: Json, old: Obj, context: StrategyContext) {
      const next = keepStatus(object, old)
      return own.prepareUpdate ? own.prepareUpdate(next, old, context) : next
    },
  }
  if (hasStatus && !own.prepareStatusUpdate) strategy.prepareStatusUpdate = onlyStatus
  // The storage keeps a generation only for kinds with movesGeneration.
  if (hasGeneration && !own.movesGeneration) strategy.movesGeneration = (object, old) => !same(object.spec, old.spec)
  return strategy
}

/** For an update of /status: keeps everything but status and metadata as it was. */
function onlyStatus(object: Json, old: Obj): Json {
  const { apiVersion, kind, metadata, status } = object
  return set({ ...old, apiVersion, kind, metadata }, "status", status)
}
