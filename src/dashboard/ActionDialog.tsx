import { useEffect, useRef, useState } from "preact/hooks"
import type { ActionName, ActionRequest, Details, Lane, Preview } from "#web/wire.ts"
import { Refusal } from "./client.ts"
import { Command } from "./parts.tsx"
import { type ImageField, imageFields, settingsOf } from "./settings.ts"
import { useSurroundings } from "./surroundings.tsx"
import { actionWords } from "./words.ts"

/** The buttons of an object. A disabled one says why, also to a reader of the screen. */
export function Actions({ details }: { details: Details }) {
  const { session, isLive } = useSurroundings()
  const [open, setOpen] = useState<ActionName>()
  const { row, actions } = details
  if (actions.length === 0) return null
  const isAwaited = "awaitsApproval" in row && row.awaitsApproval
  const shared = !session.operates
    ? session.whyNot
    : !isLive.value
      ? "The server has been silent; nothing can be done now."
      : ""
  return (
    <div class="actions">
      {actions.map(({ action, isEnabled, why }) => {
        const because = shared || (isEnabled ? "" : why)
        return (
          <button
            type="button"
            class={action === "approve" && isAwaited && because === "" ? "primary" : ""}
            aria-disabled={because !== ""}
            aria-description={because || undefined}
            title={because}
            onClick={() => because === "" && setOpen(action)}
          >
            {actionWords[action].button}
          </button>
        )
      })}
      {shared && <p class="dim reason">{shared}</p>}
      {open && (
        <ActionDialog
          key={open}
          action={open}
          object={row}
          lanes={details.rollout?.lanes ?? []}
          onClose={() => setOpen(undefined)}
        />
      )}
    </div>
  )
}

type Props = {
  action: ActionName
  object: { kind: string; namespace: string; name: string }
  lanes: readonly Lane[]
  onClose: () => void
}
type Phase = "editing" | "asking" | "asked" | "acting" | "done"
type Shown = { preview?: Preview; moved?: string[]; done?: { lines: string[]; next: string[] }; problem?: Refusal }

/**
 * Asks before it acts: what the command line would say, what the planner expects, whether the server would take it. A
 * decision that reads differently when it is confirmed is shown again. The focus starts on Cancel.
 */
export function ActionDialog({ action, object, lanes, onClose }: Props) {
  const { api, isLive } = useSurroundings()
  const dialog = useRef<HTMLDialogElement>(null)
  const cancel = useRef<HTMLButtonElement>(null)
  const hasForm = action === "set-image"
  // The fields stay as they were when the dialog was opened: what is typed must not move under the hand.
  const [fields] = useState(() => imageFields(lanes))
  const [phase, setPhase] = useState<Phase>(hasForm ? "editing" : "asking")
  const [shown, setShown] = useState<Shown>({})
  const [images, setImages] = useState<Record<string, string>>({})
  const [supersede, setSupersede] = useState(false)
  const { kind, namespace, name } = object
  const request: ActionRequest = {
    ...{ action, kind, namespace, name },
    ...(hasForm && { settings: settingsOf(images, fields), supersede }),
  }
  const refused = (error: unknown, next: Phase) => {
    setShown(before => ({ ...before, problem: error instanceof Refusal ? error : unexpected(error) }))
    setPhase(next)
  }
  const ask = () => {
    setPhase("asking")
    api.preview(request).then(
      preview => {
        setShown({ preview })
        setPhase("asked")
      },
      error => refused(error, hasForm ? "editing" : "asked"),
    )
  }
  const act = () => {
    if (!shown.preview) return
    setPhase("acting")
    api.act({ ...request, decision: shown.preview.decision }).then(
      acted => {
        setShown(acted.isDone ? { done: acted } : { moved: acted.moved, preview: acted.preview })
        setPhase(acted.isDone ? "done" : "asked")
        cancel.current?.focus()
      },
      error => refused(error, "asked"),
    )
  }
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal()
    cancel.current?.focus()
    if (!hasForm) ask()
  }, [])
  const { preview, moved, done, problem } = shown
  const words = actionWords[action]
  const mayConfirm = phase === "asked" && preview?.isPossible === true && preview.dryRun.isAccepted && isLive.value
  const field = problem?.answer.field ?? (preview?.isPossible === false ? preview.field : undefined)
  return (
    <dialog ref={dialog} class="action" aria-labelledby="action-title" onClose={onClose} onCancel={onClose}>
      <h2 id="action-title">
        {words.title} {name}
      </h2>
      {hasForm && phase !== "done" && (
        <ImageForm
          fields={fields}
          images={images}
          supersede={supersede}
          problem={field ? (problem?.message ?? preview?.lines.join(" ")) : undefined}
          field={field}
          onChange={next => {
            setImages(next)
            setShown({})
            setPhase("editing")
          }}
          onSupersede={next => {
            setSupersede(next)
            setShown({})
            setPhase("editing")
          }}
        />
      )}
      <div role="status">
        {(phase === "asking" || phase === "acting") && (
          <p class="dim">{phase === "asking" ? "Asking the planner…" : "Writing…"}</p>
        )}
        {moved && <Moved moved={moved} />}
        {problem && <Problem refusal={problem} />}
        {preview && <PreviewShown preview={preview} />}
        {done && (
          <div class="notice good">
            {[...done.lines, ...done.next].map(line => (
              <p>{line}</p>
            ))}
          </div>
        )}
      </div>
      <footer>
        <button type="button" ref={cancel} onClick={() => dialog.current?.close()}>
          {phase === "done" ? "Close" : "Cancel"}
        </button>
        {hasForm && phase === "editing" && (
          <button type="button" class="primary" onClick={ask}>
            Preview
          </button>
        )}
        {phase !== "done" && phase !== "editing" && (
          <button type="button" class="primary" disabled={!mayConfirm} onClick={act}>
            {words.confirm}
          </button>
        )}
      </footer>
    </dialog>
  )
}

