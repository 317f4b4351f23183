import { onTestFinished } from "vitest"
import { connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { core, type KubeObject } from "#runtime/resource.ts"
import { floor, type Json } from "./floor.ts"

/** What became of one container of one pod, with the moments at which a watcher heard of it. */
export type Pull = {
  pod: string
  uid: string
  container: string
  /** What the pod was created with, and what it has now. */
  created: string
  image: string
  failedAt?: number
  message?: string
  /** All that the kubelet said of it, each once. */
  messages: string[]
  repairedAt?: number
  startedAt?: number
  digest?: string
}

/** Every container of every pod that is ever in a namespace, from now on. */
export async function recordPulls(namespace: string): Promise<readonly Pull[]> {
  const { transport } = await connect({ kubeconfig: floor().kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const pods = core("pods", "Pod")
  const pulls: Pull[] = []
  const { metadata } = await client.list(pods, { namespace })
  const follow = async () => {
    const options = { namespace, resourceVersion: metadata.resourceVersion }
    for await (const { type, object } of client.watch<KubeObject>(pods, options, stop.signal))
      if (type === "ADDED" || type === "MODIFIED") note(pulls, object as Json)
  }
  follow().catch(error => {
    if (!stop.signal.aborted) throw error
  })
  return pulls
}

function note(pulls: Pull[], { metadata, spec, status }: Json): void {
  const now = Date.now()
  const statuses: Json[] = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  for (const { name, image } of [...(spec.initContainers ?? []), ...spec.containers]) {
    const { uid, name: pod } = metadata
    let pull = pulls.find(each => each.uid === uid && each.container === name)
    if (!pull) {
      pull = { pod, uid, container: name, created: image, image, messages: [] }
      pulls.push(pull)
    }
    if (image !== pull.image) {
      pull.image = image
      pull.repairedAt = now
    }
    const { state, imageID = "" } = statuses.find(each => each.name === name) ?? {}
    if (/^(ErrImagePull|ImagePullBackOff)$/.test(state?.waiting?.reason)) {
      pull.failedAt ??= now
      pull.message ??= state.waiting.message
      if (!pull.messages.includes(state.waiting.message)) pull.messages.push(state.waiting.message)
    }
    // A container of a deleted pod that never started is called terminated too; it has no image.
    if (imageID && (state?.running || state?.terminated)) {
      pull.startedAt ??= now
      pull.digest = imageID.slice(imageID.indexOf("@") + 1)
    }
  }
}
