import { compareVersions, noVersion } from "#lib/resource-version.ts"
import type { KubeObject } from "../resource.ts"
import type { Projected } from "./cache.ts"
import type { Store } from "./store.ts"

/** Receives everything that a feed reads: a store. */
export type Follower = Pick<
  Store<Projected>,
  "progress" | "hasSynced" | "beginList" | "put" | "remove" | "endList" | "beginWatch" | "bookmark"
>

export type Followers = ReturnType<typeof createFollowers>

/** The followers of one feed, which are called like one. */
export function createFollowers() {
  /** A new array for each change: a follower added during a delivery does not receive the rest of it. */
  let followers: readonly Follower[] = []
  return {
    add(follower: Follower) {
      followers = [...followers, follower]
    },
    delete(follower: Follower) {
      followers = followers.filter(other => other !== follower)
    },
    get size() {
      return followers.length
    },
    /** The newest version that any follower shows; a new follower shows none yet. */
    get progress() {
      let most = noVersion
      for (const { progress } of followers) if (compareVersions(progress, most) > 0) most = progress
      return most
    },
    beginList(how: { historyIsNew: boolean }) {
      for (const follower of followers) follower.beginList(how)
    },
    endList(version: string) {
      for (const follower of followers) follower.endList(version)
    },
    beginWatch() {
      for (const follower of followers) follower.beginWatch()
    },
    put(object: KubeObject) {
      for (const follower of followers) follower.put(object)
    },
    remove(object: KubeObject) {
      for (const follower of followers) follower.remove(object)
    },
    bookmark(version: string) {
      for (const follower of followers) follower.bookmark(version)
    },
  }
}
