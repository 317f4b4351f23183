/** How much work may be under way at once. */
export type Limits = {
  all: number
  /** For one owner; default: `all`. A function is called for each decision: the limit may change while work waits. */
  owner?: number | ((owner: string) => number)
  /** At one place; default: `all`. */
  place?: number
  /** For one owner at one place; default: no limit of its own. */
  ownerAtPlace?: number
  /** How much work of one owner may wait; work beyond it is refused with `LineIsFull`. */
  waiting?: number
  /** Which work begins first where several owners wait: each owner in turn (default), or the oldest. */
  order?: "EachInTurn" | "Oldest"
}

export type Turn = { owner: string; place?: string; signal?: AbortSignal | undefined }

/** So many requests of one owner wait that another would time out too. */
export class LineIsFull extends Error {}

/** One piece of work. `start` is called once, when its turn has come. */
type Job = { owner: Owner; place: string; start: () => void; order: number }

type Owner = {
  name: string
  active: number
  activeAt: Map<string, number>
  waiting: number
  /** By place; the place whose turn is next comes first. */
  lines: Map<string, Set<Job>>
}

export type Limiter = ReturnType<typeof createLimiter>

/**
 * Starts work within the limits. Owners take turns: an owner with a thousand waiting requests gets one started for each
 * that another gets started, and a place that hangs delays only work for that place. Owners and places without work cost
 * nothing.
 */
export function createLimiter(limits: Limits) {
  const {
    all,
    owner: ofOwner = all,
    place: placeMost = all,
    ownerAtPlace: ownerAtPlaceMost = Number.POSITIVE_INFINITY,
    waiting: waitingMost = Number.POSITIVE_INFINITY,
    order = "EachInTurn",
  } = limits
  /** In the order of their last turn; the first is next. */
  const owners = new Map<string, Owner>()
  const places = new Map<string, number>()
  let active = 0
  let waiting = 0
  let arrivals = 0

  const ownerHasRoom = ({ name, active }: Owner) => active < (typeof ofOwner === "number" ? ofOwner : ofOwner(name))

  const placeHasRoom = (owner: Owner, place: string) =>
    (places.get(place) ?? 0) < placeMost && (owner.activeAt.get(place) ?? 0) < ownerAtPlaceMost

  /** Counts the job as begun if it may begin. Otherwise the caller adds it to its line. */
  function beginsAtOnce(job: Job): boolean {
    // All waiting work that may begin has begun, so a new job overtakes none of it; a limit may have risen since.
    if (typeof ofOwner === "function") startWaiting()
    if (active >= all) return false
    if (!ownerHasRoom(job.owner) || !placeHasRoom(job.owner, job.place)) return false
    begin(job)
    return true
  }

  function begin({ owner, place }: Job) {
    active++
    owner.active++
    add(owner.activeAt, place, 1)
    add(places, place, 1)
  }

  function end({ owner, place }: Job) {
    active--
    owner.active--
    add(owner.activeAt, place, -1)
    add(places, place, -1)
    forgetIfIdle(owner)
    startWaiting()
  }

  function wait(job: Job) {
    const { owner, place } = job
    const line = owner.lines.get(place) ?? new Set()
    owner.lines.set(place, line)
    line.add(job)
    owner.waiting++
    waiting++
  }

  function leave(job: Job) {
    const { owner, place } = job
    const line = owner.lines.get(place)
    line?.delete(job)
    if (line?.size === 0) owner.lines.delete(place)
    owner.waiting--
    waiting--
  }

  function startWaiting() {
    while (active < all && waiting > 0) {
      const job = next()
      if (!job) return
      const { owner, place } = job
      owners.delete(owner.name) // and is added again as the last
      owners.set(owner.name, owner)
      const line = owner.lines.get(place)!
      owner.lines.delete(place)
      owner.lines.set(place, line)
      leave(job)
      begin(job)
      job.start()
    }
  }

  /** The waiting job that begins next. Few are checked in vain: a full limit is full of work that is under way. */
  function next(): Job | undefined {
    let oldest: Job | undefined
    for (const owner of owners.values()) {
      if (owner.waiting === 0 || !ownerHasRoom(owner)) continue
      for (const [place, line] of owner.lines) {
        if (!placeHasRoom(owner, place)) continue
        const [first] = line
        if (order === "EachInTurn") return first
        if (!oldest || first!.order < oldest.order) oldest = first
      }
    }
    return oldest
  }

  function jobOf({ owner: name, place = "" }: Turn): Job {
    const owner = owners.get(name) ?? { name, active: 0, activeAt: new Map(), waiting: 0, lines: new Map() }
    if (owner.waiting >= waitingMost) throw new LineIsFull(`${owner.waiting} requests wait for their turn`)
    owners.set(name, owner)
    return { owner, place, start: noStart, order: arrivals++ }
  }

  function forgetIfIdle({ name, active, waiting }: Owner) {
    if (active === 0 && waiting === 0) owners.delete(name)
  }

  function turnOf(job: Job, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        leave(job)
        forgetIfIdle(job.owner)
        reject(signal?.reason)
      }
      job.start = () => {
        signal?.removeEventListener("abort", abort)
        resolve()
      }
      signal?.addEventListener("abort", abort, { once: true })
      wait(job)
    })
  }

  return {
    /** Runs `work` when it is its turn, or rejects with the signal's reason if that comes first. */
    async run<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
      turn.signal?.throwIfAborted()
      const job = jobOf(turn)
      if (!beginsAtOnce(job)) await turnOf(job, turn.signal)
      try {
        return await work()
      } finally {
        end(job)
      }
    },
  }
}

const noStart = () => {}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
