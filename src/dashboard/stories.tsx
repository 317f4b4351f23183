import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import type {
  Acted,
  ActionName,
  CellState,
  Cells,
  Details,
  KindInfo,
  Lane,
  Preview,
  Row,
  RowBase,
  Session,
  Why,
} from "#web/wire.ts"
import { type Address, overviewAddress } from "./address.ts"
import { type Api, Refusal } from "./client.ts"
import type { Feed } from "./feeds.ts"
import { type Surroundings, SurroundingsProvider } from "./surroundings.tsx"

/** A part of the page in one state, drawn without a server. */
export type Story = () => ComponentChildren
export type Stories = Record<string, Story>

/** The time in every story. */
export const now = Date.UTC(2026, 0, 31, 12, 0, 0)
export const minutesAgo = (minutes: number) => now - minutes * 60_000

const actions: ActionName[] = ["approve", "pause", "resume", "rollback", "set-image"]
const kind = (id: string, kind: string, short: string, view: KindInfo["view"], isNamespaced = true): KindInfo => ({
  ...{ id, kind, short, view, isNamespaced },
  actions: view === "rollout" || view === "canary" ? actions : [],
})

const session: Session = {
  session: "story",
  program: "aim",
  version: "0.1.0",
  cluster: "https://cluster.example.com",
  user: "operator@example.com",
  operates: true,
  whyNot: "",
  kinds: [
    kind("serviceimages", "ServiceImage", "si", "rollout", false),
    kind("alternateimagesources", "AlternateImageSource", "ais", "source"),
    kind("canaries", "Canary", "canary", "canary"),
    kind("deployments", "Deployment", "deploy", "workload"),
    kind("imagepulljobs", "ImagePullJob", "ipj", "pull"),
    kind("containerrecreaterequests", "ContainerRecreateRequest", "crr", "recreate"),
    kind("metrictemplates", "MetricTemplate", "mt", "plain"),
  ],
}

export const preview: Preview = {
  isPossible: true,
  lines: ["si/dicom-prod: operation g5 would be rolled back: 412 objects return to dicom-service:v2"],
  next: ["412 objects of tier earlyAccess go first, then the default tier (588 objects)."],
  plan: ["1  tier earlyAccess   412 objects   dicom-service:v2", "2  default tier       0 objects"],
  isChange: true,
  dryRun: { isAccepted: true, message: "" },
  command: "aim rollback si/dicom-prod",
  decision: "1",
}

export const why: Why = {
  title: "dicom shop/dicom-017",
  reason: "CrashLoop",
  sentences: [
    "It has dicom-service:v3, and its pod dicom-017-0 has crashed 4 times since.",
    "The last message of the container: cannot open /var/lib/dicom: permission denied.",
  ],
  since: minutesAgo(4),
  serviceImage: "dicom-prod",
  tier: { name: "earlyAccess", priority: 1, step: 25 },
  lastDecision: {
    ...{ at: minutesAgo(6), by: "ServiceImage dicom-prod", operation: "g5", reason: "RollingOut" },
    ...{ from: "registry.example.com/dicom-service:v2", to: "registry.example.com/dicom-service:v3" },
  },
  command: "aim why dicom/dicom-017 -n shop",
  missing: [],
}

const acted: Acted = { isDone: true, lines: ["si/dicom-prod is being rolled back"], next: [], command: preview.command }
const storyApi: Api = {
  why: async () => why,
  preview: async () => preview,
  act: async () => acted,
}

type Setting = { address?: Partial<Address>; session?: Partial<Session>; api?: Partial<Api>; isLive?: boolean }

/** What the page would have around it, at this address. */
export function surroundingsOf(setting: Setting): Surroundings {
  const address = signal<Address>({ ...overviewAddress, ...setting.address })
  return {
    session: { ...session, ...setting.session },
    api: { ...storyApi, ...setting.api },
    now: signal(now),
    isLive: signal(setting.isLive ?? true),
    address,
    go: next => {
      address.value = next
    },
  }
}

/** Draws `children` as the page would. */
export function Scene({ children, ...setting }: Setting & { children: ComponentChildren }) {
  return <SurroundingsProvider value={surroundingsOf(setting)}>{children}</SurroundingsProvider>
}

export const refusing = async () => {
  throw new Refusal({
    error: "Conflict",
    message: "si/dicom-prod kept changing (10 conflicts)",
    done: "Nothing was changed; try again.",
  })
}

export const base = (kind: string, name: string, more: Partial<RowBase> = {}): RowBase => ({
  ...{ kind, name, namespace: "", id: more.namespace ? `${more.namespace}/${name}` : name, attention: "None" },
  ...{ state: "", reason: "", message: "", since: minutesAgo(12) },
  ...more,
})

export const feedOf = (details: Details, more: Partial<Feed> = {}): Feed => ({
  head: { isReady: true, scope: "All", namespaces: [], scopeMessage: "" },
  rows: new Map(),
  details,
  order: 1,
  ...more,
})

export const listOf = (rows: readonly Row[], more: Partial<Feed> = {}): Feed => ({
  head: { isReady: true, scope: "All", namespaces: [], scopeMessage: "" },
  rows: new Map(rows.map(row => [row.id, row])),
  order: 1,
  ...more,
})

export const lane = (tier: string, more: Partial<Lane>): Lane => ({
  ...{ tier, title: tier === "" ? "default tier" : `tier ${tier}`, priority: 0, proven: "" },
  ...{ image: "registry.example.com/dicom-service:v3", state: "Waiting", total: 0, updated: 0, upToDate: 0 },
  ...{ unmanaged: 0, ignoredFailures: 0, isCurrent: false, steps: [], approval: "NotNeeded", failures: [] },
  ...{ reason: "", message: "" },
  ...more,
})

const states: CellState[] = [
  ...(["Gone", "UpToDate", "Settling", "Updating", "Waiting", "Blank"] as const),
  ...(["Failing", "Failed", "Regressed", "Unmanaged", "Unmatched"] as const),
]

/** Cells of these tiers: so many of each state, one after the other, in four namespaces. */
export function cellsOf(tiers: Record<string, Partial<Record<CellState, number>>>): Cells {
  const cells: Cells = {
    ...{ kind: "Dicom", states, tiers: Object.keys(tiers), namespaces: ["shop", "clinic", "lab", "archive"] },
    ...{ names: [], namespace: [], tier: [], state: [], counts: states.map(() => 0) },
  }
  for (const [tier, counts] of Object.entries(tiers).entries())
    for (const [state, count] of Object.entries(counts[1]))
      for (let each = 0; each < count; each++) {
        const place = cells.names.length
        cells.names.push(`dicom-${String(place).padStart(3, "0")}`)
        cells.namespace.push(place % 4)
        cells.tier.push(tier)
        const number = states.indexOf(state as CellState)
        cells.state.push(number)
        cells.counts[number]!++
      }
  return cells
}
