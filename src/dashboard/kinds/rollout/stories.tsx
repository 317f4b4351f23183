import type { ActionState, Details as DetailsData, HistoryEntry, Lane, RolloutRow } from "#web/wire.ts"
import { ActionDialog } from "../../ActionDialog.tsx"
import { StaleBanner } from "../../App.tsx"
import { Overview } from "../../Overview.tsx"
import {
  base,
  cellsOf,
  feedOf,
  lane,
  listOf,
  minutesAgo,
  now,
  preview,
  refusing,
  Scene,
  type Stories,
} from "../../stories.tsx"
import { Details } from "./Details.tsx"

const v2 = "registry.example.com/dicom-service:v2"
const v3 = "registry.example.com/dicom-service:v3"
const rate = { perMinute: 42, words: "42 a minute", msLeft: 840_000, leftWords: "about 14 min left" }

const row = (name: string, state: RolloutRow["state"], more: Partial<RolloutRow> = {}): RolloutRow => ({
  ...base("serviceimages", name),
  ...{
    view: "rollout",
    state,
    target: "Dicom",
    image: v3,
    progress: { done: 0, total: 1000 },
    tiers: 2,
    currentPriority: 1,
  },
  ...{ awaitsApproval: false, operation: "g5", startedAt: minutesAgo(12) },
  ...more,
})

export const rows: RolloutRow[] = [
  row("archive", "Complete", {
    progress: { done: 240, total: 240 },
    reason: "AllUpToDate",
    message: "240 of 240 objects are up to date",
    since: minutesAgo(1500),
  }),
  row("dicom-prod", "InProgress", {
    progress: { done: 412, total: 1000, rate },
    reason: "RollingOut",
    message: "tier earlyAccess: 412 of 1000 up to date",
  }),
  row("billing", "Halted", {
    attention: "Act",
    progress: { done: 3, total: 120 },
    reason: "AllFailed",
    message: "tier canary: all 3 objects of the step fail with CrashLoop",
  }),
  row("viewer", "Waiting", {
    attention: "Act",
    awaitsApproval: true,
    progress: { done: 50, total: 400 },
    reason: "AwaitingApproval",
    message: "the default tier waits for approval",
  }),
  row("gateway", "Degraded", {
    attention: "Look",
    progress: { done: 38, total: 40 },
    reason: "Degraded",
    message: "2 objects have lost their health since",
  }),
  row("worker", "Paused", { progress: { done: 10, total: 60 }, message: "spec.paused is true" }),
  row("broken", "NotSeenYet", { unreadable: "spec.tiers[0].priority: expected a number, not a text" }),
]

const actions = (...enabled: ActionState["action"][]): ActionState[] =>
  (["approve", "pause", "resume", "rollback", "set-image"] as const).map(action => ({
    action,
    isEnabled: enabled.includes(action),
    why: enabled.includes(action) ? "" : `There is nothing to ${action} now.`,
  }))

const history: HistoryEntry[] = [
  {
    id: "g5",
    outcome: "InProgress",
    startedAt: minutesAgo(12),
    isRunning: true,
    total: 1000,
    upToDate: 412,
    failed: 3,
    cause: "spec changed",
    images: [{ of: "", image: v3 }],
    differences: [{ of: "default tier", from: v2, to: v3, parts: ["Tag"] }],
  },
  {
    id: "g4",
    outcome: "Complete",
    startedAt: minutesAgo(4000),
    endedAt: minutesAgo(3950),
    isRunning: false,
    total: 990,
    upToDate: 990,
    failed: 0,
    cause: "",
    images: [{ of: "", image: v2 }],
    differences: [
      {
        of: "default tier",
        from: "registry.example.com/dicom-service:v1@sha256:0123456789abcdef0123",
        to: v2,
        parts: ["Tag", "Digest"],
      },
    ],
  },
  {
    id: "g3",
    outcome: "RolledBack",
    startedAt: minutesAgo(9000),
    endedAt: minutesAgo(8990),
    isRunning: false,
    total: 950,
    upToDate: 0,
    failed: 12,
    cause: "onFailure: Rollback",
    images: [{ of: "", image: v2 }],
    differences: [],
  },
]

const steps: Lane["steps"] = [
  { percent: 1, soakSeconds: 600, state: "Done", cohort: { total: 4, done: 4, failed: 0 } },
  { percent: 25, soakSeconds: 900, state: "Current", cohort: { total: 100, done: 100, failed: 0 } },
  { percent: 100, soakSeconds: 0, state: "Later" },
]