const unexpected = (error: unknown) => new Refusal({ error: "Other", message: String(error) })

const Moved = ({ moved }: { moved: string[] }) => (
  <div class="notice warn" role="alert">
    <p>
      <b>Something moved since you were asked. Nothing was written. Please read again:</b>
    </p>
    {moved.map(line => (
      <p>{line}</p>
    ))}
  </div>
)

const Problem = ({ refusal: { answer } }: { refusal: Refusal }) => (
  <div class="notice bad" role="alert">
    <p>{answer.message}</p>
    {answer.meant && <p>Did you mean {answer.meant}?</p>}
    {answer.done && <p>{answer.done}</p>}
  </div>
)

function PreviewShown({ preview }: { preview: Preview }) {
  const { isPossible, isChange, lines, next, plan, dryRun, command } = preview
  return (
    <>
      <div class={isPossible ? "" : "notice bad"}>
        {lines.map(line => (
          <p>{line}</p>
        ))}
        {next.map(line => (
          <p>{line}</p>
        ))}
        {isPossible && !isChange && <p>It is so already: nothing would change.</p>}
      </div>
      {plan.length > 0 && (
        <>
          <h3>What would follow</h3>
          <pre>{plan.join("\n")}</pre>
        </>
      )}
      {isPossible && (
        <p class={dryRun.isAccepted ? "dim" : "notice bad"}>
          {dryRun.isAccepted ? "✓ Dry run: " : "✕ Dry run refused: "}
          {dryRun.message || "the server would accept it"}
        </p>
      )}
      <Command command={command} />
    </>
  )
}

function ImageForm(props: {
  fields: readonly ImageField[]
  images: Record<string, string>
  supersede: boolean
  problem?: string | undefined
  field?: string | undefined
  onChange: (images: Record<string, string>) => void
  onSupersede: (supersede: boolean) => void
}) {
  const { fields, images, supersede, problem, field, onChange, onSupersede } = props
  const isWrong = problem !== undefined && field !== "supersede"
  return (
    <div class="image-form">
      {fields.map(({ setting, title, image }) => (
        <label>
          <span>{title}</span>
          <input
            type="text"
            spellcheck={false}
            autocomplete="off"
            value={images[setting] ?? image}
            aria-invalid={isWrong}
            aria-describedby={isWrong ? "image-problem" : undefined}
            onInput={event => onChange({ ...images, [setting]: event.currentTarget.value })}
          />
        </label>
      ))}
      {isWrong && (
        <p id="image-problem" class="field-problem">
          ✕ {problem}
        </p>
      )}
      <label class="check">
        <input type="checkbox" checked={supersede} onChange={event => onSupersede(event.currentTarget.checked)} />
        <span>May end an operation that is in progress</span>
      </label>
    </div>
  )
}
