import type { PlainRow } from "#web/wire.ts"
import { Lines } from "../../Overview.tsx"
import { base, feedOf, minutesAgo, Scene, type Stories, why } from "../../stories.tsx"
import { Details } from "./Details.tsx"

const row: PlainRow = {
  ...base("metrictemplates", "latency", { namespace: "shop", reason: "Usable", message: "the service answers" }),
  ...{
    view: "plain",
    state: "Ready",
    cells: [
      { head: "PROVIDER", text: "prometheus" },
      { head: "AGE", text: "4d" },
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
  ready: () => (
    <Scene>
      <Details
        feed={feedOf({
          row,
          actions: [],
          why,
          conditions: [
            { type: "Ready", status: "True", reason: "Usable", message: "the service answers", since: minutesAgo(90) },
          ],
        })}
      />
    </Scene>
  ),
}
