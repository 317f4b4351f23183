import type { WorkloadRow } from "#web/wire.ts"
import { Lines } from "../../Overview.tsx"
import { base, feedOf, minutesAgo, Scene, type Stories } from "../../stories.tsx"
import { Details } from "./Details.tsx"

export const row: WorkloadRow = {
  ...base("deployments", "api", { namespace: "shop", reason: "Updating", message: "2 of 3 pods have the template" }),
  ...{
    view: "workload",
    state: "InProgress",
    progress: { done: 2, total: 3 },
    images: "shop/api:7",
    strategy: "InPlaceIfPossible",
  },
}
const pod = (name: string, more: object = {}) => ({
  name,
  node: "node-1",
  isReady: true,
  state: "Updated",
  why: "",
  images: ["shop/api:7"],
  changedAt: minutesAgo(2),
  ...more,
})
export const stories: Stories = {
  list: () => (
    <Scene>
      <main>
        <Lines rows={[row]} total={1} />
      </main>
    </Scene>
  ),
  updating: () => (
    <Scene>
      <Details
        feed={feedOf({
          row,
          actions: [],
          conditions: [],
          workload: {
            operation: "u-3",
            pods: [
              pod("api-0"),
              pod("api-1"),
              pod("api-2", { isReady: false, state: "Pulling", why: "waits for the image on its node" }),
            ],
          },
        })}
      />
    </Scene>
  ),
}
