import { type Fault, isDecision, isWatch } from "#cluster-sim/faults/faults.ts"

/** What a process asked of the server, by what it means. Lists in the form of a watch are watches. */
export type Requests = {
  readonly writes: readonly string[]
  readonly reads: readonly string[]
  readonly watches: number
}

export type CountedRequests = {
  readonly fault: Fault
  /** Since the call before. The Lease, Events and dry runs count as nothing. */
  taken(): Requests
}

/** For `world.run(…, { faults: [counted.fault] })`. */
export function countRequests(): CountedRequests {
  let writes: string[] = []
  let reads: string[] = []
  let watches = 0
  return {
    fault: next => ({
      ...next,
      send(request) {
        const [path = "", query = ""] = request.path.split("?")
        const said = `${request.method} ${path.replace(/^\/(api|apis\/[^/]+)\/v[^/]+\/(namespaces\/[^/]+\/)?/, "")}`
        if (isWatch(request)) watches++
        else if (request.method === "GET" && !path.includes("/leases/")) reads.push(said)
        else if (isDecision(request) && !query.includes("dryRun")) writes.push(said)
        return next.send(request)
      },
    }),
    taken() {
      const taken = { writes, reads, watches }
      writes = []
      reads = []
      watches = 0
      return taken
    },
  }
}
