import { setImmediate as nextTurn } from "node:timers/promises"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { Canary, CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { Canary as CanaryKind } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { validate } from "#api/validate.ts"
import { queryValues as values } from "#core/canary/test-values.ts"
import { createEgress, type EgressOptions, type Rules, readAllowances } from "#egress/index.ts"
import type { Client } from "#runtime/client/client.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { type Clock, systemClock } from "#runtime/clock.ts"
import { roundFor } from "./canary/questions.ts"
import type { Round } from "./measure.ts"
import { createSecrets } from "./secrets.ts"

/** A world without an API server: objects by `namespace/name`, and a checked way out. */
export type JudgingWorld = {
  clock?: Clock
  /** Of an administrator. */
  allow?: readonly string[]
  serviceAt?: Rules["serviceAt"]
  egress?: Pick<EgressOptions, "lookup" | "dial" | "limits" | "trust">
  templates?: Record<string, unknown>
  providers?: Record<string, unknown>
  /** Texts by key. Null: it may not be read. */
  secrets?: Record<string, Record<string, string> | null>
  shared?: readonly string[]
}

export function judgingWorld(world: JudgingWorld = {}) {
  const { clock = systemClock, allow = [], serviceAt = () => undefined } = world
  const ended = new AbortController()
  const enqueued: string[] = []
  const asked: string[] = []
  const client = {
    async get(_: unknown, { namespace, name }: { namespace: string; name: string }) {
      asked.push(`${namespace}/${name}`)
      const found = world.secrets?.[`${namespace}/${name}`]
      if (found === undefined) throw new KubeError("NotFound", "not found")
      if (found === null) throw new KubeError("Forbidden", "forbidden")
      const data = Object.fromEntries(Object.entries(found).map(([key, text]) => [key, btoa(text)]))
      return { metadata: { name, namespace }, data }
    },
  } as unknown as Client
  // biome-ignore lint/suspicious/noExplicitAny: of either kind
  const held = (kind: any, specs: Record<string, unknown> = {}) =>
    new Map(
      Object.entries(specs).map(([key, spec]) => {
        const [namespace, name] = key.split("/")
        return [key, { resourceVersion: "1", object: read(kind, { metadata: { namespace, name }, spec }) }]
      }),
    )
  return {
    wiring: {
      clock,
      signal: ended.signal,
      enqueue: (key: string) => void enqueued.push(key),
    },
    deps: {
      egress: createEgress({ clock, rules: { allowances: readAllowances(allow), serviceAt }, ...world.egress }),
      templates: held(MetricTemplate, world.templates),
      providers: held(AlertProvider, world.providers),
      secrets: createSecrets({ client, clock }),
      sharing: { isShared: async (namespace: string) => (world.shared ?? []).includes(namespace) },
    },
    /** Canaries that were enqueued. */
    enqueued,
    /** Secrets that were read, as `namespace/name`. */
    secretsRead: asked,
    end: () => ended.abort(new Error("the process ends")),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the validator gives the object of its kind
function read(kind: any, object: any): any {
  const { errors, object: valid } = validate(kind, {
    apiVersion: `${kind.group}/${kind.version}`,
    kind: kind.kind,
    ...object,
  })
  if (!valid || errors.length > 0) throw new Error(JSON.stringify(errors))
  return valid
}

export function canaryWith(
  analysis: Partial<CanarySpecInput["analysis"]>,
  more: Partial<CanarySpecInput> = {},
  metadata: Partial<Canary["metadata"]> = {},
): Canary {
  return read(CanaryKind, {
    metadata: { namespace: "shop", name: "web", uid: "u1", generation: 1, ...metadata },
    spec: {
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      service: { port: 80 },
      analysis: { interval: "1m", threshold: 5, stepWeight: 10, ...analysis },
      ...more,
    },
  })
}

export const roundOf = (canary: Canary, { number = 1, ...more }: Partial<Round> & { number?: number } = {}): Round => ({
  ...roundFor(`${canary.metadata.namespace}/${canary.metadata.name}`, canary, {
    runId: "run1",
    number,
    values,
    atThisWeightMs: 3_600_000,
  }),
  ...more,
})

/** What there is in the end. The caller is asked again and again, as the loop asks. */
export async function untilThere<T>(get: () => T | undefined): Promise<T> {
  for (;;) {
    const found = get()
    if (found !== undefined) return found
    await nextTurn()
  }
}
