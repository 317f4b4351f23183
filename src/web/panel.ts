import { closest } from "#lib/closest.ts"
import type { KubeError } from "#runtime/client/errors.ts"
import { keyOf } from "#runtime/resource.ts"
import type { Access } from "./access.ts"
import type { Feeds } from "./feeds.ts"
import type { KindPage } from "./kinds/kind.ts"
import type { FollowedList } from "./list.ts"
import { type Scope, scopeWords } from "./rights.ts"
import { shown } from "./text.ts"
import type { Change, FeedHead, Problem, Whole } from "./wire.ts"

/** A part of what one browser shows. It holds what is different since its last frame, and no frames. */
export type Panel = {
  readonly feed: string
  /** What to send now; the newest state, whatever happened in between. */
  frame(): ({ type: "whole" } & Whole) | ({ type: "change" } & Change) | undefined
  close(): void
}

export type PanelDeps = { access: Access; feeds: Feeds; touch(): void; program: string; operates: boolean }

/** The rows of a kind, in every scope that the viewer may see. */
export function listPanel(page: KindPage, { access, feeds, touch, program }: PanelDeps): Panel {
  const dirty = new Set<string>()
  let isWhole = false
  const sources = openSources(
    page,
    { access, feeds },
    {
      changed(key) {
        if (key !== undefined) dirty.add(key)
        touch()
      },
      moved() {
        isWhole = false
        touch()
      },
    },
  )
  let head = ""
  const feed = `list/${page.resource.plural}`
  return {
    feed,
    frame() {
      const lists = sources.lists()
      if (!lists) return undefined
      const next = headOf(page, sources.scope!, lists, program)
      // Before the first list is complete an absent object means nothing.
      if (!next.isReady && !next.problem) return undefined
      const text = JSON.stringify(next)
      if (!isWhole) {
        isWhole = true
        dirty.clear()
        head = text
        return {
          type: "whole",
          feed,
          head: next,
          rows: lists.flatMap(list => [...list.keys()].map(key => list.row(key)!)),
        }
      }
      const found = [...dirty].map(key => ({ key, row: rowIn(lists, key) }))
      dirty.clear()
      const rows = found.flatMap(({ row }) => (row ? [row] : []))
      const removed = found.flatMap(({ key, row }) => (row ? [] : [shown(key)]))
      const isOther = text !== head
      head = text
      if (rows.length + removed.length === 0 && !isOther) return undefined
      return {
        ...{ type: "change", feed },
        ...(isOther && { head: next }),
        ...(rows.length > 0 && { rows }),
        ...(removed.length > 0 && { removed }),
      }
    },
    close: sources.close,
  }
}

const rowIn = (lists: readonly FollowedList[], key: string) => {
  for (const list of lists) {
    const row = list.row(key)
    if (row) return row
  }
  return undefined
}

/** The lists of a kind that a viewer may see, joined and left as its rights change. */
export function openSources(
  page: KindPage,
  { access, feeds }: Pick<PanelDeps, "access" | "feeds">,
  on: { changed(key: string | undefined): void; moved(): void },
) {
  const { viewer } = access
  let scope: Scope | undefined
  let joined: { list: FollowedList; leave(): void }[] = []
  const leaveAll = () => {
    for (const { leave } of joined) leave()
    joined = []
  }
  const unwatch = access.watch(page.resource, next => {
    leaveAll()
    scope = next
    const spaces = next.is === "All" ? [undefined] : next.is === "Some" ? next.namespaces : []
    joined = spaces.map(namespace => {
      const shared = feeds.list(page, namespace)
      const list = shared.join(viewer)
      const unsubscribe = list.subscribe(on.changed)
      return {
        list,
        leave() {
          unsubscribe()
          shared.leave(viewer)
        },
      }
    })
    on.moved()
  })
  return {
    get scope() {
      return scope
    },
    /** Undefined until the rights are known. */
    lists: () => (scope ? joined.map(({ list }) => list) : undefined),
    close() {
      unwatch()
      leaveAll()
    },
  }
}

export function headOf(page: KindPage, scope: Scope, lists: readonly FollowedList[], program: string): FeedHead {
  const failure = lists.map(list => list.failure).find(each => each !== undefined)
  const problem = failure && problemOf(failure, page, program)
  return {
    isReady: lists.every(({ hasSynced }) => hasSynced),
    scope: scope.is,
    namespaces: scope.is === "Some" ? [...scope.namespaces] : [],
    scopeMessage: scopeWords(scope, page.resource),
    ...(problem && { problem }),
  }
}

function problemOf(failure: KubeError, { resource }: KindPage, program: string): Problem {
  const message = shown(failure.said)
  if (failure.kind === "NotFound")
    return {
      reason: "NotInstalled",
      message: `the cluster does not serve ${resource.kind}s`,
      command: `${program} manifests crds | kubectl apply -f -`,
    }
  if (failure.kind === "Forbidden") return { reason: "Forbidden", message }
  if (failure.kind === "Unreachable") return { reason: "Unreachable", message }
  return { reason: "Other", message }
}

/** No such object, with the name that was probably meant. */
export function notFound(
  page: KindPage,
  at: { namespace: string; name: string },
  lists: readonly FollowedList[],
): Problem {
  const keys = lists.flatMap(list => [...list.keys()])
  const meant = closest(keyOf(at), keys)
  const where = at.namespace === "" ? "" : ` in namespace ${shown(at.namespace, 63)}`
  return {
    reason: "NotFound",
    message: `there is no ${page.resource.kind} ${shown(at.name, 253)}${where}`,
    ...(meant !== undefined && { meant }),
  }
}
