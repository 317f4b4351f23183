import type { IncomingMessage } from "node:http"
import { Refusal } from "./guard.ts"
import { textIn } from "./input.ts"
import { infoOf, pages } from "./kinds/all.ts"
import type { Session, Sessions } from "./sessions.ts"
import { shown } from "./text.ts"
import type { Viewer } from "./viewer.ts"
import type { Session as SessionAnswer } from "./wire.ts"

/** Whose credentials a session has: the user's own of this process, or those that came with the request. */
export type Viewers =
  | { by: "Key"; viewer: Viewer; user: string }
  | { by: "Token"; viewerOf(token: string): Promise<{ viewer: Viewer; user: string }> }

type Options = {
  viewers: Viewers
  tls?: { cert: string; key: string } | undefined
  program: string
  version: string
  cluster: string
  operates: boolean
  whyNot: string
  say(line: string): void
}

/** How a browser gets a session. */
export function signInWith(
  options: Options,
  sessions: Sessions,
  onRenewed: (session: Session, before: Viewer) => void,
) {
  const { tls, program, operates, whyNot } = options
  const tokens = new WeakMap<Session, { token: string; user: string }>()

  async function open(request: IncomingMessage, body: Record<string, unknown>): Promise<SessionAnswer> {
    const { viewer, user, token } = await identify(request, body)
    const session = sessions.open(viewer)
    if (token !== undefined) tokens.set(session, { token, user })
    return {
      session: session.id,
      program,
      version: options.version,
      cluster: shown(options.cluster),
      user: shown(user, 253),
      operates,
      whyNot: operates ? "" : whyNot,
      kinds: pages.map(infoOf),
    }
  }

  async function identify(request: IncomingMessage, body: Record<string, unknown>) {
    const { viewers } = options
    if (viewers.by === "Key") {
      const found = sessions.useKey(textIn(body, "key", 128) ?? "")
      if (found === "Good") return { viewer: viewers.viewer, user: viewers.user, token: undefined }
      const again = "the terminal prints another address when you press Enter there"
      if (found === "Used") {
        options.say(
          "An address of the dashboard was used a second time. If that was not you, end this process with Ctrl-C.",
        )
        throw new Refusal(401, { error: "KeyUsed", message: `this address was used before, and works once; ${again}` })
      }
      if (found === "Expired")
        throw new Refusal(401, { error: "KeyExpired", message: `this address is older than a minute; ${again}` })
      throw new Refusal(401, { error: "NoSession", message: `this address has no key; ${again}` })
    }
    const typed = textIn(body, "token", 16_384)
    if (typed !== undefined && !tls)
      throw new Refusal(403, {
        error: "NeedsTls",
        message: "a token is accepted over TLS alone: use --tls-cert and --tls-key",
      })
    const token = typed ?? bearerOf(request)
    if (token === undefined || token === "")
      throw new Refusal(401, {
        error: "NeedsToken",
        message: tls
          ? "sign in with a token of the cluster"
          : "the proxy in front of this server sent no token: sign in there",
      })
    return { ...(await viewers.viewerOf(token)), token }
  }

  /** A proxy sends a fresh token with each request; the session of the same user goes on with it. */
  async function renew(session: Session, request: IncomingMessage): Promise<void> {
    const { viewers } = options
    const [token, known] = [bearerOf(request), tokens.get(session)]
    if (viewers.by !== "Token" || token === undefined || !known || token === known.token) return
    const { viewer, user } = await viewers.viewerOf(token)
    if (user !== known.user) {
      viewer.client.close()
      throw new Refusal(401, { error: "NoSession", message: "this session is another user's: open the page again" })
    }
    const before = session.viewer
    session.viewer = viewer
    tokens.set(session, { token, user })
    onRenewed(session, before)
  }

  return { open, renew }
}

const bearerOf = (request: IncomingMessage) =>
  /^Bearer ([\x21-\x7e]{1,16384})$/.exec(request.headers.authorization ?? "")?.[1]
