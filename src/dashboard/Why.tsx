import { useEffect, useState } from "preact/hooks"
import type { ObjectId, Why } from "#web/wire.ts"
import { Refusal } from "./client.ts"
import { Ago, Command, Image } from "./parts.tsx"
import { useSurroundings } from "./surroundings.tsx"

/** What `aim why` says about an object. `version` changes when the answer may have changed. */
export function WhyOf({ object, version }: { object: ObjectId; version: unknown }) {
  const { api } = useSurroundings()
  const [answer, setAnswer] = useState<{ for: string; why?: Why; problem?: string }>({ for: "" })
  const key = `${object.kind}/${object.namespace}/${object.name}`
  useEffect(() => {
    let isWanted = true
    const show = (said: { why?: Why; problem?: string }) => isWanted && setAnswer({ for: key, ...said })
    api.why(object).then(
      why => show({ why }),
      error => show({ problem: error instanceof Refusal ? error.message : "no answer" }),
    )
    return () => {
      isWanted = false
    }
  }, [key, version, api])
  if (answer.for !== key) return <p class="dim">Asking why…</p>
  if (answer.problem) return <p class="notice bad">{answer.problem}</p>
  return answer.why ? <WhyShown why={answer.why} /> : null
}

export function WhyShown({ why }: { why: Why }) {
  const { tier, lastDecision } = why
  return (
    <div class="why-answer">
      <p class="dim">
        {why.reason}
        {why.since !== undefined && (
          <>
            {", "}
            <Ago at={why.since} />
          </>
        )}
        {tier && `, ${tier.name || "default tier"}, priority ${tier.priority}`}
        {tier?.step !== undefined && `, step ${tier.step} %`}
      </p>
      {why.sentences.map(sentence => (
        <p>{sentence}</p>
      ))}
      {lastDecision && (
        <p class="dim">
          Last decision <Ago at={lastDecision.at} /> by {lastDecision.by}, {lastDecision.operation}:{" "}
          <Image image={lastDecision.from} /> → <Image image={lastDecision.to} />
        </p>
      )}
      {why.missing.map(missing => (
        <p class="notice warn">{missing}</p>
      ))}
      <Command command={why.command} />
    </div>
  )
}
