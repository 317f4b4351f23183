import type {
  Acted,
  ActionRequest,
  ActRequest,
  ErrorAnswer,
  Frame,
  Preview,
  Session,
  SessionHeader,
  SessionRequest,
  WatchRequest,
  Why,
  WhyRequest,
} from "#web/wire.ts"

const sessionHeader: SessionHeader = "x-aim-session"

/** What the server refused, with its own words. Without an answer: `Unreachable`. */
export class Refusal extends Error {
  readonly answer: ErrorAnswer
  constructor(answer: ErrorAnswer) {
    super(answer.message)
    this.answer = answer
  }
}

/** What the page asks of its server. Stories answer in its place. */
export type Api = {
  why(request: WhyRequest): Promise<Why>
  preview(request: ActionRequest): Promise<Preview>
  act(request: ActRequest): Promise<Acted>
}

export const apiOf = (base: string, session: string): Api => ({
  why: request => post<Why>(base, "api/why", request, session),
  preview: request => post<Preview>(base, "api/preview", request, session),
  act: request => post<Acted>(base, "api/act", request, session),
})

export const openSession = (base: string, request: SessionRequest) => post<Session>(base, "api/session", request)
export const watch = (base: string, session: string, request: WatchRequest, signal: AbortSignal) =>
  post<object>(base, "api/watch", request, session, signal)

async function post<T>(base: string, path: string, body: object, session?: string, signal?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json", [sessionHeader]: session ?? "none" }
  const init = { method: "POST", headers, body: JSON.stringify(body), ...(signal && { signal }) }
  let answer: Response
  try {
    answer = await fetch(new URL(path, base), init)
  } catch {
    throw new Refusal({ error: "Unreachable", message: "the dashboard's server does not answer; is it still running?" })
  }
  if (!answer.ok) throw await refusalOf(answer)
  return (await answer.json()) as T
}

async function refusalOf(answer: Response): Promise<Refusal> {
  try {
    const body = (await answer.json()) as ErrorAnswer
    if (typeof body.message === "string") return new Refusal(body)
  } catch {
    // A proxy in front may answer in its own words; its status is all that is known.
  }
  return new Refusal({ error: "Other", message: `the server answered with status ${answer.status}` })
}

/**
 * Reads the stream until it ends, and passes each frame on. Ends by an exception: a Refusal, or what the connection
 * said. `signal` gives the stream back.
 */
export async function readStream(
  { base, session, signal }: { base: string; session: string; signal: AbortSignal },
  take: (frame: Frame) => void,
): Promise<void> {
  const answer = await fetch(new URL("api/stream", base), { headers: { [sessionHeader]: session }, signal })
  if (!answer.ok || !answer.body) throw await refusalOf(answer)
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    const lines = (rest + value).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) if (line !== "") take(JSON.parse(line) as Frame)
  }
}
