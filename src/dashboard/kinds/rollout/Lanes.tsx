import type { Lane } from "#web/wire.ts"
import { Bar, Image, State, Until } from "../../parts.tsx"
import { useSurroundings } from "../../surroundings.tsx"
import { barOf, grouped, laneNotes } from "../../words.ts"

/** Tiers by priority: those of one priority run together. */
export function Lanes({ lanes }: { lanes: readonly Lane[] }) {
  return (
    <ol class="lanes">
      {lanes.map(lane => (
        <LaneShown lane={lane} key={lane.tier} />
      ))}
    </ol>
  )
}

function LaneShown({ lane }: { lane: Lane }) {
  const { now } = useSurroundings()
  const { done, failed, busy } = barOf(lane)
  const notes = laneNotes(lane, now.value)
  return (
    <li class={`lane ${lane.isCurrent && lane.state !== "Complete" ? "current" : ""}`}>
      <span class="priority" title={`priority ${lane.priority}`}>
        <span class="hidden">priority </span>
        {lane.priority}
      </span>
      <span class="lane-name">
        <b>{lane.title}</b>
        <small class="clip">
          <Image image={lane.image} />
        </small>
      </span>
      <span class="lane-bar">
        <Bar
          parts={[
            { share: done, tone: "good" },
            { share: busy, tone: "busy" },
            { share: failed, tone: "bad" },
          ]}
          ticks={lane.steps.map(({ percent }) => percent)}
        />
        <Steps lane={lane} />
      </span>
      <span class="numbers">
        {grouped(lane.upToDate)}/{grouped(lane.total)}
        <small class="dim">
          {lane.updated > lane.upToDate ? `${grouped(lane.updated - lane.upToDate)} under way` : "up to date"}
        </small>
      </span>
      <span class="lane-state">
        <State
          state={lane.approval === "Awaited" ? "Waits for approval" : lane.state}
          {...(lane.approval === "Awaited" && { tone: "warn" })}
        />
        {notes.length > 0 && (
          <small class="dim">{notes.filter(note => note !== "waits for approval").join(", ")}</small>
        )}
        {lane.message && lane.state !== "Complete" && (
          <small class="dim clip" title={lane.message}>
            {lane.message}
          </small>
        )}
        {lane.analysis && (
          <small class="dim">
            analysis: {lane.analysis.verdict}
            {lane.analysis.message && `, ${lane.analysis.message}`}
          </small>
        )}
      </span>
    </li>
  )
}

/** The cohorts of a tier: each step takes in the ones before it. */
function Steps({ lane: { steps, soaksUntil } }: { lane: Lane }) {
  if (steps.length < 2) return null
  return (
    <ol class="steps" aria-label="Steps">
      {steps.map(({ percent, state, cohort, soakSeconds }) => (
        <li class={`step ${state.toLowerCase()}`} aria-current={state === "Current" ? "step" : undefined}>
          <span aria-hidden="true">{state === "Done" ? "✓" : state === "Current" ? "▸" : "·"}</span> {percent} %
          {cohort && state === "Current" && ` ${grouped(cohort.done)}/${grouped(cohort.total)}`}
          {cohort && cohort.failed > 0 && `, ${grouped(cohort.failed)} failed`}
          {state === "Current" && soaksUntil !== undefined && (
            <>
              {" "}
              soaking, <Until at={soaksUntil} />
            </>
          )}
          {state === "Later" &&
            soakSeconds > 0 &&
            ` then soaks ${soakSeconds >= 60 ? `${Math.round(soakSeconds / 60)} min` : `${soakSeconds} s`}`}
        </li>
      ))}
    </ol>
  )
}
