import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { alternateImageSources } from "#operations/kinds.ts"
import { sourceOf } from "#operations/source.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { shown, timed } from "../text.ts"
import type { SourceDetails, SourceRow } from "../wire.ts"
import { baseOf, type KindPage, standingRow } from "./kind.ts"

export const alternateImageSourcePage: KindPage = {
  resource: alternateImageSources,
  view: "source",
  short: "ais",
  actions: [],
  open: () => ({
    row: object => rowOf(object),
    details: object => ({ source: detailsOf(object) }),
  }),
}

function rowOf(object: KubeObject): SourceRow {
  const { status } = object as unknown as AlternateImageSource
  const { switches } = sourceOf(object as unknown as AlternateImageSource)
  const standing = standingRow(object)
  const incidents = status?.incidents ?? 0
  return {
    ...baseOf(object, alternateImageSources),
    ...standing,
    view: "source",
    attention: standing.attention === "None" && incidents > 0 ? "Look" : standing.attention,
    containers: status?.targets ?? 0,
    switched: status?.switched ?? 0,
    incidents,
    ...timed("lastSwitchAt", switches[0]?.time),
  }
}

function detailsOf(object: KubeObject): SourceDetails {
  const { spec } = object as unknown as AlternateImageSource
  const { astray, switches } = sourceOf(object as unknown as AlternateImageSource)
  return {
    repositories: (spec.imageSourceReplacements ?? []).map(({ equivalentRepositories = [] }) => ({
      equivalent: equivalentRepositories.map(each => shown(each)),
    })),
    containers: astray.map(({ target, container, from, incident }) => ({
      workload: shown(target),
      container: shown(container, 63),
      from: shown(from),
      ...(incident && {
        incident: {
          ...timed("since", incident.since),
          reason: shown(incident.reason, 64),
          image: shown(incident.image),
          failing: shown(incident.failing),
          working: shown(incident.working),
          bad: (incident.bad ?? []).map(each => shown(each)),
          attempts: incident.attempts ?? 0,
          ...timed("tryAgainAt", incident.tryAgainAt),
          ...timed("healthySince", incident.healthySince),
        },
      }),
    })),
    switches: switches.map(({ time, target, container, oldImage, newImage, reason, pods }) => ({
      ...timed("at", time),
      workload: shown(target),
      container: shown(container, 63),
      from: shown(oldImage),
      to: shown(newImage),
      reason: shown(reason, 64),
      ...(pods !== undefined && { pods }),
    })),
  }
}
