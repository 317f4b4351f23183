import { once } from "node:events"
import { connect, createServer, type Server } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"

/** What another process may ask of a running cluster's. */
export type ClusterOrder =
  | { do: "expose"; port: number }
  | { do: "stopProgram"; name: string; signal?: NodeJS.Signals }
  | { do: "startProgram"; name: string }

const socketOf = (folder: string) => join(folder, "control.sock")

/** Lets other processes, such as vitest's workers, give orders to the cluster in `folder`. */
export async function listenForOrders(folder: string, obey: (order: ClusterOrder) => Promise<void>): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, socket => {
    let order = ""
    socket.on("error", () => {})
    socket.setEncoding("utf8").on("data", part => {
      order += part
    })
    socket.once("end", () => {
      Promise.try(() => obey(JSON.parse(order))).then(
        () => socket.end(),
        error => socket.end(String(error)),
      )
    })
  }).listen(socketOf(folder))
  await once(server, "listening")
  return server
}

export async function orderCluster(folder: string, order: ClusterOrder): Promise<void> {
  const socket = connect(socketOf(folder))
  socket.end(JSON.stringify(order))
  const trouble = await text(socket)
  if (trouble) throw new Error(`${order.do}: ${trouble}`)
}
