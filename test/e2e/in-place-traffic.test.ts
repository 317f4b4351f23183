import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { expect, onTestFinished, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { floor, type Json, onRealNode, quickEnd, until } from "#test/support/floor.ts"
import { surroundings, transportFor, untilTestEnds } from "#test/support/in-process.ts"
import { holdIsInForce, isFree, startUpdates, useHoldPolicy } from "#test/support/real-in-place.ts"
import { beginPulls, startAgent } from "#test/support/real-pulls.ts"

// What a load balancer does: requests at a constant rate to the addresses of ready pods, while these pods are updated in
// place. With maxUnavailable 1, the readiness gate and a grace period, none fails.

useHoldPolicy()

const everyMs = 25
/** Five minutes of them: longer than the update may take. */
const requestsMost = 12_000
/** A pod that does not serve refuses at once. Only what is lost on the way is never answered. */
const answerMs = 30_000
/** Longer than the client can be behind: it hears every tenth of a second which pods are ready, on a busy machine later. */
const graceSeconds = 8

/**
 * Runs in the network of the cluster. Reads a line of addresses whenever they change, asks one after the other, and
 * prints at the end what became of the requests. It ends by itself.
 */
const client = `
import { get } from "node:http"
import { createInterface } from "node:readline"
let addresses = [], sent = 0, isOver = false
const answers = {}, failures = []
const count = what => { answers[what] = (answers[what] ?? 0) + 1 }
const ask = address => new Promise(resolve => {
  const request = get({ host: address, port: 8080, agent: false, timeout: ${answerMs} }, answer => {
    let text = ""
    answer.on("data", part => { text += part }).on("end", () => resolve(count(answer.statusCode + " " + text.trim())))
  })
  request.on("timeout", () => request.destroy(new Error("timeout")))
  request.on("error", error => resolve(failures.push(address + " " + error.message + " " + new Date().toISOString())))
})
const asked = []
const timer = setInterval(() => {
  if (isOver || sent >= ${requestsMost}) return clearInterval(timer), end()
  if (addresses.length > 0) asked.push(ask(addresses[sent++ % addresses.length]))
}, ${everyMs})
async function end() {
  await Promise.all(asked)
  console.log(JSON.stringify({ sent, answers, failures }))
  process.exit(0)
}
createInterface({ input: process.stdin }).on("line", line => { addresses = JSON.parse(line) }).on("close", () => { isOver = true })
`

test("a client at a constant rate sees no failed request", async () => {
  const { namespace } = await beginPulls()
  await startAgent(namespace)
  await startUpdates(namespace)
  // It opens the gate of new pods.
  const gates = createContainerRecreateRequestController()
  const recording = { resource: events, verbs: ["create", "patch"] } as const
  const transport = await transportFor(namespace, "gates", [...gates.permissions, recording])
  untilTestEnds(signal => runManager({ ...surroundings, transport, controllers: [gates], leaderElect: false, signal }))
  const { api, pid, kubectlRun, pushImage } = floor()
  const [first, second] = await Promise.all(["1", "2"].map(tag => pushImage(`traffic:v${tag}`)))
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
  await api.create(path, {
    metadata: {
      name: "web",
      annotations: { [strategyAnnotation]: "InPlaceOnly", [settingAnnotations.graceSeconds]: String(graceSeconds) },
    },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: "web" } },
      strategy: { rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: {
          ...{ ...onRealNode, ...quickEnd },
          readinessGates: [{ conditionType: readinessGate }],
          containers: [
            {
              name: "web",
              image: first!.reference,
              readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
            },
          ],
        },
      },
    },
  })
  await kubectlRun("-n", namespace, "rollout", "status", "deploy/web", "--timeout=180s")
  const pods = async (): Promise<Json[]> => (await api.get(`/api/v1/namespaces/${namespace}/pods`)).items
  const before = (await pods()).map(({ metadata }) => metadata.uid).sort()

  const child = spawn("nsenter", [`--net=/proc/${pid}/ns/net`, process.execPath, "--input-type=module", "-e", client], {
    stdio: ["pipe", "pipe", "inherit"],
  })
  onTestFinished(() => void child.kill())
  const said = once(createInterface({ input: child.stdout }), "line")
  let isOver = false
  const isReady = ({ status, metadata }: Json) =>
    !metadata.deletionTimestamp &&
    status.conditions.some(({ type, status }: Json) => type === "Ready" && status === "True")
  const telling = (async () => {
    for (let told = ""; !isOver; await new Promise(resolve => setTimeout(resolve, 100))) {
      const ready = (await pods()).filter(isReady).map(({ status }) => status.podIP)
      const line = JSON.stringify(ready.sort())
      if (line !== told && !isOver) child.stdin.write(`${line}\n`)
      told = line
    }
  })()

  await holdIsInForce(namespace, "deploy/web", "web")
  await kubectlRun("-n", namespace, "set", "image", "deploy/web", `web=${second!.reference}`)
  await until("the update is complete", async () => isFree(await api.get(`${path}/web`)), { withinMs: 240_000 })
  isOver = true
  await telling
  child.stdin.end()
  const { sent, answers, failures } = JSON.parse((await said)[0])
  expect(failures).toEqual([])
  expect(sent).toBeGreaterThan(100)
  expect(Object.keys(answers).sort()).toEqual(["200 v1", "200 v2"])
  expect((await pods()).map(({ metadata }) => metadata.uid).sort()).toEqual(before)
})
