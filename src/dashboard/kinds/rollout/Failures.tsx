import type { Lane } from "#web/wire.ts"
import { Section } from "../../parts.tsx"
import { useSurroundings } from "../../surroundings.tsx"
import { counted } from "../../words.ts"

/** What fails, why, how widely, and with which examples: each leads to its `why`. */
export function Failures({ lanes }: { lanes: readonly Lane[] }) {
  const { address, go } = useSurroundings()
  const failing = lanes.filter(({ failures }) => failures.length > 0)
  if (failing.length === 0) return null
  const count = failing.flatMap(({ failures }) => failures).reduce((sum, each) => sum + each.count, 0)
  return (
    <Section title="Failures" note={counted(count, "object")}>
      <ul class="failures">
        {failing.flatMap(lane =>
          lane.failures.map(({ reason, meaning, scope, count, message, examples }) => (
            <li>
              <p>
                <b>{reason}</b> <span class="scope">{scope === "All" ? "all of the step" : "some"}</span>{" "}
                <span class="dim">
                  {counted(count, "object")} of {lane.tier ? `tier ${lane.tier}` : lane.title}
                </span>
              </p>
              {meaning && <p>{meaning}</p>}
              {message && <p class="said">{message}</p>}
              {examples.length > 0 && (
                <p class="examples">
                  <span class="dim">for example</span>{" "}
                  {examples.map(example => (
                    <button
                      type="button"
                      class="link"
                      onClick={() => go({ ...address.value, selected: example }, true)}
                      aria-label={`Why ${example}`}
                    >
                      {example}
                    </button>
                  ))}
                </p>
              )}
            </li>
          )),
        )}
      </ul>
    </Section>
  )
}
