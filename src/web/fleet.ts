import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Fleet } from "#core/fleet/fleet.ts"
import { openLive } from "#explain/serviceimage/live.ts"
import type { Surveyed } from "#explain/serviceimage/survey.ts"
import type { Client } from "#runtime/client/client.ts"
import { nameOf, type Resource } from "#runtime/resource.ts"
import type { Around } from "./list.ts"
import type { Followed } from "./shared.ts"
import { shown } from "./text.ts"
import type { CellState, Cells } from "./wire.ts"

const cellStates: readonly CellState[] = [
  "Gone",
  "UpToDate",
  "Settling",
  "Updating",
  "Waiting",
  "Blank",
  "Failing",
  "Failed",
  "Regressed",
  "Unmanaged",
  "Unmatched",
]

/** The rollouts over one kind, object by object. */
export type FollowedFleet = Followed & {
  /** The map of one rollout: opened with its first subscriber. Each change of a place is told once. */
  picture(name: string): Picture
  look(name: string): Surveyed | undefined
}

/** How often a rollout is judged by the passing of time alone. */
const lookMs = 1000
/** Events that come together are judged together. */
const gatherMs = 100

export function followFleet(
  target: Resource,
  all: () => readonly ServiceImage[],
  client: Client,
  { clock, random, clusterNow }: Around,
): FollowedFleet {
  const pictures = new Map<string, Picture>()
  const clusterClock = { ...clock, now: clusterNow }
  const open = () =>
    openLive(target, all, { client, clock: clusterClock, random, onChange: name => pictures.get(name)?.touch() })
  let live = open()
  const look = (name: string) => live.look(name, clusterNow())
  return {
    look,
    picture(name) {
      const known = pictures.get(name)
      if (known) return known
      const made = new Picture(target.kind, () => look(name), clock)
      pictures.set(name, made)
      return made
    },
    restart() {
      live.close()
      live = open()
      for (const picture of pictures.values()) picture.touch()
    },
    close() {
      live.close()
      for (const picture of pictures.values()) picture.close()
    },
  }
}

/** The cells of one rollout. An event costs what it changes: only objects that were judged again are looked at. */
export class Picture {
  readonly cells: Cells
  /** What the planner says about the rollout, as of the last look. */
  surveyed: Surveyed | undefined
  readonly #look: () => Surveyed | undefined
  readonly #clock: Around["clock"]
  readonly #places = new Map<string, number>()
  readonly #judged = new Set<string>()
  readonly #listeners = new Set<(place: number | undefined) => void>()
  readonly #namespaces = new Map<string, number>()
  readonly #tiers = new Map<string, number>()
  #fleet: Fleet | undefined
  #cancel: (() => void) | undefined
  #isSoon = false

  constructor(kind: string, look: () => Surveyed | undefined, clock: Around["clock"]) {
    this.#look = look
    this.#clock = clock
    this.cells = {
      ...{ kind, states: [...cellStates], tiers: [], namespaces: [], names: [] },
      ...{ namespace: [], tier: [], state: [], counts: cellStates.map(() => 0) },
    }
  }

  /** Called with each place that changes; with none when only the plan did. */
  subscribe(listener: (place: number | undefined) => void): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.touch()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  touch(): void {
    if (this.#listeners.size === 0 || this.#isSoon) return
    this.#isSoon = true
    this.#arm(gatherMs)
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#isSoon = false
  }

  #arm(ms: number): void {
    this.#cancel?.()
    this.#cancel = this.#clock.after(ms, () => {
      this.#isSoon = false
      this.#refresh()
      this.#arm(lookMs)
    })
  }

  #refresh(): void {
    this.surveyed = this.#look()
    const fleet = this.surveyed?.fleet
    if (fleet && fleet !== this.#fleet) {
      if (this.#fleet) this.#fleet.onJudged = undefined
      this.#fleet = fleet
      fleet.onJudged = key => this.#judged.add(key)
      for (const key of [...new Set([...this.#places.keys(), ...fleet.keys()])].sort()) this.#judged.add(key)
    }
    if (this.#fleet) for (const key of this.#judged) this.#judge(key, this.#fleet)
    this.#judged.clear()
    this.#tell(undefined)
  }

  #judge(key: string, fleet: Fleet): void {
    const { cells } = this
    const state = cellStates.indexOf(stateOf(fleet, key))
    const tier = indexIn(this.#tiers, cells.tiers, fleet.standing(key)?.tier ?? "")
    const known = this.#places.get(key)
    if (known === undefined) {
      if (state === 0) return
      const { name, namespace = "" } = nameOf(key)
      this.#places.set(key, cells.names.length)
      cells.names.push(shown(name, 253))
      cells.namespace.push(indexIn(this.#namespaces, cells.namespaces, shown(namespace, 63)))
      cells.tier.push(tier)
      cells.state.push(state)
      cells.counts[state]! += 1
      this.#tell(cells.names.length - 1)
      return
    }
    if (cells.state[known] === state && (state === 0 || cells.tier[known] === tier)) return
    cells.counts[cells.state[known]!]! -= 1
    cells.counts[state]! += 1
    cells.state[known] = state
    if (state !== 0) cells.tier[known] = tier
    this.#tell(known)
  }

  #tell(place: number | undefined): void {
    for (const listener of this.#listeners) listener(place)
  }
}

function indexIn(known: Map<string, number>, list: string[], word: string): number {
  const found = known.get(word)
  if (found !== undefined) return found
  known.set(word, list.length)
  return list.push(word) - 1
}

/** How an object stands, in one word for its cell. */
function stateOf(fleet: Fleet, key: string): CellState {
  if (fleet.unmatched.has(key)) return "Unmatched"
  const standing = fleet.standing(key)
  if (!standing) return "Gone"
  if (standing.state === "Unmanaged") return "Unmanaged"
  if (standing.isRegressed) return "Regressed"
  if (standing.isFailed) return "Failed"
  if (standing.trouble !== undefined) return "Failing"
  return { Done: "UpToDate", Settling: "Settling", Waiting: "Updating", Stale: "Waiting", Blank: "Blank" }[
    standing.state
  ] as CellState
}
