import { signal } from "@preact/signals"
import type { Row } from "#web/wire.ts"
import { App } from "./App.tsx"
import type { Address } from "./address.ts"
import { detailsFeed, type Feed, listFeed } from "./feeds.ts"
import { row as canary } from "./kinds/canary/stories.tsx"
import { row as pull } from "./kinds/pull/stories.tsx"
import { halted, object, rows as rollouts } from "./kinds/rollout/stories.tsx"
import { outage, feed as source } from "./kinds/source/stories.tsx"
import { row as workload } from "./kinds/workload/stories.tsx"
import { SignIn } from "./SignIn.tsx"
import { listOf, type Stories, surroundingsOf } from "./stories.tsx"

const lists = Object.groupBy<string, Row>([...rollouts, outage, canary, pull, workload], ({ kind }) => kind)
const feeds = new Map<string, Feed>([
  ...Object.entries(lists).map(([kind, rows = []]): [string, Feed] => [listFeed(kind), listOf(rows)]),
  [detailsFeed(object), halted],
  [detailsFeed(outage), source],
])

const Whole = ({ address = {} }: { address?: Partial<Address> }) => (
  <App
    surroundings={surroundingsOf({ address })}
    feedNamed={name => feeds.get(name)}
    freshness={signal({ silentSeconds: 0, asOf: 0, message: "" })}
    unknown={signal([])}
  />
)

/** The page as a whole; these are also the pictures of the docs. */
export const stories: Stories = {
  overview: () => <Whole />,
  halted: () => <Whole address={{ object, selected: "shop/dicom-136" }} />,
  outage: () => <Whole address={{ object: outage }} />,
  "sign in by key": () => (
    <SignIn answer={{ error: "KeyExpired", message: "this address is older than a minute; get another" }} />
  ),
  "sign in by token": () => (
    <SignIn answer={{ error: "NeedsToken", message: "sign in with a token of the cluster" }} onToken={() => {}} />
  ),
  "sign in at the proxy": () => (
    <SignIn
      answer={{ error: "NeedsToken", message: "the proxy in front of this server sent no token: sign in there" }}
    />
  ),
  "unknown kind": () => <Whole address={{ object: { ...object, kind: "nothings" } }} />,
}
