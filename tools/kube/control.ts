import { once } from "node:events"
import { connect, createServer, type Server } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import type { AddOn } from "./add-ons.ts"

/** What another process may ask of a running cluster's. */
export type ClusterOrder =
  | { do: "expose"; port: number }
  | { do: "stopProgram"; name: string; signal?: NodeJS.Signals }
  | { do: "startProgram"; name: string }
  | { do: "add"; addOn: AddOn }
  | { do: "remove"; addOn: AddOn }

type Answer = { result?: unknown } | { failed: string }

const socketOf = (folder: string) => join(folder, "control.sock")

/** Lets other processes, such as vitest's workers, give orders to the cluster in `folder`. */
export async function listenForOrders(
  folder: string,
  obey: (order: ClusterOrder) => Promise<unknown>,
): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, socket => {
    let order = ""
    socket.on("error", () => {})
    socket.setEncoding("utf8").on("data", part => {
      order += part
    })
    socket.once("end", () => {
      Promise.try(() => obey(JSON.parse(order))).then(
        result => socket.end(JSON.stringify({ result } satisfies Answer)),
        error => socket.end(JSON.stringify({ failed: story(error) } satisfies Answer)),
      )
    })
  }).listen(socketOf(folder))
  await once(server, "listening")
  return server
}

/** Resolves with what the order gave. */
export async function orderCluster(folder: string, order: ClusterOrder): Promise<unknown> {
  const socket = connect(socketOf(folder))
  socket.end(JSON.stringify(order))
  const answer = JSON.parse(await text(socket)) as Answer
  if ("failed" in answer) throw new Error(`${order.do}: ${answer.failed}`)
  return answer.result
}

/** The error and its causes, without a stack trace: it is read in another process. */
export function story(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause ? `${error.message}: ${story(error.cause)}` : error.message
}
