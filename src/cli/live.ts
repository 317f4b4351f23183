import { formatDuration } from "#lib/duration.ts"
import type { Instant } from "#lib/instant.ts"
import type { World } from "./command.ts"
import { paint } from "./render/paint.ts"
import { clockTime } from "./render/time.ts"

/** One object as a watch shows it. */
export type Shown = {
  /** `si/web` */
  title: string
  /** For pipes and logs, without values that change with time alone. */
  lines: string
  /** The same with values that change with time alone. */
  told(): string
}

export type Painter<T extends Shown> = {
  show(objects: readonly T[]): void
  /** The server has sent something. */
  contact(): void
  /** The connection is lost and is being reopened. */
  trouble(): void
  end(): void
}

type Drawn<T> = {
  /** The text of the screen at a moment. `taken` lines of the window are in use. */
  frame(objects: readonly T[], at: Instant, taken: number): string
}

export const painterFor = <T extends Shown>(world: World, drawn: Drawn<T>): Painter<T> =>
  world.view.isTerminal ? screen(world, drawn) : journal(world)

const frameMs = 100
const tickMs = 1000

/**
 * Redraws at most ten times a second however fast events arrive, and once a second for the passing time. Without a
 * connection the picture stays as it is and shows its time: a running clock would suggest that it is current.
 */
function screen<T extends Shown>(world: World, { frame }: Drawn<T>): Painter<T> {
  const { clock, view } = world
  let objects: readonly T[] = []
  let drawnAt = Number.NEGATIVE_INFINITY
  let heardAt = clock.now()
  let lostAt: Instant | undefined
  let cancel = () => {}
  const draw = () => {
    cancel()
    drawnAt = clock.monotonic()
    const now = clock.now()
    const isLost = lostAt !== undefined
    const banner = isLost
      ? `${paint(view).red(`not connected for ${formatDuration(Math.max(0, now - lostAt!))}; this is as of ${clockTime(heardAt)}`)}\n`
      : ""
    world.draw(banner + frame(objects, isLost ? heardAt : now, isLost ? 1 : 0))
    cancel = clock.after(tickMs, draw)
  }
  const soon = () => {
    cancel()
    cancel = clock.after(Math.max(0, drawnAt + frameMs - clock.monotonic()), draw)
  }
  return {
    show(next) {
      objects = next
      soon()
    },
    contact() {
      heardAt = clock.now()
      if (lostAt === undefined) return
      lostAt = undefined
      soon()
    },
    trouble() {
      lostAt ??= clock.now()
      soon()
    },
    end() {
      cancel()
    },
  }
}

/** For pipes and logs: prints the lines of an object again whenever they change. */
function journal<T extends Shown>(world: World): Painter<T> {
  const told = new Map<string, string>()
  let isLost = false
  return {
    show(objects) {
      for (const { title, lines, told: text } of objects) {
        if (told.get(title) !== lines) world.draw(text())
        told.set(title, lines)
      }
      for (const title of told.keys())
        if (!objects.some(each => each.title === title)) {
          told.delete(title)
          world.draw(`${title} deleted\n`)
        }
    },
    contact() {
      if (isLost) world.say("connected again")
      isLost = false
    },
    trouble() {
      isLost = true
      world.say("lost the connection to the cluster, reconnecting")
    },
    end() {},
  }
}
