import type { Container, NodeRuntime } from "../container-runtime/index.ts"
import type { Timers } from "../timers.ts"

/**
 * Whether a kubelet can work: it is alive and its runtime answers. Work that falls due meanwhile is suspended; calls of
 * the runtime that were under way are lost.
 */
export class Suspension {
  readonly #timers: Timers
  readonly #runtime: NodeRuntime
  readonly #onEnd: () => void
  #isAlive = true
  #frozen: (() => void)[] = []
  readonly #calls = new Set<() => void>()

  /** `onEnd` is called when a suspension is over. */
  constructor(options: { timers: Timers; runtime: NodeRuntime; onEnd: () => void }) {
    this.#timers = options.timers
    this.#runtime = options.runtime
    this.#onEnd = options.onEnd
    options.runtime.onLife(isAnswering => {
      if (isAnswering) this.#thaw()
      else if (options.runtime.isDead) this.#loseCalls() // one that hangs goes on with them
    })
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  get canWork(): boolean {
    return this.#isAlive && this.#runtime.isAnswering
  }

  die(): void {
    this.#isAlive = false
    this.#loseCalls()
  }

  /** Dies and has nothing left to do. */
  destroy(): void {
    this.die()
    this.#frozen = []
  }

  revive(): void {
    if (this.#isAlive) return
    this.#isAlive = true
    this.#thaw()
  }

  onRevival(resume: () => void): void {
    this.#frozen.push(resume)
  }

  /** Calls back now, or when the kubelet can work again. */
  unlessFrozen(callback: () => void): void {
    if (this.canWork) callback()
    else this.#frozen.push(callback)
  }

  /** Timers that are suspended while the kubelet cannot work. */
  mortal(): Timers {
    return { after: (ms, callback) => this.#timers.after(ms, () => this.unlessFrozen(callback)), clear: () => {} }
  }

  /** Calls the runtime's stop. Resumes when the container has ended, or when the call was lost. */
  stop(container: Container, graceMs: number, resume: () => void): void {
    let abandon = () => {}
    const end = () => {
      if (this.#calls.delete(lose)) this.unlessFrozen(resume)
    }
    const lose = () => {
      abandon()
      end()
    }
    this.#calls.add(lose)
    abandon = this.#runtime.containers.stop(container, graceMs, end)
  }

  #loseCalls(): void {
    for (const lose of [...this.#calls]) lose()
  }

  #thaw(): void {
    if (!this.canWork) return
    const waiting = this.#frozen
    this.#frozen = []
    for (const resume of waiting) resume()
    this.#onEnd()
  }
}
