import type { CanaryRow, Details as DetailsData } from "#web/wire.ts"
import { Lines } from "../../Overview.tsx"
import { base, feedOf, minutesAgo, Scene, type Stories } from "../../stories.tsx"
import { Details } from "./Details.tsx"

export const row: CanaryRow = {
  ...base("canaries", "web", { namespace: "shop", reason: "Progressing", message: "weight 30, 1 check failed" }),
  ...{ view: "canary", state: "NotReady", phase: "Progressing", target: "Deployment/web", weight: 30, failedChecks: 1 },
  ...{ threshold: 5, images: { from: "shop/web:1.4", to: "shop/web:1.5" }, awaitsApproval: false },
}
const at = Array.from({ length: 40 }, (_, index) => minutesAgo(40 - index))
const details: DetailsData = {
  row,
  actions: [
    { action: "approve", isEnabled: false, why: "No gate waits for a person." },
    { action: "rollback", isEnabled: true, why: "" },
  ],
  conditions: [{ type: "Ready", status: "False", reason: "Progressing", message: "", since: minutesAgo(9) }],
  canary: {
    phase: "Progressing",
    run: {
      ...{
        id: "r2",
        startedAt: minutesAgo(9),
        full: 100,
        weight: 30,
        weightSince: minutesAgo(1),
        next: 40,
        isMirrored: false,
      },
      ...{ iterations: 0, failedChecks: 1, threshold: 5 },
      source: { hash: "aaa", image: "shop/web:1.4", pods: 6 },
      target: { hash: "bbb", image: "shop/web:1.5", pods: 3 },
      metrics: [
        {
          name: "request-success-rate",
          verdict: "Passed",
          value: "99.6",
          message: "at least 99",
          count: 8,
          at: minutesAgo(0.5),
        },
        {
          name: "request-duration",
          verdict: "Failed",
          value: "612",
          message: "at most 500",
          count: 1,
          at: minutesAgo(0.5),
        },
      ],
      gates: [
        {
          type: "confirm-promotion",
          name: "promotion",
          state: "Open",
          message: "",
          approvedBy: "operator@example.com",
          since: minutesAgo(2),
        },
      ],
    },
    curves: [
      { metric: "", at, value: at.map((_, index) => Math.min(30, Math.floor(index / 10) * 10)) },
      { metric: "request-success-rate", at, value: at.map((_, index) => 99 + Math.sin(index / 3) * 0.6) },
    ],
  },
}
export const stories: Stories = {
  list: () => (
    <Scene>
      <main>
        <Lines rows={[row]} total={1} />
      </main>
    </Scene>
  ),
  progressing: () => (
    <Scene>
      <Details feed={feedOf(details)} />
    </Scene>
  ),
  "at rest": () => (
    <Scene>
      <Details
        feed={feedOf({
          ...details,
          row: { ...row, state: "Ready", phase: "Initialized", weight: 0 },
          canary: { phase: "Initialized", curves: [] },
        })}
      />
    </Scene>
  ),
}
