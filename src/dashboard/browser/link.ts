import type { Page } from "#web/wire.ts"
import type { Notice } from "../hub.ts"
import { Connection } from "./connection.ts"
import type { FromTab } from "./worker.ts"

export type Link = { show(pages: Page[]): void }

/** This tab's way to the stream: through the SharedWorker where there is one, else a stream of its own while it is visible. */
export function openLink(session: string, take: (notice: Notice) => void): Link {
  const base = new URL(".", location.href).href
  const worker = document.querySelector<HTMLMetaElement>('meta[name="aim-worker"]')?.content
  if (typeof SharedWorker === "function" && worker && "locks" in navigator)
    return shared(new URL(worker, base), { base, session, take })
  return alone({ base, session, take })
}

type Options = { base: string; session: string; take: (notice: Notice) => void }

function shared(address: URL, { base, session, take }: Options): Link {
  const { port } = new SharedWorker(trusted(address), { type: "module", name: "aim" })
  const lock = `aim ${crypto.randomUUID()}`
  const say = (message: FromTab) => port.postMessage(message)
  port.onmessage = ({ data }: MessageEvent<Notice>) => take(data)
  port.start()
  void navigator.locks.request(lock, () => new Promise(() => {}))
  // The lock is held before the worker asks for it: requests of one name are served in order.
  void navigator.locks.query().then(() => say({ type: "open", base, session, lock }))
  let pages: Page[] = []
  void navigator.locks.query().then(() => say({ type: "show", pages }))
  return {
    show: wanted => {
      pages = wanted
      say({ type: "show", pages })
    },
  }
}

function alone({ base, session, take }: Options): Link {
  const connection = new Connection(base, session)
  const id = connection.hub.join(take)
  const follow = () => (document.visibilityState === "visible" ? connection.open() : connection.close())
  document.addEventListener("visibilitychange", follow)
  follow()
  return { show: pages => connection.hub.show(id, pages) }
}

type TrustedTypes = {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string }
}

/** The one script address that the page makes: the server forbids any that did not pass this policy. */
function trusted(address: URL): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  if (!trustedTypes) return address.href
  const createScriptURL = (url: string) => {
    if (url !== address.href) throw new Error("not a script of the page")
    return url
  }
  return trustedTypes.createPolicy("aim", { createScriptURL }).createScriptURL(address.href)
}
