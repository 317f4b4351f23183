import type { KubeObject, Resource } from "#runtime/resource.ts"
import { type FollowOptions, follow } from "./follow.ts"

export type Followed = Pick<FollowOptions, "name" | "namespace" | "labelSelector"> & { resource: Resource }
type Views<Name extends string> = Readonly<Record<Name, ReadonlyMap<string, KubeObject>>>

/**
 * Follows several lists at once. Yields once all of them are there, and again after changes of any: several changes may
 * be one. Ends with the signal.
 */
export async function* followSeveral<Name extends string>(
  lists: Readonly<Record<Name, Followed>>,
  common: Omit<FollowOptions, keyof Followed>,
): AsyncGenerator<Views<Name>> {
  const names = Object.keys(lists) as Name[]
  const views: Partial<Record<Name, ReadonlyMap<string, KubeObject>>> = {}
  const ending = new AbortController()
  const signal = AbortSignal.any([common.signal, ending.signal])
  let wake = () => {}
  const one = async (name: Name) => {
    for await (const objects of follow({ ...common, ...lists[name], signal })) {
      views[name] = objects
      wake()
    }
  }
  // They end with the signal, or with an error that a person has to read.
  const ended = Promise.all(names.map(one))
  ended.catch(() => {})
  try {
    while (!signal.aborted) {
      const changed = new Promise<void>(resolve => {
        wake = resolve
      })
      if (names.every(name => views[name])) yield views as Views<Name>
      await Promise.race([changed, ended])
    }
  } finally {
    ending.abort()
  }
}
