import type { ImagePullJobSpec } from "#api/v1alpha1/imagepulljob/index.ts"
import { PullBoard } from "#core/pulls/board.ts"
import type { Context, Wiring } from "#runtime/controller.ts"

/** The credentials of one job for its image's registry, or why there are none. */
export type Credentials =
  | { readonly is: "None" }
  | { readonly is: "Found"; readonly accounts: readonly { username: string; password: string }[] }
  | { readonly is: "Bad"; readonly reason: "SecretMissing" | "SecretInvalid" | "Forbidden"; readonly message: string }

/** What the NodeImage controller needs of a job whose image it gives to a node. */
export type JobDetails = { readonly spec: ImagePullJobSpec; readonly name: string; readonly credentials: Credentials }

/**
 * What the controllers of ImagePullJobs and NodeImages share in one process: the first decides which nodes are next,
 * the second writes each NodeImage, once for all that has changed on its node.
 */
export type Pulls = {
  board: PullBoard
  /** Everything that was there when this process began to lead is known: what is absent now is gone. */
  isListed(): boolean
  detailsOf(jobKey: string): JobDetails | undefined
  wakeNode(name: string): void
}

const known = new WeakMap<object, Pulls>()

/** What the controllers of one process share. Controllers of the same process have the same client. */
export function pullsOf({ client }: Pick<Context, "client">): Pulls {
  const pulls = known.get(client) ?? unopened()
  known.set(client, pulls)
  return pulls
}

const unopened = (): Pulls => ({
  board: new PullBoard(1, { job: () => {}, node: () => {} }),
  isListed: () => false,
  detailsOf: () => undefined,
  wakeNode: () => {},
})

/** A board that is about to be fed by the caches of its process. */
export function openBoard(pulls: Pulls, { enqueue }: Pick<Wiring, "enqueue">, pullsPerRegistry: number): PullBoard {
  pulls.board = new PullBoard(pullsPerRegistry, { job: key => enqueue(key), node: name => pulls.wakeNode(name) })
  return pulls.board
}
