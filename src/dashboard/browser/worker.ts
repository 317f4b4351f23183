// A SharedWorker: one stream for all tabs of a browser. With a stream in each tab, the seventh would hang behind six.
import type { Page } from "#web/wire.ts"
import { Connection } from "./connection.ts"

/** What a tab says. A tab that is closed says so; one that crashed is noticed by its lock. */
export type FromTab = { type: "open"; base: string; session: string; lock: string } | { type: "show"; pages: Page[] }

const scope = globalThis as unknown as {
  onconnect: (event: MessageEvent) => void
}
const connections = new Map<string, Connection>()

scope.onconnect = ({ ports: [port] }) => {
  if (!port) return
  let connection: Connection | undefined
  let id = 0
  const leave = () => {
    if (!connection) return
    connection.hub.leave(id)
    if (connection.hub.tabs === 0) connection.close()
    connection = undefined
    port.close()
  }
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if (data.type === "show") return connection?.hub.show(id, data.pages)
    const { base, session, lock } = data
    const key = `${base} ${session}`
    connection = connections.get(key) ?? new Connection(base, session)
    connections.set(key, connection)
    id = connection.hub.join(notice => port.postMessage(notice))
    connection.open()
    // The tab holds this lock as long as it lives, however it ends.
    void navigator.locks.request(lock, leave)
  }
  port.start()
}
