import type { Frame, Page } from "#web/wire.ts"
import { applyFrame, detailsFeed, type Feeds, listFeed, wholeOf } from "./feeds.ts"

/** What a tab is sent. `lost` and `found`: the stream ended, and is back. `refused`: there is no session any more. */
export type Notice =
  | { type: "frame"; frame: Frame }
  | { type: "found" }
  | { type: "lost"; message: string }
  | { type: "refused"; message: string }

type Tab = { pages: Page[]; send: (notice: Notice) => void }

/**
 * Shares one stream among all tabs of a browser. It keeps what the stream said, so that a further tab sees it at once,
 * and asks the server for what any of them shows.
 */
export class Hub {
  readonly #tabs = new Map<number, Tab>()
  readonly #feeds: Feeds = new Map()
  readonly #onPages: (pages: Page[]) => void
  #clock: Frame | undefined
  #next = 1
  #asked = ""

  constructor(onPages: (pages: Page[]) => void) {
    this.#onPages = onPages
  }

  get tabs(): number {
    return this.#tabs.size
  }

  join(send: Tab["send"]): number {
    const id = this.#next++
    this.#tabs.set(id, { pages: [], send })
    return id
  }

  leave(id: number): void {
    this.#tabs.delete(id)
    this.#ask()
  }

  /** What a tab shows from now on. Feeds that are known already are sent at once. */
  show(id: number, pages: Page[]): void {
    const tab = this.#tabs.get(id)
    if (!tab) return
    const before = tab.pages
    tab.pages = pages
    if (this.#clock) tab.send({ type: "frame", frame: this.#clock })
    for (const [name, feed] of this.#feeds)
      if (shows(pages, name) && !shows(before, name)) tab.send({ type: "frame", frame: wholeOf(name, feed) })
    this.#ask()
  }

  /** All pages that are shown in any tab, each once. */
  get pages(): Page[] {
    const all = [...this.#tabs.values()].flatMap(({ pages }) => pages)
    return [...new Map(all.map(page => [JSON.stringify(page), page])).values()]
  }

  /** A frame of the stream: kept, and passed on to the tabs that show its feed. */
  take(frame: Frame): void {
    if (frame.type === "hello") {
      // The server knows nothing of an earlier stream: everything comes again, whole.
      this.#feeds.clear()
      this.#asked = ""
    }
    if (frame.type === "hello" || frame.type === "tick") this.#clock = { ...frame, type: "tick" }
    const feed = applyFrame(this.#feeds, frame)
    const isForAll = !("feed" in frame)
    for (const { pages, send } of this.#tabs.values())
      if (isForAll || (feed !== undefined && shows(pages, feed))) send({ type: "frame", frame })
    if (frame.type === "hello") this.#ask()
  }

  tell(notice: Notice): void {
    for (const { send } of this.#tabs.values()) send(notice)
  }

  #ask(): void {
    const pages = this.pages
    const asked = JSON.stringify(pages)
    if (asked === this.#asked) return
    this.#asked = asked
    // What no tab shows is not kept: the server sends no further difference of it.
    for (const name of this.#feeds.keys()) if (!shows(pages, name)) this.#feeds.delete(name)
    this.#onPages(pages)
  }
}

const shows = (pages: readonly Page[], feed: string) =>
  pages.some(page => (page.page === "overview" ? feed.startsWith(listFeed("")) : feed === detailsFeed(page)))
