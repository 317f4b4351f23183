import { randomBytes } from "node:crypto"
import type { ServerResponse } from "node:http"
import type { Clock } from "#runtime/clock.ts"
import type { Panel } from "./panel.ts"
import type { Frame, Page, Tick } from "./wire.ts"

/** At most five frames a second. */
const frameMs = 200
const tickMs = 5000

type Deps = { clock: Clock; tick(): Tick; panelsOf(page: Page, touch: (feed: string) => void): Panel[] }

/**
 * What one browser sees, as JSON texts line by line. Nothing is queued: while the browser does not read, panels collect
 * what is different, and the next frame has the newest state.
 */
export class Stream {
  readonly id = randomBytes(16).toString("base64url")
  readonly #response: ServerResponse
  readonly #deps: Deps
  readonly #panels = new Map<string, Panel[]>()
  readonly #touched = new Set<string>()
  #isFull = false
  #isClosed = false
  #sentAt = Number.NEGATIVE_INFINITY
  #cancelFrame: (() => void) | undefined
  #cancelTick: (() => void) | undefined

  constructor(response: ServerResponse, deps: Deps) {
    this.#response = response
    this.#deps = deps
    response.on("drain", () => {
      this.#isFull = false
      this.#schedule()
    })
    this.#write([{ type: "hello", stream: this.id, ...deps.tick() }])
    this.#tick()
  }

  show(pages: readonly Page[]): void {
    const wanted = new Map(pages.map(page => [JSON.stringify(page), page]))
    const gone: Frame[] = []
    for (const [id, panels] of this.#panels) {
      if (wanted.has(id)) continue
      this.#panels.delete(id)
      for (const panel of panels) {
        panel.close()
        gone.push({ type: "gone", feed: panel.feed })
      }
    }
    if (gone.length > 0) this.#write(gone)
    for (const [id, page] of wanted) {
      if (this.#panels.has(id)) continue
      const panels = this.#deps.panelsOf(page, feed => this.#touch(feed))
      this.#panels.set(id, panels)
      for (const { feed } of panels) this.#touch(feed)
    }
  }

  /** The end. With a message it ends the session in the page as well; without one, the page opens another stream. */
  end(message?: string): void {
    if (this.#isClosed) return
    if (message !== undefined) this.#write([{ type: "end", message }])
    this.close()
    this.#response.end()
  }

  close(): void {
    this.#isClosed = true
    this.#cancelFrame?.()
    this.#cancelTick?.()
    for (const panels of this.#panels.values()) for (const panel of panels) panel.close()
    this.#panels.clear()
  }

  #touch(feed: string): void {
    if (this.#isClosed) return
    this.#touched.add(feed)
    this.#schedule()
  }

  /** The first change goes at once. */
  #schedule(): void {
    if (this.#isClosed || this.#isFull || this.#cancelFrame || this.#touched.size === 0) return
    const wait = Math.max(0, this.#sentAt + frameMs - this.#deps.clock.monotonic())
    this.#cancelFrame = this.#deps.clock.after(wait, () => {
      this.#cancelFrame = undefined
      this.#send()
    })
  }

  #send(): void {
    const frames: Frame[] = []
    for (const panel of [...this.#panels.values()].flat()) {
      if (!this.#touched.has(panel.feed)) continue
      const frame = panel.frame()
      if (frame) frames.push(frame)
    }
    this.#touched.clear()
    if (frames.length === 0) return
    this.#sentAt = this.#deps.clock.monotonic()
    this.#write(frames)
  }

  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(tickMs, () => {
      if (!this.#isFull) this.#write([{ type: "tick", ...this.#deps.tick() }])
      this.#tick()
    })
  }

  #write(frames: readonly Frame[]): void {
    if (this.#isClosed) return
    const text = frames.map(frame => `${JSON.stringify(frame)}\n`).join("")
    if (!this.#response.write(text)) this.#isFull = true
  }
}
