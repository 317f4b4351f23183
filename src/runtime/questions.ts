import type { Clock, Instant } from "./clock.ts"

/** An answer, and when it came. */
export type Answer<A> = { readonly at: Instant; readonly said: A }

/**
 * Questions that take long: to registries, to metric services, to other clusters. They are asked in the background. A
 * look reads the existing answers, asks for the missing ones, and is repeated when there is an answer.
 */
export type Questions<A> = {
  get(key: string): Answer<A> | undefined
  /** Asks, unless the same question is under way. Every caller is called back when there is an answer. */
  ask(key: string, question: () => Promise<A>, onAnswer: () => void): void
  /** Whether any question is under way. */
  readonly areOpen: boolean
  forget(isConcerned: (key: string) => boolean): void
}

export type QuestionsOptions<A> = {
  clock: Pick<Clock, "now">
  /** How long an answer is kept, and how many. */
  rememberMs: number
  most: number
  /** The answer where a question throws. */
  failed: (error: unknown) => A
}

export function createQuestions<A>({ clock, rememberMs, most, failed }: QuestionsOptions<A>): Questions<A> {
  const answers = new Map<string, Answer<A>>()
  const open = new Map<string, Set<() => void>>()

  function remember(key: string, said: A): void {
    const now = clock.now()
    answers.delete(key) // so that the map is ordered by the time of the answer
    answers.set(key, { at: now, said })
    for (const [old, { at }] of answers) {
      if (answers.size <= most && now - at < rememberMs) break
      answers.delete(old)
    }
  }

  return {
    get: key => answers.get(key),
    ask(key, question, onAnswer) {
      const callers = open.get(key)
      if (callers) return void callers.add(onAnswer)
      const waiting = new Set([onAnswer])
      open.set(key, waiting)
      question()
        .catch(failed)
        .then(said => remember(key, said))
        .finally(() => {
          open.delete(key)
          for (const call of waiting) call()
        })
    },
    get areOpen() {
      return open.size > 0
    },
    forget(isConcerned) {
      for (const key of [...answers.keys()]) if (isConcerned(key)) answers.delete(key)
    },
  }
}
