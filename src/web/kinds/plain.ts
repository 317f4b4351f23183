import { columnsOf } from "#operations/columns.ts"
import { ours, shortOf } from "#operations/kinds.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { shown } from "../text.ts"
import type { PullDetails, Row, View } from "../wire.ts"
import { baseOf, type KindPage, partOf, standingRow } from "./kind.ts"

const views: Partial<Record<string, View>> = {
  ImagePullJob: "pull",
  ImageListPullJob: "pull",
  NodeImage: "pull",
  ContainerRecreateRequest: "recreate",
}

/** The kinds without a page of their own: by their conditions, and for pulls and restarts by their counts. */
export const plainPages = (known: readonly Resource[]): KindPage[] =>
  ours
    .filter(resource => !known.includes(resource))
    .map(resource => ({
      resource,
      view: views[resource.kind] ?? "plain",
      short: shortOf(resource),
      actions: [],
      open: () => ({
        row: (object: KubeObject) => rowOf(object, resource),
        details: (object: KubeObject) => detailsOf(object, views[resource.kind]),
      }),
    }))

const number = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : 0)
const list = (value: unknown) => (Array.isArray(value) ? (value as Record<string, unknown>[]) : [])

function rowOf(object: KubeObject, resource: Resource): Row {
  const [spec, status] = [partOf(object, "spec"), partOf(object, "status")]
  const base = { ...baseOf(object, resource), ...standingRow(object) }
  const columns = columnsOf(resource.kind)
  const view = views[resource.kind]
  if (view === "pull") {
    const fetched = columns.find(({ head }) => head === "FETCHED")?.cell(object) ?? ""
    return {
      ...base,
      view: "pull",
      progress: { done: number(status.succeeded), total: number(status.desired) },
      failed: number(status.failed),
      image: shown(spec.image),
      fetched: shown(fetched),
    }
  }
  if (view === "recreate")
    return {
      ...base,
      view: "recreate",
      pod: shown(spec.podName, 253),
      node: shown(status.nodeName, 253),
      containers: list(spec.containers).map(({ name }) => shown(name, 63)),
    }
  return {
    ...base,
    view: "plain",
    cells: columns.map(({ head, cell }) => ({ head, text: shown(cell(object), 256) })),
  }
}

function detailsOf(object: KubeObject, view: View | undefined) {
  const status = partOf(object, "status")
  if (view === "pull") return { pull: pullsOf(status) }
  if (view === "recreate")
    return {
      recreate: {
        containers: list(status.containerRecreateStates).map(({ name, phase, message }) => ({
          name: shown(name, 63),
          phase: shown(phase, 32),
          message: shown(message),
        })),
      },
    }
  return {}
}

const shownMost = 500

function pullsOf(status: Record<string, unknown>): PullDetails {
  const images = Object.entries((status.imageStatuses ?? {}) as Record<string, { tags?: unknown }>)
  return {
    nodes: list(status.failedNodes)
      .slice(0, shownMost)
      .map(({ name, message }) => ({ name: shown(name, 253), state: "Failed", message: shown(message) })),
    images: [
      ...images.flatMap(([name, { tags }]) =>
        list(tags).map(({ tag, phase, message }) => ({
          image: shown(tag ? `${name}:${tag}` : name),
          state: shown(phase, 32),
          message: shown(message),
        })),
      ),
      ...list(status.failedImageStatuses).map(({ name, message }) => ({
        image: shown(name),
        state: "Failed",
        message: shown(message),
      })),
    ].slice(0, shownMost),
  }
}
