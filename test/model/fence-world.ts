import assert from "node:assert/strict"

/**
 * Everything that the future depends on: the ServiceImage, its objects, what each leader knows, and the network.
 *
 * A resourceVersion is asked one thing only: are you still the current one? Once it is not, it never will be again.
 * So that one bit is kept with whatever was read, and the number of writes needs no bound.
 */
export type World = {
  generation: number
  electionID: number // leaders are numbered in the order in which they take over
  inflight: readonly boolean[] // which objects the status lists
  complete: number // the last generation that was called complete
  objects: Target[]
  leaders: Leader[]
  late: Late | undefined // dropped once its condition cannot hold any more
  broken: Promised[] // by the step that led here
}

/** What the fence is for. */
export const promises = [
  "nothing older is written after Complete",
  "Complete is true when it is written",
  "no image is written after a successor's write",
] as const
export type Promised = (typeof promises)[number]

export type Target = {
  image: number
  writtenBy: number // the highest leader that ever wrote it
  touchedBy: number // 1 + the leader whose electionID stands in it; kept only where a touch writes that
}

export type Leader = {
  phase: "waiting" | "looked" | "leading" // looked: and the ServiceImage has not changed since
  hands: Hand[] // what it holds of each object
}

export type Hand = {
  holds: "nothing" | "read" | "intent"
  value: number // read: the image; intent: the generation that it comes from
  isCurrent: boolean // is the resourceVersion that was read still the object's?
  isSuspect: boolean // may a write be on its way, a predecessor's or our own?
  isProven: boolean // was it read since the ServiceImage was looked at?
}

export type Stamp = { do: "stamp"; leader: number; object: number; generation: number }
export type Status = { do: "status"; leader: number; inflight: readonly boolean[]; completes: boolean }

/** A request that its sender has given up, and that may still arrive. */
export type Late = Stamp | Status

export type Size = { readonly objects: number; readonly leaders: number }

export const generations = 3

export const copyOf = (world: World): World => ({
  ...world,
  objects: world.objects.map(object => ({ ...object })),
  leaders: world.leaders.map(({ phase, hands }) => ({ phase, hands: hands.map(hand => ({ ...hand })) })),
  broken: [],
})

export function putDown(hand: Hand): void {
  hand.holds = "nothing"
  hand.value = 0
  hand.isCurrent = false
  hand.isProven = false
}

/**
 * A world as one number: its fields are the digits, each with a base of its own. Objects are interchangeable, so all
 * there is to say about one makes one large digit, and these are put in order.
 */
export function keyFor({ objects, leaders, keepsTouches }: Size & { keepsTouches: boolean }): (world: World) => number {
  const everyObject = [...Array(objects).keys()]
  const handBase = (1 + 2 * generations) * 8
  const lateBase = generations + 2
  const touchBase = keepsTouches ? leaders + 1 : 1
  const columnBase = 2 * generations * leaders * touchBase * lateBase * handBase ** leaders
  const most = 4 * leaders ** 2 * generations ** 2 * 3 ** leaders * columnBase ** objects
  assert(most <= Number.MAX_SAFE_INTEGER, "larger numbers are not told from their neighbours")

  function columnOf({ objects, inflight, late, leaders: all }: World, object: number): number {
    const { image, writtenBy, touchedBy } = objects[object]!
    let column = Number(inflight[object])
    column = column * generations + image - 1
    column = column * leaders + writtenBy
    column = column * touchBase + touchedBy
    column = column * lateBase + (late ? partIn(late, object) : 0)
    for (const { hands } of all) column = column * handBase + digitOf(hands[object]!)
    return column
  }

  return world => {
    const { generation, complete, electionID, late } = world
    let key = late ? (late.do === "stamp" ? 1 : late.completes ? 3 : 2) : 0
    key = key * leaders + (late ? late.leader : 0)
    key = key * leaders + electionID
    key = key * generations + generation - 1
    key = key * generations + complete - 1
    for (const { phase } of world.leaders) key = key * 3 + (phase === "waiting" ? 0 : phase === "looked" ? 1 : 2)
    const columns = everyObject.map(object => columnOf(world, object)).sort((a, b) => a - b)
    for (const column of columns) key = key * columnBase + column
    return key
  }
}

const partIn = (late: Late, object: number): number =>
  late.do === "stamp" ? (late.object === object ? late.generation : 0) : late.inflight[object] ? generations + 1 : 0

const digitOf = ({ holds, value, isCurrent, isSuspect, isProven }: Hand): number =>
  (holds === "nothing" ? 0 : holds === "read" ? value : generations + value) * 8 +
  Number(isProven) * 4 +
  Number(isCurrent) * 2 +
  Number(isSuspect)
