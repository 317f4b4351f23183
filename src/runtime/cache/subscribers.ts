import type { Change } from "./cache.ts"

type Subscriber<T> = { listener: (change: Change<T>) => void; active: boolean }

type Subscribers<T> = {
  notify(change: Change<T>): void
  /** Calls the listener for each of the entries, and from now on for each change. */
  add(listener: Subscriber<T>["listener"], entries: Iterable<[key: string, { value: T }]>): () => void
}

/** A listener that fails delays no other. */
export function createSubscribers<T>(onError: (key: string, error: unknown) => void): Subscribers<T> {
  let subscribers: readonly Subscriber<T>[] = []

  function call(subscriber: Subscriber<T>, change: Change<T>) {
    try {
      const returned: unknown = subscriber.listener(change)
      // The type system allows an async listener, whose rejection would end the process.
      if (returned instanceof Promise) returned.catch(error => onError(change.key, error))
    } catch (error) {
      onError(change.key, error)
    }
  }

  return {
    notify(change) {
      for (const subscriber of subscribers) if (subscriber.active) call(subscriber, change)
    },
    add(listener, entries) {
      const subscriber = { listener, active: true }
      for (const [key, { value }] of entries) call(subscriber, { key, after: value, initial: true })
      subscribers = [...subscribers, subscriber]
      return () => {
        subscriber.active = false
        subscribers = subscribers.filter(other => other !== subscriber)
      }
    },
  }
}
