import type { Fleet } from "#core/fleet/fleet.ts"
import { GroupedPlaces, type Nodes, type Place } from "#core/pods/places.ts"
import type { Root } from "#core/pods/pod-index.ts"

type Known = { readonly isReliable: boolean; placesOf(root: Root): readonly Place[] | undefined }

/** On which nodes the pods of a fleet run, by tier. Kept only for a ServiceImage that asks for pre-caching. */
export class FleetPlaces {
  readonly #fleet: Fleet
  readonly #pods: Known
  #grouped = new GroupedPlaces()
  #isFilled = false

  constructor(fleet: Fleet, pods: Known) {
    this.#fleet = fleet
    this.#pods = pods
  }

  /** False while the pods are being listed, or may not be. */
  get isKnown(): boolean {
    if (!this.#pods.isReliable) return false
    if (!this.#isFilled) this.#fill()
    return true
  }

  of(tier: string): Nodes {
    return this.#grouped.of(tier)
  }

  /** The object is new, or its pods have changed. */
  traced(key: string): void {
    const member = this.#fleet.get(key)
    if (!this.#isFilled) return
    if (member) this.#grouped.set(key, this.#tierOf(key), this.#pods.placesOf(member) ?? [])
    else this.#grouped.delete(key)
  }

  /** The object has changed, and may be in another tier, or in none. */
  changed(key: string): void {
    if (this.#isFilled) this.#grouped.set(key, this.#tierOf(key))
  }

  /** The tiers are others now. */
  renew(): void {
    this.#isFilled = false
  }

  #fill(): void {
    this.#grouped = new GroupedPlaces()
    this.#isFilled = true
    for (const key of this.#fleet.keys()) this.traced(key)
  }

  /** An object that keeps its image itself needs no other. */
  #tierOf(key: string): string | undefined {
    const standing = this.#fleet.standing(key)
    return standing?.state === "Unmanaged" ? undefined : standing?.tier
  }
}
