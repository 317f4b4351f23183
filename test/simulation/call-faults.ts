import { RuntimeError } from "#runtime/cri/index.ts"
import type { CallFault, RuntimeCall } from "#test/support/runtime-log.ts"
import type { World } from "#test/support/scenario.ts"

/** Strikes at the calls that match. */
export type MakeCallFault = (
  strikes: (call: RuntimeCall) => boolean,
  world: Pick<World, "clock" | "cluster">,
) => CallFault

/** The nth call that matches, whichever agent of the node makes it. */
export function nthCall(
  n: number,
  matches: (call: RuntimeCall) => boolean = () => true,
): (call: RuntimeCall) => boolean {
  let seen = 0
  return call => matches(call) && ++seen === n
}

const never = () => new Promise<never>(() => {})
const failed = (said: string) => new RuntimeError("Failed", "calling the runtime", { said })
const lost = () => new RuntimeError("Unavailable", "calling the runtime", { said: "the connection was lost" })
const downMs = 20_000

/** F13: what happens to a node, at a call. */
export const nodeFaults: Record<string, MakeCallFault> = {
  "the agent is killed before it": strikes => (call, go, agent) => {
    if (!strikes(call)) return go()
    agent.die()
    return never()
  },
  "the agent is killed during it": strikes => (call, go, agent) => {
    const answer = go()
    if (strikes(call)) agent.die()
    return answer
  },
  "the agent is killed after it": strikes => async (call, go, agent) => {
    const answer = await go()
    if (strikes(call)) agent.die()
    return answer
  },
  "its answer is lost": strikes => async (call, go) => {
    const answer = await go()
    if (strikes(call)) throw lost()
    return answer
  },
  "the runtime does not answer": strikes => async (call, go) => {
    if (strikes(call)) throw lost()
    return go()
  },
  "the runtime dies at it, and its socket is gone for a while":
    (strikes, { clock, cluster }) =>
    (call, go) => {
      if (strikes(call)) {
        const { runtime } = cluster.node(call.node)!
        runtime.die()
        clock.after(downMs, () => runtime.revive())
      }
      return go()
    },
}

/** The kubelet removes images from a full disk, so what was there before may be gone. */
export const diskFaults: Record<string, MakeCallFault> = {
  "the disk is full from it on, for a while":
    (strikes, { clock, cluster }) =>
    (call, go) => {
      if (strikes(call)) {
        const { disk } = cluster.node(call.node)!.runtime.images
        disk.set({ otherBytes: 0.9 * disk.capacityBytes })
        clock.after(downMs, () => disk.set({ otherBytes: 0 }))
      }
      return go()
    },
  /** The image is removed right after a call that concerns it. What was reported before is not taken back. */
  "the image is collected after it":
    (strikes, { cluster }) =>
    async (call, go) => {
      const isStruck = strikes(call)
      const answer = await go()
      if (isStruck && call.subject !== "") cluster.node(call.node)?.runtime.images.collect(call.subject)
      return answer
    },
}

/** F11: what a registry does, at a pull. */
const refusals: Record<string, string> = {
  "the disk is full when it is written": "failed to extract layer: write /var/lib/x: no space left on device",
  "the registry refuses the account": "unexpected status: 401 Unauthorized",
  "the registry has had enough": "unexpected status: 429 Too Many Requests: toomanyrequests",
  "the registry breaks": "unexpected status: 503 Service Unavailable",
  "a layer is cut short": "failed to copy: httpReadSeeker: unexpected EOF",
  "a layer has other bytes than it says": "failed commit on ref: unexpected commit digest sha256:b, expected sha256:a",
}

export const registryFaults: Record<string, MakeCallFault> = {
  ...Object.fromEntries(
    Object.entries(refusals).map(([name, said]): [string, MakeCallFault] => [
      name,
      strikes => async (call, go) => {
        if (strikes(call)) throw failed(said)
        return go()
      },
    ]),
  ),
  "the tag is not there for a moment": strikes => async (call, go) => {
    if (strikes(call)) throw new RuntimeError("NotFound", "pulling", { said: "not found" })
    return go()
  },
  "the registry sends nothing": strikes => (call, go) => (strikes(call) ? never() : go()),
}
