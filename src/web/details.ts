import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { builtIn } from "#controllers/served-kind.ts"
import { type KubeObject, keyOf, type Resource } from "#runtime/resource.ts"
import type { FollowedFleet, Picture } from "./fleet.ts"
import { conditionsOf, type KindPage } from "./kinds/kind.ts"
import { headOf, notFound, openSources, type Panel, type PanelDeps } from "./panel.ts"
import { may } from "./rights.ts"
import type { Shared } from "./shared.ts"
import { rolloutWhy } from "./why.ts"
import type { ActionState, CellChange, Details, FeedHead, ObjectId } from "./wire.ts"

type Deps = PanelDeps & { now(): number; whyNot: string }

/** One object with everything that its kind shows; of a rollout also each of its objects. */
export function detailsPanel(page: KindPage, at: ObjectId, deps: Deps): Panel {
  const { touch, program } = deps
  const key = keyOf({ name: at.name, ...(at.namespace && { namespace: at.namespace }) })
  const feed = `details/${at.kind}/${at.namespace}/${at.name}`
  let isWhole = false
  let last: Details | undefined
  /** As sent: only parts that read differently are sent again. */
  let sent = new Map<string, string>()
  const resend = () => {
    isWhole = false
    touch()
  }
  const sources = openSources(page, deps, {
    changed: changed => (changed === undefined || changed === key) && touch(),
    moved: resend,
  })
  const rights = openRights(page, at, deps)
  const map = page.view === "rollout" ? openMap(deps, resend) : undefined

  function read(): { head: FeedHead; details: Details | undefined } | undefined {
    const lists = sources.lists()
    if (!lists) return undefined
    const head = headOf(page, sources.scope!, lists, program)
    if (head.scope === "None" || (head.scope === "Some" && !head.namespaces.includes(at.namespace)))
      return {
        head: { ...head, isReady: true, problem: { reason: "Forbidden", message: head.scopeMessage } },
        details: undefined,
      }
    if (!head.isReady && !head.problem) return undefined
    const list = lists.find(each => each.row(key) !== undefined)
    const object = list?.object(key)
    if (!list || !object) {
      if (last) return { head: { ...head, isDeleted: true }, details: last }
      return { head: head.problem ? head : { ...head, problem: notFound(page, at, lists) }, details: undefined }
    }
    map?.follow(object)
    last = {
      row: list.row(key)!,
      actions: rights.states(),
      conditions: conditionsOf(object),
      ...list.details(key),
    }
    if (last.rollout && map?.missing) last.rollout = { ...last.rollout, mapMissing: map.missing }
    const surveyed = map?.picture?.surveyed
    if (surveyed) last.why = rolloutWhy(surveyed, deps.now(), program)
    return { head, details: last }
  }

  return {
    feed,
    frame() {
      const seen = read()
      if (!seen) return undefined
      const parts = new Map(
        Object.entries({ head: seen.head, ...seen.details }).map(([name, part]) => [name, JSON.stringify(part)]),
      )
      if (!isWhole) {
        isWhole = true
        sent = parts
        const cells = map?.whole()
        return {
          ...{ type: "whole", feed, head: seen.head },
          ...(seen.details && { details: seen.details }),
          ...(cells && { cells }),
        }
      }
      const isOther = (name: string) => parts.get(name) !== sent.get(name)
      const other = Object.entries(seen.details ?? {}).filter(([name]) => isOther(name))
      const isOtherHead = isOther("head")
      sent = parts
      const whole = map?.isFresh ? map.whole() : undefined
      if (whole)
        return { type: "whole", feed, head: seen.head, ...(seen.details && { details: seen.details }), cells: whole }
      const cells = map?.change()
      if (other.length === 0 && !isOtherHead && !cells) return undefined
      return {
        ...{ type: "change", feed },
        ...(isOtherHead && { head: seen.head }),
        ...(other.length > 0 && { details: Object.fromEntries(other) as Partial<Details> }),
        ...(cells && { cells }),
      }
    },
    close() {
      sources.close()
      rights.close()
      map?.close()
    },
  }
}

