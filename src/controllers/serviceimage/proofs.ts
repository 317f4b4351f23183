import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { type Proof, proofOf } from "#core/canary/proof.ts"
import { isOfComponent } from "#core/canary/provider.ts"
import type { Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { canaries } from "./resources.ts"

/** A Canary, reduced to what a rollout over its target decides by. */
export type Proven = Projected & Proof & { readonly target?: string; readonly createdAt: string }

/** A workload, as an index names it. */
export type Workload = { readonly kind: string; readonly key: string }

const refOf = ({ kind, key }: Workload) => `${kind} ${key}`
function workloadAt(ref: string): Workload {
  const [kind = "", key = ""] = ref.split(" ")
  return { kind, key }
}

function readProof(object: KubeObject): Proven {
  const { metadata, spec } = object as Canary & KubeObject
  const { kind, name } = spec.targetRef
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    // Of a component each revision is a workload of its own: a change of one where it is starts no run.
    ...(!isOfComponent({ spec }) && { target: refOf({ kind, key: keyOf({ namespace: metadata.namespace, name }) }) }),
    createdAt: metadata.creationTimestamp ?? "",
    ...proofOf(object as Canary & KubeObject),
  }
}

/** Of two Canaries for one workload the older has it. */
const firstOf = (all: readonly Proven[]): Proven | undefined =>
  all.toSorted((a, b) => (a.createdAt + a.name < b.createdAt + b.name ? -1 : 1))[0]

/**
 * How the Canaries of workloads stand. Nothing is watched before `open`: a cluster that does not serve Canaries, or has no
 * ServiceImage over workloads, does not pay for it.
 */
export class Proofs {
  readonly #wiring: Pick<Wiring, "watch">
  readonly #onChange: (target: Workload | undefined) => void
  #cache: WatchedCache<Proven> | undefined

  /** Calls back with a workload whose proof may have changed; with none when all are known. */
  constructor(wiring: Pick<Wiring, "watch">, onChange: (target: Workload | undefined) => void) {
    this.#wiring = wiring
    this.#onChange = onChange
  }

  open(): void {
    if (this.#cache) return
    const indexes = { target: ({ target }: Proven) => (target === undefined ? [] : [target]) }
    const cache = this.#wiring.watch<Proven>(canaries, { project: readProof, indexes })
    this.#cache = cache
    cache.subscribe(({ before, after }) => {
      for (const target of new Set([before?.target, after?.target])) {
        if (target !== undefined) this.#onChange(workloadAt(target))
      }
    })
    cache.synced().then(
      () => this.#onChange(undefined),
      () => {},
    )
  }

  /** The workloads that had a Canary are reported once more. */
  close(): void {
    const targets = [...(this.#cache?.entries() ?? [])].flatMap(([, { target }]) =>
      target === undefined ? [] : workloadAt(target),
    )
    this.#cache?.close()
    this.#cache = undefined
    for (const target of targets) this.#onChange(target)
  }

  /** The list is complete, or cannot be read. */
  get isKnown(): boolean {
    return !this.#cache || this.#cache.hasSynced || this.#cache.failure !== undefined
  }

  of(target: Workload): Proof | undefined {
    const cache = this.#cache
    return cache && firstOf([...cache.keysBy("target", refOf(target))].flatMap(key => cache.get(key) ?? []))
  }
}
