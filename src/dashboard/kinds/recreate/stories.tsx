import type { RecreateRow } from "#web/wire.ts"
import { Lines } from "../../Overview.tsx"
import { base, feedOf, Scene, type Stories } from "../../stories.tsx"
import { Details } from "./Details.tsx"

const row: RecreateRow = {
  ...base("containerrecreaterequests", "restart-1", {
    namespace: "shop",
    reason: "Recreating",
    message: "1 of 2 containers restarted",
  }),
  ...{ view: "recreate", state: "NotReady", pod: "api-0", node: "node-1", containers: ["app", "proxy"] },
}
export const stories: Stories = {
  list: () => (
    <Scene>
      <main>
        <Lines rows={[row]} total={1} />
      </main>
    </Scene>
  ),
  recreating: () => (
    <Scene>
      <Details
        feed={feedOf({
          row,
          actions: [],
          conditions: [],
          recreate: {
            containers: [
              { name: "app", phase: "Succeeded", message: "" },
              { name: "proxy", phase: "Recreating", message: "" },
            ],
          },
        })}
      />
    </Scene>
  ),
}