const going = [
  lane("internal", { priority: 2, state: "Complete", total: 40, updated: 40, upToDate: 40 }),
  lane("earlyAccess", {
    priority: 1,
    state: "InProgress",
    isCurrent: true,
    total: 400,
    updated: 372,
    upToDate: 352,
    unmanaged: 4,
    rate,
  }),
  lane("", { state: "Waiting", total: 560, upToDate: 20, updated: 20, image: v2, approval: "Needed" }),
]
const goingCells = cellsOf({
  internal: { UpToDate: 40 },
  earlyAccess: { UpToDate: 330, Settling: 22, Updating: 16, Failing: 4, Waiting: 24, Unmanaged: 4 },
  "": { UpToDate: 20, Waiting: 530, Blank: 10 },
})

const failing = lane("earlyAccess", {
  ...{
    priority: 1,
    state: "Halted",
    isCurrent: true,
    total: 400,
    updated: 112,
    upToDate: 96,
    reason: "AllFailed",
    steps,
  },
  message: "all objects of the step fail",
  failures: [
    {
      reason: "CrashLoop",
      meaning: "Containers start and end again and again.",
      scope: "All",
      count: 14,
      message: "cannot open /var/lib/dicom: permission denied",
      examples: ["shop/dicom-096", "clinic/dicom-097", "lab/dicom-098"],
    },
    {
      reason: "ImagePullFailed",
      meaning: "The image cannot be pulled.",
      scope: "Partial",
      count: 2,
      message: "manifest unknown",
      examples: ["archive/dicom-099"],
    },
  ],
})

const details = (more: Partial<RolloutRow>, lanes: Lane[], enabled: ActionState["action"][]): DetailsData => ({
  row: row("dicom-prod", "InProgress", {
    progress: { done: 412, total: 1000, rate },
    reason: "RollingOut",
    message: "tier earlyAccess: 352 of 400 up to date",
    ...more,
  }),
  actions: actions(...enabled),
  conditions: [
    {
      type: "Ready",
      status: "False",
      reason: "RollingOut",
      message: "tier earlyAccess: 352 of 400 up to date",
      since: minutesAgo(12),
    },
    { type: "Stalled", status: "False", reason: "RollingOut", message: "", since: minutesAgo(4000) },
  ],
  rollout: {
    lanes,
    unmatched: 0,
    lostPods: 0,
    isPaused: false,
    operation: { id: "g5", phase: "InProgress", startedAt: minutesAgo(12) },
  },
  history,
})

const inProgress = feedOf(details({}, going, ["pause", "rollback", "set-image"]), { cells: goingCells })
export const halted = feedOf(
  details(
    {
      state: "Halted",
      attention: "Act",
      reason: "AllFailed",
      message: "tier earlyAccess: all 14 objects of the step fail with CrashLoop",
      progress: { done: 136, total: 1000 },
    },
    [going[0]!, failing, going[2]!],
    ["rollback", "set-image"],
  ),
  {
    cells: cellsOf({
      internal: { UpToDate: 40 },
      earlyAccess: { UpToDate: 96, Failed: 14, Failing: 2, Waiting: 288 },
      "": { Waiting: 560 },
    }),
  },
)
export const object = { kind: "serviceimages", namespace: "", name: "dicom-prod" }
const dialogFor = { object, lanes: going, onClose: () => {} }

