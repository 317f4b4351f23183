import { DetailsFrame } from "../../DetailsFrame.tsx"
import type { Feed } from "../../feeds.ts"
import { History } from "../../History.tsx"
import { Conditions, Section } from "../../parts.tsx"
import { counted, grouped } from "../../words.ts"
import { Failures } from "./Failures.tsx"
import { Lanes } from "./Lanes.tsx"
import { Objects } from "./Objects.tsx"

export function Details({ feed }: { feed: Feed }) {
  const { details, cells } = feed
  const rollout = details?.rollout
  const row = details?.row.view === "rollout" ? details.row : undefined
  const { rate } = row?.progress ?? {}
  return (
    <DetailsFrame
      feed={feed}
      facts={
        row && (
          <>
            {rollout?.operation && `, operation ${rollout.operation.id}`}
            {rollout?.operation?.cause && ` (${rollout.operation.cause})`}
            {row.target && `, ${row.target}`}
          </>
        )
      }
    >
      {row && (
        <p class="big">
          <b>{grouped(row.progress.done)}</b> of {counted(row.progress.total, "object")} up to date
          {rate && <span class="dim"> · {[rate.words, rate.leftWords].filter(Boolean).join(" · ")}</span>}
        </p>
      )}
      {rollout && rollout.lostPods > 0 && (
        <p class="notice warn">
          {counted(rollout.lostPods, "pod")} on nodes that no longer answer may still run another image.
        </p>
      )}
      {rollout && (
        <Section title="Tiers">
          <Lanes lanes={rollout.lanes} />
        </Section>
      )}
      {rollout && <Failures lanes={rollout.lanes} />}
      {rollout?.mapMissing && <p class="notice calm">{rollout.mapMissing}</p>}
      {rollout && cells && <Objects cells={cells} order={feed.order} lanes={rollout.lanes} />}
      {details?.history && <History entries={details.history} />}
      {details && <Conditions conditions={details.conditions} />}
    </DetailsFrame>
  )
}
