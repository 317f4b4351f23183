import type { SourceDetails, SourceRow } from "#web/wire.ts"
import { Lines } from "../../Overview.tsx"
import { base, feedOf, minutesAgo, now, Scene, type Stories } from "../../stories.tsx"
import { Details } from "./Details.tsx"

const row = (more: Partial<SourceRow> = {}): SourceRow => ({
  ...base("alternateimagesources", "demo", { namespace: "shop" }),
  ...{ view: "source", state: "Ready", containers: 3, switched: 1, incidents: 0 },
  ...more,
})
export const outage = row({
  attention: "Act",
  incidents: 2,
  switched: 1,
  state: "NotReady",
  reason: "NoCandidate",
  message: "1 of 3 containers cannot be pulled from anywhere",
})
const source: SourceDetails = {
  repositories: [{ equivalent: ["quay.io/team/app", "docker.io/team/app", "registry.example.com/mirror/app"] }],
  containers: [
    {
      workload: "deployment/web",
      container: "app",
      from: "docker.io/team/app:1",
      incident: {
        since: minutesAgo(22),
        reason: "Unreachable",
        image: "quay.io/team/app:1",
        failing: "quay.io/team/app",
        working: "docker.io/team/app",
        bad: ["registry.example.com/mirror/app:1"],
        attempts: 2,
        tryAgainAt: now + 95_000,
      },
    },
    {
      workload: "statefulset/db",
      container: "db",
      from: "quay.io/team/db:4",
      incident: {
        since: minutesAgo(3),
        reason: "RateLimited",
        image: "quay.io/team/db:4",
        failing: "quay.io/team/db",
        working: "",
        bad: [],
        attempts: 0,
        tryAgainAt: now - 1000,
      },
    },
  ],
  switches: [
    {
      at: minutesAgo(21),
      workload: "deployment/web",
      container: "app",
      from: "quay.io/team/app:1",
      to: "docker.io/team/app:1",
      reason: "Unreachable",
      pods: 3,
    },
  ],
}
export const feed = feedOf({ row: outage, actions: [], conditions: [], source })
export const stories: Stories = {
  list: () => (
    <Scene>
      <main>
        <Lines
          rows={[
            outage,
            row({ name: "calm", id: "shop/calm", switched: 0, reason: "Watching", message: "3 containers" }),
          ]}
          total={2}
        />
      </main>
    </Scene>
  ),
  outage: () => (
    <Scene>
      <Details feed={feed} />
    </Scene>
  ),
  calm: () => (
    <Scene>
      <Details
        feed={feedOf({ row: row(), actions: [], conditions: [], source: { ...source, containers: [], switches: [] } })}
      />
    </Scene>
  ),
}
