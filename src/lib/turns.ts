/** How many may be at work at once. */
export type TurnLimits = {
  all: number
  /** For one owner; default: `all`. */
  owner?: number
  /** At one place; default: `all`. */
  place?: number
  /** For one owner at one place; default: `owner`. */
  ownerAtPlace?: number
  /** How many of one owner may wait; those beyond it are refused with `LineIsFull`. */
  waiting?: number
}

export type Turn = { owner: string; place?: string; signal?: AbortSignal | undefined }

/** So many requests of one owner wait that another would time out too. */
export class LineIsFull extends Error {}

type Line = Set<() => void>
type Owner = {
  active: number
  activeAt: Map<string, number>
  waiting: number
  /** By place; the place whose turn is next comes first. */
  lines: Map<string, Line>
}

/**
 * Starts work within the limits, and owners take turns: an owner with a thousand waiting requests gets one started for
 * each that another gets started, and a place that hangs delays only work for that place. Owners and places without work
 * cost nothing.
 */
export function createTurns(limits: TurnLimits) {
  const {
    all,
    owner: ownerMost = all,
    place: placeMost = all,
    waiting: waitingMost = Number.POSITIVE_INFINITY,
  } = limits
  const ownerAtPlaceMost = limits.ownerAtPlace ?? ownerMost
  /** In the order of their last turn; the first is next. */
  const owners = new Map<string, Owner>()
  const places = new Map<string, number>()
  let active = 0

  const hasRoomAt = (owner: Owner, place: string) =>
    (places.get(place) ?? 0) < placeMost && (owner.activeAt.get(place) ?? 0) < ownerAtPlaceMost

  function begin(owner: Owner, place: string) {
    active++
    owner.active++
    add(owner.activeAt, place, 1)
    add(places, place, 1)
  }

  function end(name: string, owner: Owner, place: string) {
    active--
    owner.active--
    add(owner.activeAt, place, -1)
    add(places, place, -1)
    forgetIfIdle(name, owner)
    while (active < all && beginNext());
  }

  /**
   * The first waiting work that may begin. Few are checked in vain: a full limit is full of work that is under
   * way.
   */
  function beginNext(): boolean {
    for (const [name, owner] of owners) {
      if (owner.waiting === 0 || owner.active >= ownerMost) continue
      for (const [place, line] of owner.lines) {
        if (!hasRoomAt(owner, place)) continue
        owners.delete(name) // and is added again as the last
        owners.set(name, owner)
        owner.lines.delete(place)
        owner.lines.set(place, line)
        const [first] = line
        begin(owner, place)
        first!()
        return true
      }
    }
    return false
  }

  function forgetIfIdle(name: string, owner: Owner) {
    if (owner.active === 0 && owner.waiting === 0) owners.delete(name)
  }

  function turnOf(name: string, owner: Owner, place: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const line = owner.lines.get(place) ?? new Set()
      owner.lines.set(place, line)
      owner.waiting++
      const leave = () => {
        signal?.removeEventListener("abort", abort)
        line.delete(start)
        owner.waiting--
        if (line.size === 0) owner.lines.delete(place)
      }
      const start = () => {
        leave()
        resolve()
      }
      const abort = () => {
        leave()
        forgetIfIdle(name, owner)
        reject(signal?.reason)
      }
      line.add(start)
      signal?.addEventListener("abort", abort, { once: true })
    })
  }

  /** Runs `work` when it is its turn, or rejects with the signal's reason if that comes first. */
  return async function inTurn<T>({ owner: name, place = "", signal }: Turn, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    const owner = owners.get(name) ?? { active: 0, activeAt: new Map(), waiting: 0, lines: new Map() }
    if (owner.waiting >= waitingMost) throw new LineIsFull(`${owner.waiting} requests wait for their turn`)
    owners.set(name, owner)
    // All work that may begin has begun, so a new request does not overtake waiting ones.
    if (active < all && owner.active < ownerMost && hasRoomAt(owner, place)) begin(owner, place)
    else await turnOf(name, owner, place, signal)
    try {
      return await work()
    } finally {
      end(name, owner, place)
    }
  }
}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