export const stories: Stories = {
  overview: () => (
    <Scene>
      <Overview feeds={[{ kind: "serviceimages", feed: listOf(rows) }]} />
    </Scene>
  ),
  "overview, two hundred": () => (
    <Scene>
      <Overview
        feeds={[
          {
            kind: "serviceimages",
            feed: listOf(
              Array.from({ length: 200 }, (_, at) =>
                row(`service-${at}`, at % 9 === 0 ? "Halted" : "InProgress", {
                  attention: at % 9 === 0 ? "Act" : "None",
                  progress: { done: at * 3, total: 600, rate },
                }),
              ),
            ),
          },
        ]}
      />
    </Scene>
  ),
  "overview, one namespace": () => (
    <Scene session={{ operates: false, whyNot: "Started without --operate: nothing can be changed from here." }}>
      <Overview
        feeds={[
          {
            kind: "serviceimages",
            feed: listOf([], {
              head: {
                isReady: true,
                scope: "Some",
                namespaces: ["shop"],
                scopeMessage: "You see the namespace shop; you may not list others.",
              },
            }),
          },
        ]}
      />
    </Scene>
  ),
  "overview, not installed": () => (
    <Scene>
      <Overview
        feeds={[
          {
            kind: "serviceimages",
            feed: listOf([], {
              head: {
                isReady: true,
                scope: "None",
                namespaces: [],
                scopeMessage: "",
                problem: {
                  reason: "NotInstalled",
                  message: "The cluster does not have the kind ServiceImage.",
                  command: "aim manifests crds | kubectl apply -f -",
                },
              },
            }),
          },
        ]}
      />
    </Scene>
  ),
  "in progress": () => (
    <Scene>
      <Details feed={inProgress} />
    </Scene>
  ),
  "in progress, as a list": () => (
    <Scene address={{ show: "list", cells: { states: ["Failing"], namespace: "", name: "" } }}>
      <Details feed={inProgress} />
    </Scene>
  ),
  halted: () => (
    <Scene address={{ selected: "shop/dicom-136" }}>
      <Details feed={halted} />
    </Scene>
  ),
  "soaking, then approval": () => (
    <Scene>
      <Details
        feed={feedOf(
          details(
            { reason: "Soaking", message: "tier earlyAccess: 100 of 400 up to date" },
            [
              lane("earlyAccess", {
                priority: 1,
                state: "InProgress",
                isCurrent: true,
                total: 400,
                updated: 100,
                upToDate: 100,
                steps,
                soaksUntil: now + 750_000,
              }),
              lane("", { total: 560, approval: "Awaited", message: "waits for aim approve" }),
            ],
            ["approve", "pause"],
          ),
        )}
      />
    </Scene>
  ),
  "silent, read-only": () => (
    <Scene
      isLive={false}
      session={{ operates: false, whyNot: "Started without --operate: nothing can be changed from here." }}
    >
      <StaleBanner freshness={{ silentSeconds: 34, asOf: minutesAgo(1), message: "the server ended the stream" }} />
      <Details feed={inProgress} />
    </Scene>
  ),
  "not found": () => (
    <Scene>
      <Details
        feed={{
          ...listOf([]),
          head: {
            isReady: true,
            scope: "All",
            namespaces: [],
            scopeMessage: "",
            problem: { reason: "NotFound", message: "There is no ServiceImage dicom-prd.", meant: "dicom-prod" },
          },
        }}
      />
    </Scene>
  ),
  deleted: () => (
    <Scene>
      <Details feed={{ ...inProgress, head: { ...inProgress.head, isDeleted: true } }} />
    </Scene>
  ),
  "dialog, roll back": () => (
    <Scene>
      <ActionDialog action="rollback" {...dialogFor} />
    </Scene>
  ),
  "dialog, it moved": () => (
    <Scene api={{ act: async () => ({ isDone: false, moved: ["37 more objects have the new image."], preview }) }}>
      <ActionDialog action="rollback" {...dialogFor} />
    </Scene>
  ),
  "dialog, refused": () => (
    <Scene api={{ preview: refusing }}>
      <ActionDialog action="pause" {...dialogFor} />
    </Scene>
  ),
  "dialog, set image": () => (
    <Scene>
      <ActionDialog action="set-image" {...dialogFor} />
    </Scene>
  ),
  "map, ten thousand": () => (
    <Scene>
      <Details
        feed={feedOf(details({}, going, ["pause"]), {
          cells: cellsOf({
            internal: { UpToDate: 200 },
            earlyAccess: { UpToDate: 3100, Settling: 150, Updating: 200, Failing: 40, Failed: 10 },
            "": { Waiting: 6200, Blank: 60, Unmanaged: 40 },
          }),
        })}
      />
    </Scene>
  ),
  "map, hostile names": () => (
    <Scene address={{ selected: "shop/<img src=x onerror=alert(1)>" }}>
      <Details
        feed={feedOf(details({ name: "<script>alert(1)</script>", message: '<b>bold</b> & "quoted"' }, going, []), {
          cells: { ...cellsOf({ "": { Failed: 1 } }), names: ["<img src=x onerror=alert(1)>"] },
        })}
      />
    </Scene>
  ),
}