/** Whether the buttons work, by the viewer's own rights; asked again now and then, as rights change. */
function openRights({ resource, actions }: KindPage, at: ObjectId, { access, operates, whyNot, touch }: Deps) {
  let isAllowed: boolean | undefined
  let isClosed = false
  const ask = () =>
    may(access.viewer.client, {
      verb: "patch",
      resource,
      name: at.name,
      ...(at.namespace && { namespace: at.namespace }),
    }).then(
      answer => {
        if (isClosed || isAllowed === answer.isAllowed) return
        isAllowed = answer.isAllowed
        touch()
      },
      () => {},
    )
  const isAsked = operates && actions.length > 0
  if (isAsked) ask()
  const stopAsking = isAsked ? access.eachReview(ask) : () => {}
  const why = () => {
    if (!operates) return whyNot
    if (isAllowed === undefined) return "the server has not said yet whether you may"
    return isAllowed ? "" : `you may not patch ${resource.plural}${at.namespace ? ` in namespace ${at.namespace}` : ""}`
  }
  return {
    states: (): ActionState[] => actions.map(action => ({ action, isEnabled: why() === "", why: why() })),
    close() {
      isClosed = true
      stopAsking()
    },
  }
}

/** The objects of a rollout, where the viewer may see all that they are judged by. `resend` sends everything again. */
function openMap({ access, feeds, touch }: Deps, resend: () => void) {
  const { viewer } = access
  let wanted = ""
  let judged: Resource | undefined
  let missing = ""
  let joined: { shared: Shared<FollowedFleet>; picture: Picture; unsubscribe(): void } | undefined
  let isFresh = false
  let isClosed = false
  let known = 0
  /** The tier of each place, as sent. */
  let tiers: number[] = []
  const moved = new Set<number>()
  const leave = () => {
    joined?.unsubscribe()
    joined?.shared.leave(viewer)
    joined = undefined
  }

  async function open(name: string, target: { apiVersion: string; kind: string }, id: string): Promise<void> {
    try {
      const resource: Resource | undefined =
        builtIn(target) ?? (await viewer.client.discover(target.apiVersion, target.kind))
      const lacking = resource ? await feeds.lacks(viewer, resource) : `the cluster does not serve ${target.kind}`
      if (isClosed || wanted !== id) return
      judged = resource
      missing = lacking
      if (resource && lacking === "") {
        const shared = feeds.fleet(resource)
        const picture = shared.join(viewer).picture(name)
        const unsubscribe = picture.subscribe(place => {
          if (place !== undefined) moved.add(place)
          touch()
        })
        joined = { shared, picture, unsubscribe }
        isFresh = true
      }
    } catch (error) {
      missing = `single objects are not shown: ${String((error as Error).message).slice(0, 200)}`
    }
    touch()
  }

  /** A right that was withdrawn takes the map away, and one that was given brings it. */
  async function review(): Promise<void> {
    const resource = judged
    if (!resource) return
    const lacking = await feeds.lacks(viewer, resource).catch(() => missing)
    if (isClosed || judged !== resource || lacking === missing) return
    missing = lacking
    leave()
    if (lacking === "") wanted = ""
    resend()
  }
  const stopReviews = access.eachReview(() => void review())

  return {
    get picture() {
      return joined?.picture
    },
    get missing() {
      return missing
    },
    get isFresh() {
      return isFresh && (joined?.picture.cells.names.length ?? 0) > 0
    },
    follow(object: KubeObject) {
      const { metadata, spec } = object as unknown as ServiceImage
      const { apiVersion, kind } = spec.target
      const id = `${apiVersion} ${kind}`
      if (wanted === id) return
      wanted = id
      judged = undefined
      leave()
      open(metadata.name, { apiVersion, kind }, id)
    },
    whole() {
      const cells = joined?.picture.cells
      if (!cells || cells.names.length === 0) return undefined
      isFresh = false
      moved.clear()
      known = cells.names.length
      tiers = [...cells.tier]
      return cells
    },
    change(): CellChange | undefined {
      const cells = joined?.picture.cells
      if (!cells || moved.size === 0) return undefined
      const all = [...moved].sort((a, b) => a - b)
      moved.clear()
      const old = all.filter(place => place < known)
      const from = known
      known = cells.names.length
      const states = Map.groupBy(old, place => cells.state[place]!)
      const retiered = old.filter(place => cells.tier[place] !== tiers[place])
      for (const place of all) tiers[place] = cells.tier[place]!
      return {
        tiers: cells.tiers,
        ...(known > from && { namespaces: cells.namespaces }),
        ...(known > from && {
          added: {
            names: cells.names.slice(from),
            namespace: cells.namespace.slice(from),
            tier: cells.tier.slice(from),
            state: cells.state.slice(from),
          },
        }),
        ...(old.length > 0 && {
          moved: [...states].map(([state, places]) => ({ state, places: asDistances(places) })),
        }),
        ...(retiered.length > 0 && {
          retiered: retiered.map((place): [number, number] => [place, cells.tier[place]!]),
        }),
        counts: [...cells.counts],
      }
    },
    close() {
      isClosed = true
      stopReviews()
      leave()
    },
  }
}

const asDistances = (places: readonly number[]) => places.map((place, index) => place - (places[index - 1] ?? 0))
