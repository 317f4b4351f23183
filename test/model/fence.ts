import {
  copyOf,
  generations,
  type Hand,
  keyFor,
  type Late,
  type Leader,
  putDown,
  type Size,
  type Stamp,
  type Status,
  type Target,
  type World,
} from "./fence-world.ts"
import type { Model, Step } from "./search.ts"

/**
 * The fence of a ServiceImage: which process may write which image into which object, and when a rollout is complete,
 * while leaders stop and go on at any point, answers are lost and requests arrive late. A leader's steps:
 *
 *   look       read the ServiceImage; what was known of its objects before counts no more, and those that its inflight
 *              lists are suspect
 *   take over  swap our electionID into the status; our first ordinary status may be the one that does it
 *   touch      write a suspect object so that only its resourceVersion moves: what is on its way to it now fails
 *   read       an object's image and resourceVersion; a warm candidate reads before it looks
 *   catch up   what was read before the look is shown to be what was there then, or newer
 *   declare    swap inflight += batch into the status, for the generation that it shows
 *   stamp      write the image on condition of the resourceVersion read before declaring; a conflict starts over
 *   aim        an intent that is still listed may serve a later generation
 *   report     swap what is still open into inflight
 *   withdraw   the same without our intents, which are forgotten first
 *   complete   swap Complete into the status, with nothing open and every object known to be right
 *
 * To swap is to write on condition of the resourceVersion of a ServiceImage that shows our electionID; only a first
 * status goes over another's. A suspect object is trusted again when a write of ours to it was answered, be it a touch
 * or a stamp; a stamp without an answer makes its object suspect.
 *
 * Why asking for the electionID before each write, as the original protocol does, is not enough:
 *
 *   user   asks for v2 .                        . takes it back: v1
 *   A                  . reads tenant-1 . may I? yes . . . . . . . . . . (stopped) . . . . . . . . . . writes v2 !
 *   B                                                        . is elected . tenant-1 has v1 . Complete .
 *
 * B had nothing to write, so tenant-1 still has the resourceVersion that A read, and A's condition holds. A question
 * leaves nothing behind that a successor could find; an intent does.
 */
export type Protocol = {
  readonly intents: "declared" | "asked" // asked: the original protocol, where only the electionID is read
  readonly touchesInherited: boolean
  readonly clearsBeforeTouching: boolean
  readonly touchesUnknown: boolean
  readonly touchMoves: "always" | "never" | "oncePerLeader" // oncePerLeader: a touch writes the electionID
  readonly readsAfterIntent: boolean
  readonly stampsOnCondition: boolean
  readonly statusNeedsElectionID: boolean
  readonly intentNeedsGeneration: boolean
  readonly firstStatusIsSwap: boolean
  readonly listsUntilAnswered: boolean
  readonly forgetsBeforeWithdrawing: boolean
  readonly completesWithSuspects: boolean
  readonly readsAfterLooking: boolean // rather than trust a cache that was filled before
  readonly completesUnproven: boolean // with objects from a warm cache that nothing has shown to be current
  readonly seesOwnWrites: boolean // rather than trust a cache that is behind them
}

export const sound: Protocol = {
  intents: "declared",
  touchesInherited: true,
  clearsBeforeTouching: false,
  touchesUnknown: true,
  touchMoves: "always",
  readsAfterIntent: false,
  stampsOnCondition: true,
  statusNeedsElectionID: true,
  intentNeedsGeneration: true,
  firstStatusIsSwap: true,
  listsUntilAnswered: true,
  forgetsBeforeWithdrawing: true,
  completesWithSuspects: false,
  readsAfterLooking: true,
  completesUnproven: false,
  seesOwnWrites: true,
}

