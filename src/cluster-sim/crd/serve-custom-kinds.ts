import { formatInstant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { KindStorage, StorageChange } from "../apiserver/storage.ts"
import type { Json, Obj } from "../object.ts"
import { customKinds } from "./custom-kinds.ts"

/**
 * Serves the kinds of CustomResourceDefinitions from the moment the definitions are stored. A real server takes some
 * milliseconds for that, which clients cannot rely on. Writes the status of definitions, and deletes the objects of a
 * deleted definition.
 */
export function serveCustomKinds({ storage, clock }: { storage: KindStorage; clock: Clock }): () => void {
  const definitions = storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
  if (!definitions) return () => {}

  function serve(definition: Obj) {
    const { accepted, conditions } = judge(storage, definition, formatInstant(clock.now()))
    const isAccepted = conditions.some(({ type, status }) => type === "NamesAccepted" && status === "True")
    if (isAccepted) storage.setCustomKinds(definition.metadata.name, customKinds(definition))
    const status = { ...definition.status, conditions, acceptedNames: accepted }
    if (JSON.stringify(status) === JSON.stringify(definition.status)) return
    storage.update(definitions!, { ...definition, status }, { subresource: "status", fieldManager: "kube-apiserver" })
  }

  function remove({ metadata }: Obj) {
    for (const kind of storage
      .kinds()
      .filter(each => `${each.plural}.${each.group}` === metadata.name)
      .slice(0, 1))
      for (const { metadata: each, ...object } of storage.list(kind).items) {
        if (each.finalizers?.length) storage.update(kind, { ...object, metadata: { ...each, finalizers: [] } })
        if (storage.find(kind, each)) storage.delete(kind, each)
      }
    storage.setCustomKinds(metadata.name, [])
  }

  for (const definition of storage.list(definitions).items) serve(definition)
  return storage.subscribe(definitions, ({ object }: StorageChange) => {
    // The delivered change may be older than the stored object, because serving a definition writes it too.
    const definition = storage.find(definitions, object.metadata)
    if (definition) serve(definition)
    else remove(object)
  })
}

type Condition = { type: string; status: string; lastTransitionTime: string; reason: string; message: string }

/** Checks whether the names are free, and makes the status that reports it. */
function judge(storage: KindStorage, definition: Obj, now: string): { accepted: Json; conditions: Condition[] } {
  const { spec, status = {}, metadata } = definition
  const others = storage
    .kinds()
    .filter(kind => kind.group === spec.group && `${kind.plural}.${kind.group}` !== metadata.name)
  const names = new Set(others.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]))
  const kinds = new Set(others.flatMap(({ kind, listKind }) => [kind, listKind]))
  const accepted: Json = { plural: "", kind: "", ...status.acceptedNames }
  // Every name is judged by itself. If several are taken, the last one is reported.
  let conflict: { reason: string; taken: string[] } | undefined
  for (const [field, reason, inUse] of [
    ["plural", "PluralConflict", names],
    ["singular", "SingularConflict", names],
    ["shortNames", "ShortNamesConflict", names],
    ["kind", "KindConflict", kinds],
    ["listKind", "ListKindConflict", kinds],
  ] as const) {
    const wanted: string[] = [spec.names[field] ?? []].flat()
    const taken = wanted.filter(name => ![accepted[field]].flat().includes(name) && inUse.has(name))
    if (taken.length > 0) conflict = { reason, taken }
    else accepted[field] = spec.names[field]
  }
  accepted.categories = spec.names.categories

  const before: Condition[] = status.conditions ?? []
  const conditions: Condition[] = []
  const set = (type: string, value: string, reason: string, message: string) => {
    const old = before.find(each => each.type === type)
    const lastTransitionTime = old?.status === value ? old.lastTransitionTime : now
    conditions.push({ type, status: value, lastTransitionTime, reason, message })
  }
  if (conflict) set("NamesAccepted", "False", conflict.reason, inUseText(conflict.taken))
  else set("NamesAccepted", "True", "NoConflicts", "no conflicts found")
  const wasEstablished = before.some(({ type, status: is }) => type === "Established" && is === "True")
  if (wasEstablished || !conflict)
    set("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
  else set("Established", "False", "NotAccepted", "not all names are accepted")
  return {
    accepted: Object.fromEntries(Object.entries(accepted).filter(([, value]) => value !== undefined)),
    conditions,
  }
}

function inUseText(names: readonly string[]): string {
  const texts = names.map(name => `${JSON.stringify(name)} is already in use`)
  return texts.length === 1 ? texts[0]! : `[${texts.join(", ")}]`
}
