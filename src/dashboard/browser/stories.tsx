import { render } from "preact"
import { stories as canary } from "../kinds/canary/stories.tsx"
import { stories as plain } from "../kinds/plain/stories.tsx"
import { stories as pull } from "../kinds/pull/stories.tsx"
import { stories as recreate } from "../kinds/recreate/stories.tsx"
import { stories as rollout } from "../kinds/rollout/stories.tsx"
import { stories as source } from "../kinds/source/stories.tsx"
import { stories as workload } from "../kinds/workload/stories.tsx"
import { stories as page } from "../page-stories.tsx"

const all = { page, rollout, source, canary, workload, pull, recreate, plain }
const named = new Map(
  Object.entries(all).flatMap(([kind, stories]) =>
    Object.entries(stories).map(([name, story]) => [`${kind}: ${name}`, story]),
  ),
)

const wanted = new URLSearchParams(location.search).get("story")
const Story = named.get(wanted ?? "")
const index = (
  <main>
    <h1>Stories</h1>
    <ul>
      {[...named.keys()].map(name => (
        <li>
          <a href={`?story=${encodeURIComponent(name)}`}>{name}</a>
        </li>
      ))}
    </ul>
  </main>
)
document.title = wanted ?? "Stories"
render(Story ? <Story /> : index, document.getElementById("page")!)
