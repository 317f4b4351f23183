import type { Page } from "#web/wire.ts"
import { reconnectAfterMs, silenceMs } from "../backoff.ts"
import { Refusal, readStream, watch } from "../client.ts"
import { Hub } from "../hub.ts"
import { after, chance } from "./machine.ts"

/**
 * One stream, opened while a tab wants it and opened again when it ends or goes silent: after a pause that grows, and of
 * which half is chance, so that a hundred browsers do not come back at the same moment.
 */
export class Connection {
  readonly hub: Hub
  readonly #base: string
  readonly #session: string
  #running: AbortController | undefined
  #stream = ""

  constructor(base: string, session: string) {
    this.#base = base
    this.#session = session
    this.hub = new Hub(pages => void this.#watch(pages))
  }

  open(): void {
    if (this.#running) return
    this.#running = new AbortController()
    void this.#run(this.#running.signal)
  }

  /** Gives the stream back, for example while the only tab is hidden. */
  close(): void {
    this.#running?.abort()
    this.#running = undefined
  }

  async #run(closed: AbortSignal): Promise<void> {
    for (let attempt = 1; !closed.aborted; attempt++) {
      const silent = new AbortController()
      let forget = () => {}
      const heard = () => {
        forget()
        forget = after(silenceMs, () => silent.abort(new Error("the server has been silent")))
      }
      heard()
      let message = "the server ended the stream"
      try {
        const signal = AbortSignal.any([closed, silent.signal])
        await readStream({ base: this.#base, session: this.#session, signal }, frame => {
          heard()
          if (frame.type === "hello") {
            this.#stream = frame.stream
            attempt = 0
            this.hub.tell({ type: "found" })
          }
          this.hub.take(frame)
        })
      } catch (error) {
        message = error instanceof Error ? error.message : String(error)
        if (error instanceof Refusal && error.answer.error === "NoSession")
          return this.hub.tell({ type: "refused", message })
      } finally {
        forget()
        this.#stream = ""
      }
      if (closed.aborted) return
      this.hub.tell({ type: "lost", message })
      await new Promise<void>(resolve => after(reconnectAfterMs(Math.max(1, attempt), chance()), resolve))
    }
  }

  async #watch(pages: Page[]): Promise<void> {
    const { signal } = this.#running ?? {}
    if (this.#stream === "" || !signal) return
    try {
      await watch(this.#base, this.#session, { stream: this.#stream, pages }, signal)
    } catch (error) {
      if (!signal.aborted) this.hub.tell({ type: "lost", message: error instanceof Error ? error.message : "" })
    }
  }
}