export type Bounds = Size & {
  readonly images: readonly number[] // what each generation asks for
  readonly losesAnswers: boolean
  readonly deliversLate: boolean // one request at a time
  /** A candidate reads objects before it is elected, and writes from what it has read: it is not to conclude from it. */
  readonly warm: boolean
  /** Leave out what a replaced leader knows but can no longer use. */
  readonly forgets: boolean
}

type Take = (name: string, says: () => string, change: (next: World) => void, fate?: Fate) => void
/** What may become of a request instead of being answered. */
type Fate = "and the answer is lost" | "and gives up before it arrives"
/** One leader's turn: what it may do next in this world. */
type Turn = Leader & { world: World; leader: number; take: Take }

export function fence(protocol: Protocol, bounds: Bounds): Model<World> {
  const everyObject = [...Array(bounds.objects).keys()]
  const everyLeader = [...Array(bounds.leaders).keys()]
  const everyBatch = [...Array(2 ** bounds.objects - 1).keys()].map(index =>
    everyObject.filter(object => ((index + 1) >> object) & 1),
  )
  const imageOf = (generation: number): number => bounds.images[generation - 1]!

  /** The first leader leads, and everything is as the first generation asks. */
  const start: World = {
    generation: 1,
    electionID: 0,
    inflight: everyObject.map(() => false),
    complete: 1,
    objects: everyObject.map(() => ({ image: imageOf(1), writtenBy: 0, touchedBy: 0 })),
    leaders: everyLeader.map(leader => ({
      phase: leader === 0 ? "leading" : "waiting",
      hands: everyObject.map(() => ({
        holds: "nothing",
        value: 0,
        isCurrent: false,
        isSuspect: false,
        isProven: false,
      })),
    })),
    late: undefined,
    broken: [],
  }

  function steps(world: World): Step<World>[] {
    const found: Step<World>[] = []
    const takenBy =
      (by: string): Take =>
      (name, says, change, fate) => {
        const next = copyOf(world)
        change(next)
        if (bounds.forgets) forget(next)
        found.push({ by, name, next, fate, says: () => (fate ? `${by} ${says()}, ${fate}` : `${by} ${says()}`) })
      }

    if (world.generation < generations) {
      const generation = world.generation + 1
      takenBy("the user")(
        "change",
        () => `asks for ${version(imageOf(generation))} (generation ${generation})`,
        next => {
          next.generation = generation
          serviceImageMoved(next)
        },
      )
    }
    for (const object of everyObject)
      takenBy("a bystander")(
        "write",
        () => `writes ${named(object)}, but not its image`,
        next => objectMoved(next, object),
      )
    const { late } = world
    if (late)
      takenBy("the network")(
        "deliver",
        () => `delivers what ${letter(late.leader)} has given up: ${inWords(late)}`,
        next => {
          next.late = undefined
          if (late.do === "stamp") commitStamp(next, late)
          else commitStatus(next, late)
        },
      )
    for (const leader of everyLeader) {
      const turn = { ...world.leaders[leader]!, world, leader, take: takenBy(letter(leader)) }
      if (turn.phase === "waiting") look(turn)
      if (turn.phase === "looked") takeOver(turn)
      for (const object of everyObject) {
        read(turn, object)
        catchUp(turn, object)
        touch(turn, object)
        stamp(turn, object)
        if (protocol.intents === "declared") aim(turn, object)
      }
      if (!mayWriteStatus(turn)) continue
      if (protocol.intents === "asked") ask(turn)
      else {
        declare(turn)
        report(turn)
        withdraw(turn)
      }
      complete(turn)
    }
    return found
  }

  function look({ world: { electionID, inflight }, leader, take }: Turn): void {
    // With our own electionID in place we look again: the answer to our first status was lost.
    if (electionID !== leader - 1 && electionID !== leader) return
    take(
      "look",
      () => "is elected and reads the ServiceImage",
      ({ leaders }) => {
        const me = leaders[leader]!
        me.phase = "looked"
        for (const object of everyObject) {
          if (protocol.readsAfterLooking && !bounds.warm) putDown(me.hands[object]!)
          me.hands[object]!.isProven = !protocol.readsAfterLooking
          me.hands[object]!.isSuspect = inflight[object]! && protocol.touchesInherited
        }
      },
    )
  }

  function takeOver(turn: Turn): void {
    const { inflight } = turn.world
    const list = protocol.clearsBeforeTouching ? inflight.map(() => false) : inflight
    swap(turn, "take over", () => "takes over", { inflight: list })
  }

  function read({ world, leader, phase, hands, take }: Turn, object: number): void {
    const { holds, isCurrent } = hands[object]!
    const mayRead = phase === "leading" || phase === "looked" || !protocol.readsAfterLooking || bounds.warm
    if (!mayRead || holds === "intent" || isCurrent) return
    take(
      "read",
      () => `reads ${named(object)}: ${version(world.objects[object]!.image)}`,
      next => {
        pickUp(handOf(next, leader, object), next.objects[object]!)
        if (phase === "waiting" && protocol.readsAfterLooking) handOf(next, leader, object).isProven = false
      },
    )
  }

  /** The cache is shown to have reached a version that was read from the server since the look. */
  function catchUp({ leader, phase, hands, take }: Turn, object: number): void {
    const { holds, isProven } = hands[object]!
    if (phase === "waiting" || holds !== "read" || isProven) return
    take(
      "catch up",
      () => `has caught up with ${named(object)}`,
      next => pickUp(handOf(next, leader, object), next.objects[object]!),
    )
  }

  function touch({ world, leader, phase, hands, take }: Turn, object: number): void {
    const { holds, isSuspect } = hands[object]!
    if (phase !== "leading" || !isSuspect || holds === "intent") return
    const says = () => `touches ${named(object)}: ${version(world.objects[object]!.image)}`
    take("touch", says, next => {
      commitTouch(next, leader, object)
      pickUp(handOf(next, leader, object), next.objects[object]!)
      handOf(next, leader, object).isSuspect = false
    })
    // One that arrives late is no more than a bystander's write.
    if (bounds.losesAnswers) take("touch", says, next => commitTouch(next, leader, object), "and the answer is lost")
  }

  /** Any part of what differs: a batch is written in any order and over any time, so every batch size is in here. */
  function declare(turn: Turn): void {
    const { world, hands } = turn
    const known = protocol.intentNeedsGeneration ? world.generation : 1
    for (let generation = known; generation <= world.generation; generation++)
      for (const batch of everyBatch) {
        const differs = ({ holds, value }: Hand) => holds === "read" && value !== imageOf(generation)
        if (!batch.every(object => differs(hands[object]!))) continue
        const inflight = openOf(hands).map((isOpen, object) => isOpen || batch.includes(object))
        const says = () => `declares ${version(imageOf(generation))} for ${batch.map(named).join(" and ")}`
        const answered = (mine: Hand[]) => {
          for (const object of batch) intend(mine[object]!, generation)
        }
        swap(turn, "declare", says, { inflight }, { answered })
      }
  }

  /** The original protocol's place of an intent: a read that leaves no trace. */
  function ask({ world: { generation }, leader, hands, take }: Turn): void {
    for (const object of everyObject) {
      const { holds, value } = hands[object]!
      if (holds !== "read" || value === imageOf(generation)) continue
      take(
        "ask",
        () => `asks whether it leads (yes) and what is wanted (${version(imageOf(generation))})`,
        next => {
          intend(handOf(next, leader, object), generation)
        },
      )
    }
  }

  function stamp({ world, leader, phase, hands, take }: Turn, object: number): void {
    const { holds, value: generation, isCurrent } = hands[object]!
    if (phase !== "leading" || holds !== "intent") return
    const request: Stamp = { do: "stamp", leader, object, generation }
    const says = () => `writes ${inWords(request)}`
    const isAccepted = isCurrent || !protocol.stampsOnCondition
    const loseTrack = (hand: Hand): void => {
      putDown(hand)
      if (protocol.touchesUnknown && protocol.intents === "declared") hand.isSuspect = true
    }
    const learn = (hand: Hand, target: Target): void => {
      pickUp(hand, target)
      hand.isSuspect = false
      if (protocol.seesOwnWrites) return
      hand.value = world.objects[object]!.image
      hand.isCurrent = false
    }

    if (isAccepted)
      take("stamp", says, next => {
        commitStamp(next, request)
        learn(handOf(next, leader, object), next.objects[object]!)
      })
    else
      take(
        "conflict",
        () => `${says()}: conflict`,
        next => putDown(handOf(next, leader, object)),
      )

    const lose = (next: World) => {
      if (isAccepted) commitStamp(next, request)
      loseTrack(handOf(next, leader, object))
    }
    const giveUp = (next: World) => {
      next.late = request
      loseTrack(handOf(next, leader, object))
    }
    if (bounds.losesAnswers) take("stamp", says, lose, "and the answer is lost")
    if (bounds.deliversLate && isAccepted && !world.late) take("stamp", says, giveUp, "and gives up before it arrives")

    const readAgain = (next: World) => {
      handOf(next, leader, object).isCurrent = true
    }
    if (protocol.readsAfterIntent && !isCurrent) take("read", () => `reads ${named(object)} again`, readAgain)
  }

  function aim({ world: { generation, electionID }, leader, hands, take }: Turn, object: number): void {
    const { holds, value } = hands[object]!
    if (holds !== "intent" || value === generation || electionID !== leader) return
    take(
      "aim",
      () => `now means ${version(imageOf(generation))} (generation ${generation}) for ${named(object)}`,
      next => intend(handOf(next, leader, object), generation),
    )
  }

  function report(turn: Turn): void {
    const inflight = openOf(turn.hands)
    const isNews = inflight.some((isOpen, object) => isOpen !== turn.world.inflight[object])
    if (turn.phase === "leading" && isNews) swap(turn, "report", () => "reports what is still open", { inflight })
  }

  function withdraw(turn: Turn): void {
    if (!turn.hands.some(({ holds }) => holds === "intent")) return
    const forgetIntents = (mine: Hand[]) => {
      for (const hand of mine) if (hand.holds === "intent") putDown(hand)
    }
    const inflight = turn.hands.map(({ isSuspect }) => isSuspect)
    const when = protocol.forgetsBeforeWithdrawing ? { before: forgetIntents } : { answered: forgetIntents }
    swap(turn, "withdraw", () => "withdraws its intents", { inflight }, when)
  }

  function complete(turn: Turn): void {
    const { generation, complete: before } = turn.world
    const isRight = ({ holds, value, isSuspect, isProven }: Hand) =>
      holds === "read" &&
      value === imageOf(generation) &&
      (!isSuspect || protocol.completesWithSuspects) &&
      (isProven || protocol.completesUnproven)
    if (before === generation || !turn.hands.every(isRight)) return
    const says = () => `says Complete (generation ${generation})`
    swap(turn, "complete", says, { inflight: openOf(turn.hands), completes: true })
  }

  function mayWriteStatus({ world, leader, phase }: Turn): boolean {
    if (phase === "leading") return world.electionID === leader || !protocol.statusNeedsElectionID
    return phase === "looked" && protocol.intents === "declared"
  }

  const openOf = (hands: readonly Hand[]): boolean[] =>
    hands.map(({ holds, isSuspect }) => isSuspect || (holds === "intent" && protocol.listsUntilAnswered))

  /** One conditional write of the status and the ways it may go. */
  function swap(
    { world, leader, take }: Turn,
    name: string,
    says: () => string,
    { inflight, completes = false }: { inflight: readonly boolean[]; completes?: boolean },
    { before, answered }: { before?: (mine: Hand[]) => void; answered?: (mine: Hand[]) => void } = {},
  ): void {
    const request: Status = { do: "status", leader, inflight, completes }
    const send = (arrives: boolean) => (next: World) => {
      before?.(next.leaders[leader]!.hands)
      if (arrives) commitStatus(next, request)
      else next.late = request
    }
    take(name, says, next => {
      send(true)(next)
      next.leaders[leader]!.phase = "leading"
      answered?.(next.leaders[leader]!.hands)
    })
    if (bounds.losesAnswers) take(name, says, send(true), "and the answer is lost")
    if (bounds.deliversLate && !world.late) take(name, says, send(false), "and gives up before it arrives")
  }

  function commitStamp(world: World, { leader, object, generation }: Stamp): void {
    const target = world.objects[object]!
    if (generation < world.complete) world.broken.push("nothing older is written after Complete")
    if (leader < target.writtenBy) world.broken.push("no image is written after a successor's write")
    target.image = imageOf(generation)
    target.writtenBy = Math.max(target.writtenBy, leader)
    objectMoved(world, object)
  }

  function commitTouch(world: World, leader: number, object: number): void {
    const target = world.objects[object]!
    target.writtenBy = Math.max(target.writtenBy, leader)
    if (protocol.touchMoves === "never") return
    if (protocol.touchMoves === "oncePerLeader") {
      if (target.touchedBy === leader + 1) return
      target.touchedBy = leader + 1
    }
    objectMoved(world, object)
  }

  function commitStatus(world: World, { leader, inflight, completes }: Status): void {
    serviceImageMoved(world)
    world.electionID = leader
    world.inflight = inflight
    if (!completes) return
    world.complete = world.generation
    if (world.objects.some(({ image }) => image !== imageOf(world.generation)))
      world.broken.push("Complete is true when it is written")
  }

  function objectMoved(world: World, object: number): void {
    for (const { hands } of world.leaders) hands[object]!.isCurrent = false
    if (world.late?.do === "stamp" && world.late.object === object && protocol.stampsOnCondition) world.late = undefined
  }

  function serviceImageMoved(world: World): void {
    if (world.late?.do === "status") world.late = undefined
    if (!protocol.firstStatusIsSwap) return
    for (const leader of world.leaders) if (leader.phase === "looked") leader.phase = "waiting"
  }

  /**
   * A replaced leader changes images by what it had declared, as long as no other process wrote the object since. Whatever else it
   * does is refused, or is a touch, and that a bystander does too.
   */
  function forget({ leaders, electionID }: World): void {
    for (const [leader, { phase, hands }] of leaders.entries()) {
      if (phase === "looked" || (phase === "leading" && leader === electionID)) continue
      if (phase === "waiting" && bounds.warm) continue
      for (const hand of hands) {
        if (hand.holds !== "intent" || !hand.isCurrent) putDown(hand)
        hand.isSuspect = false
      }
    }
  }

  const inWords = (late: Late): string =>
    late.do === "stamp"
      ? `${version(imageOf(late.generation))} (generation ${late.generation}) into ${named(late.object)}`
      : late.completes
        ? "Complete"
        : "its status"

  return { start, steps, keyOf: keyFor({ ...bounds, keepsTouches: protocol.touchMoves === "oncePerLeader" }) }
}

const letter = (leader: number): string => "ABC".charAt(leader)
const named = (object: number): string => `tenant-${object + 1}`
const version = (image: number): string => `v${image}`
const handOf = (world: World, leader: number, object: number): Hand => world.leaders[leader]!.hands[object]!

function pickUp(hand: Hand, { image }: Target): void {
  hand.holds = "read"
  hand.value = image
  hand.isCurrent = true
  hand.isProven = true
}

function intend(hand: Hand, generation: number): void {
  hand.holds = "intent"
  hand.value = generation
  hand.isProven = false // an answer to the write will show what is there
}
