import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { holdKinds } from "#core/in-place/hold.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { installKinds } from "#test/support/fleet.ts"
import { floor, type Json, onRealNode, quickEnd, until } from "#test/support/floor.ts"
import { aim } from "#test/support/installation.ts"
import { startUpdates } from "#test/support/real-in-place.ts"
import { beginPulls, startAgent } from "#test/support/real-pulls.ts"

// A real server without the policies: `aim hold` stops a workload of each kind, and the hold stays between updates,
// whatever applies the changes. A manifest that names the strategy takes the hold of a set away, and that is said.

let images: string[]

beforeAll(async () => {
  await installKinds()
  const pushed = await Promise.all(["1", "2", "3"].map(tag => floor().pushImage(`standing:v${tag}`)))
  images = pushed.map(({ reference }) => reference)
})
afterAll(async () => {
  await floor().kubectlRun("delete", "nodeimages", "--all")
})

const kinds = { Deployment: "deployments", StatefulSet: "statefulsets", DaemonSet: "daemonsets" } as const
type Kind = keyof typeof kinds
const words: Record<Kind, string> = { Deployment: "deploy", StatefulSet: "sts", DaemonSet: "ds" }

/** What each kind has beside the template. A DaemonSet has one pod: there is one real node. */
const specs: Record<Kind, Json> = {
  Deployment: { replicas: 1, strategy: { rollingUpdate: { maxUnavailable: 1 } } },
  StatefulSet: { replicas: 1, serviceName: "web" },
  DaemonSet: {},
}

/** What a manifest says of the strategy, where it says something. */
const named: Partial<Record<Kind, Json>> = {
  StatefulSet: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  DaemonSet: { type: "RollingUpdate" },
}

const server = ["--server-side", "--force-conflicts"]
/** How workloads are made, how each of two changes is applied, and whether the manifest names the strategy. */
const writers: Record<string, { make: string[]; writes: string[][]; isNamed?: boolean }> = {
  client: { make: [], writes: [[], []] },
  server: { make: server, writes: [server, server] },
  mixed: { make: [], writes: [server, []] },
  named: { make: [], writes: [server], isNamed: true },
}

const isStopped = ({ kind, spec }: Json) => holdKinds[kind as Kind].isInForce(spec)
const reasonOf = ({ metadata }: Json) => JSON.parse(metadata.annotations[inPlaceAnnotation] ?? "{}").reason
const imageOf = ({ spec }: Json) => spec.containers[0].image

test("each kind keeps its pods, from the client, by the server and mixed; a strategy in a manifest ends it", async () => {
  const { namespace } = await beginPulls()
  await startAgent(namespace)
  await startUpdates(namespace)
  const { api, kubectlRun } = floor()
  const kubectl = (...args: string[]) => kubectlRun("-n", namespace, ...args)
  const folder = mkdtempSync(join(tmpdir(), "aim-standing-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const kindsOf = (writer: string) =>
    (Object.keys(kinds) as Kind[]).filter(kind => !writers[writer]!.isNamed || named[kind])
  const manifest = (writer: string, kind: Kind, image: string): Json => ({
    ...{ apiVersion: "apps/v1", kind },
    metadata: { name: writer, annotations: { [strategyAnnotation]: "InPlaceIfPossible" } },
    spec: {
      ...specs[kind],
      ...(writers[writer]!.isNamed && { updateStrategy: named[kind] }),
      selector: { matchLabels: { app: `${writer}-${kind}` } },
      template: {
        metadata: { labels: { app: `${writer}-${kind}`, of: writer } },
        spec: {
          ...{ ...onRealNode, ...quickEnd },
          containers: [
            {
              name: "web",
              image,
              command: ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],
            },
          ],
        },
      },
    },
  })
  const apply = (writer: string, image: string, how: string[]) => {
    const file = join(folder, `${writer}.json`)
    const items = kindsOf(writer).map(kind => manifest(writer, kind, image))
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }))
    return kubectl("apply", ...how, "-f", file)
  }
  const each = (writer: string): Promise<Json[]> =>
    Promise.all(kindsOf(writer).map(kind => api.get(`/apis/apps/v1/namespaces/${namespace}/${kinds[kind]}/${writer}`)))
  const pods = async (writer: string): Promise<Json[]> => {
    const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=of=${writer}`)
    return items
      .filter(({ metadata }: Json) => !metadata.deletionTimestamp)
      .sort((a: Json, b: Json) => (a.metadata.labels.app < b.metadata.labels.app ? -1 : 1))
  }
  const uidsOf = async (writer: string) => (await pods(writer)).map(({ metadata }) => metadata.uid)
  const isReady = ({ metadata, status = {} }: Json) =>
    status.observedGeneration === metadata.generation && (status.availableReplicas ?? status.numberAvailable) === 1

  const names = Object.keys(writers)
  await Promise.all(names.map(writer => apply(writer, images[0]!, writers[writer]!.make)))
  for (const writer of names) await until(`${writer} is ready`, async () => (await each(writer)).every(isReady))
  const all = names.flatMap(writer => kindsOf(writer).map(kind => `${words[kind]}/${writer}`))
  expect(await aim("hold", ...all, "-n", namespace)).toContain("is held, also between updates")
  for (const writer of names) expect((await each(writer)).map(isStopped)).not.toContain(false)
  const before = new Map<string, string[]>()
  for (const writer of names) before.set(writer, await uidsOf(writer))

  const kept = names.filter(writer => !writers[writer]!.isNamed)
  for (const index of [0, 1]) {
    const image = images[index + 1]!
    for (const writer of kept) await apply(writer, image, writers[writer]!.writes[index]!)
    const waits = Object.values(words).map(word => {
      const targets = kept.map(writer => `${word}/${writer}`)
      return aim("wait", ...targets, "-n", namespace, "--timeout", "60s")
    })
    for (const said of await Promise.all(waits)) expect(said.match(/ Complete /g)).toHaveLength(kept.length)
    for (const writer of kept) {
      expect([writer, await uidsOf(writer)]).toEqual([writer, before.get(writer)])
      expect((await pods(writer)).map(imageOf)).toEqual(kindsOf(writer).map(() => image))
      expect((await each(writer)).map(found => [isStopped(found), reasonOf(found)])).toEqual(
        kindsOf(writer).map(() => [true, "Completed"]),
      )
    }
  }

  await apply("named", images[1]!, writers.named!.writes[0]!)
  const fellBack = await until("the hold is over", async () => {
    const found = await each("named")
    return found.every(({ metadata }) => metadata.labels?.[heldMark] === undefined) && found
  })
  expect(fellBack.map(reasonOf)).toEqual(["FellBackToRollingUpdate", "FellBackToRollingUpdate"])
  await until("its own controllers have replaced the pods", async () => {
    const now = await pods("named")
    return now.length === 2 && now.every(pod => imageOf(pod) === images[1])
  })
  expect((await uidsOf("named")).filter(uid => before.get("named")!.includes(uid))).toEqual([])

  expect(await aim("release", "--all", "-n", namespace)).toContain("is released")
  for (const writer of names) expect((await each(writer)).map(isStopped)).not.toContain(true)
})
