import type { PullRow } from "#web/wire.ts"
import { Lines } from "../../Overview.tsx"
import { base, feedOf, Scene, type Stories } from "../../stories.tsx"
import { Details } from "./Details.tsx"

export const row: PullRow = {
  ...base("imagepulljobs", "db", { namespace: "shop", reason: "Pulling", message: "1 of 3 nodes has the image" }),
  ...{
    view: "pull",
    state: "NotReady",
    progress: { done: 1, total: 3 },
    failed: 1,
    image: "shop/db:4",
    fetched: "310 MiB of 1.2 GiB",
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
  pulling: () => (
    <Scene>
      <Details
        feed={feedOf({
          row,
          actions: [],
          conditions: [],
          pull: {
            nodes: [
              { name: "node-1", state: "Pulled", message: "" },
              { name: "node-2", state: "Pulling", message: "310 MiB of 1.2 GiB" },
              { name: "node-3", state: "Failed", message: "manifest unknown" },
            ],
            images: [],
          },
        })}
      />
    </Scene>
  ),
}
