import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { agentPermissions } from "#agent/index.ts"
import { rulesFor } from "#cli/manifests/rules.ts"
import { conditionOf, installKinds } from "#test/support/fleet.ts"
import { floor, type Json, kubeconfigFor, realNode, serviceAccountAccess, until } from "#test/support/floor.ts"
import { aim } from "#test/support/installation.ts"
import { startProgram } from "#test/support/program.ts"
import { beginRestarts, containerOf, polite, shell, stateOf, stubborn, tookMs } from "#test/support/real-restarts.ts"
import { staticPods } from "#tools/kube/node.ts"

// Containers of a real kubelet are restarted through a real containerd. Manager and agent have the rights that their
// code declares and no others.

let image: string

beforeAll(async () => {
  await installKinds()
  image = (await floor().pushImage("restart:v1")).reference
})

const begin = () => beginRestarts(image)
const readyOf = (request: Json): Json => conditionOf(request, "Ready")

/** Not a second early. A busy machine may be late, but less than half of what a wrong grace period would add. */
function expectGrace(tookMs: number, { seconds, wrongSeconds }: { seconds: number; wrongSeconds: number }): void {
  expect(tookMs).toBeGreaterThan(1000 * seconds - 500)
  expect(tookMs).toBeLessThan((1000 * (seconds + wrongSeconds)) / 2)
}

async function restartContainerd(): Promise<void> {
  await floor().stopProgram("containerd", "SIGKILL")
  await floor().startProgram("containerd")
}

test("one of two containers is restarted; the pod, its volumes and the other container stay", async () => {
  const story = await begin()
  await story.agent()
  // It prints nothing more after this, so its log is whole with its last line.
  const script = `echo start >>/data/starts; ls /mark; touch /mark; cat /data/hook; echo "starts $(wc -l </data/starts)"; ${polite}`
  const app = {
    name: "app",
    command: shell(script),
    volumeMounts: [{ name: "data", mountPath: "/data" }],
    lifecycle: { preStop: { exec: { command: shell("echo preStop >/data/hook") } } },
  }
  const before = await story.start([app, { name: "sidecar" }], { volumes: [{ name: "data", emptyDir: {} }] })
  const logWith = (line: string) =>
    until(`a log with ${line}`, async () => {
      const log = await floor().kubectlRun("logs", "-n", story.namespace, "web", "-c", "app")
      return log.includes(line) && log
    })
  await logWith("starts 1")
  await story.request("restart", ["app"])
  const request = await story.completed("restart")
  expect(readyOf(request)).toMatchObject({ status: "True", reason: "Succeeded" })
  const after = await story.pod()
  expect(containerOf(after, "app")).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 0 } } })
  expect(containerOf(after, "sidecar")).toEqual(containerOf(before, "sidecar"))
  expect([after.metadata.uid, after.status.podIP]).toEqual([before.metadata.uid, before.status.podIP])
  expect(request.status.containerStatusSnapshot).toMatchObject([
    { name: "app", ready: true, restartCount: 1, containerID: containerOf(after, "app").containerID },
  ])
  // The volume is the same, the files of the container are new, and preStop ran before it ended.
  const log = await logWith("starts 2")
  expect(log).toContain("preStop")
  expect(log).not.toMatch(/^\/mark$/m)
})

test("the grace period is kept to the second, preStop included, and ordered containers come one after the other", async () => {
  const story = await begin()
  await story.agent()
  const command = shell(stubborn)
  const lifecycle = { preStop: { sleep: { seconds: 8 } } }
  await story.start([{ name: "stubborn", command, lifecycle }, { name: "next" }, { name: "plain", command }], {
    terminationGracePeriodSeconds: 8,
  })
  const strategy = { orderedRecreate: true, terminationGracePeriodSeconds: 10 }
  await story.request("restart", ["stubborn", "next"], { strategy })
  await story.request("pods-own", ["plain"])
  const request = await story.completed("restart")
  const [first, second] = request.status.containerRecreateStates
  expect([first.phase, second.phase]).toEqual(["Succeeded", "Succeeded"])
  const { lastState, state } = containerOf(await story.pod(), "stubborn")
  expect(lastState.terminated.exitCode).toBe(137)
  expectGrace(await tookMs(first), { seconds: 10, wrongSeconds: 10 + 8 })
  expect(Date.parse(second.stopTime)).toBeGreaterThan(Date.parse(state.running.startedAt))
  const own = stateOf(await story.completed("pods-own"), "plain")
  expectGrace(await tookMs(own), { seconds: 8, wrongSeconds: 30 })
})

/** What a stop takes that is interrupted, and how much of it has passed when it goes on. */
const [longSeconds, passedSeconds] = [16, 8]

test("an agent killed during a stop: the next one ends it for the same container, with what is left", async () => {
  const story = await begin()
  const kill = await story.agent()
  const before = await story.start([{ name: "stubborn", command: shell(stubborn) }])
  await story.request("restart", ["stubborn"], { strategy: { terminationGracePeriodSeconds: longSeconds } })
  const began = Date.parse(await story.stopHasBegun("restart"))
  await kill()
  // A part of the grace period passes without an agent; the next one must not begin from the start.
  await until("a part of the grace period has passed", async () => Date.now() > began + 1000 * passedSeconds)
  expect(containerOf(await story.pod(), "stubborn").state).toHaveProperty("running")
  await story.agent()
  await expectOneStop(story, before)
})

test("containerd killed during a stop: the agent ends it for the same container, with what is left", async () => {
  const story = await begin()
  await story.agent()
  const before = await story.start([{ name: "stubborn", command: shell(stubborn) }])
  await story.request("restart", ["stubborn"], { strategy: { terminationGracePeriodSeconds: longSeconds } })
  await story.stopHasBegun("restart")
  await restartContainerd()
  expect(containerOf(await story.pod(), "stubborn").state).toHaveProperty("running")
  await expectOneStop(story, before)
})

test("an agent that stands still during a stop: containerd kills all the same, and nothing else is stopped later", async () => {
  const story = await begin()
  const access = await serviceAccountAccess(story.namespace, "program", rulesFor(agentPermissions))
  const agent = startProgram("bin/aim", [
    ...["agent", "--node-name", realNode, "--cri-socket", floor().containerdSocket],
    ...["--kubeconfig", kubeconfigFor(access)],
  ])
  const command = shell("trap 'echo TERM' TERM; while :; do sleep 1; done")
  await story.start([{ name: "stubborn", command }, { name: "other" }])
  // Time to read a log before it is over, on a busy machine too.
  await story.request("restart", ["stubborn"], { strategy: { terminationGracePeriodSeconds: 15 } })
  const log = () => floor().kubectlRun("logs", "-n", story.namespace, "web", "-c", "stubborn")
  await until("the container has its SIGTERM", async () => (await log()).includes("TERM"))
  agent.kill("SIGSTOP")
  expect(readyOf(await story.completed("restart")).status).toBe("True")
  const after = containerOf(await story.pod(), "stubborn")
  expect([after.restartCount, after.lastState.terminated.exitCode]).toEqual([1, 137])

  agent.kill("SIGCONT")
  await story.request("other", ["other"])
  expect(readyOf(await story.completed("other")).status).toBe("True")
  expect(containerOf(await story.pod(), "stubborn").containerID).toBe(after.containerID)
})

/** The recorded container was killed at the end of its grace period, and started once. */
async function expectOneStop(story: Awaited<ReturnType<typeof begin>>, before: Json): Promise<void> {
  const state = stateOf(await story.completed("restart"), "stubborn")
  const { containerID } = containerOf(before, "stubborn")
  expect(state).toMatchObject({ phase: "Succeeded", containerID })
  const { restartCount, lastState } = containerOf(await story.pod(), "stubborn")
  expect([restartCount, lastState.terminated]).toMatchObject([1, { exitCode: 137, containerID }])
  expectGrace(await tookMs(state), { seconds: longSeconds, wrongSeconds: longSeconds + passedSeconds })
}

// Twice of two runs at a load of 10 the kubelet did not report the back-off within 120 s, and it is not known why: it is in
// the long form until then.
const onlyLong = test.skipIf(process.env.AIM_RUNS === undefined)
onlyLong(
  "agent and containerd killed between stop and start: the kubelet starts the container once, and reports its back-off",
  async () => {
    const story = await begin()
    const kill = await story.agent()
    await story.start([{ name: "app", command: shell(polite) }])
    // The kubelet starts the container at once the first time, after ten seconds the second, after twenty the third, after
    // forty the fourth: enough for a containerd and an agent that start on a busy machine. Twenty were not.
    for (const name of ["first", "second", "third"]) {
      await story.request(name, ["app"])
      await story.completed(name)
    }
    await story.request("fourth", ["app"])
    await until("the container has ended", async () => !containerOf(await story.pod(), "app").state.running)
    await Promise.all([kill(), restartContainerd()])
    expect(containerOf(await story.pod(), "app").restartCount).toBe(3)
    const waiting = await until("the back-off is reported", async () => {
      const ready = readyOf(await story.of("fourth"))
      return ready?.reason === "WaitingForBackOff" ? ready : undefined
    })
    expect(waiting.message).toMatch(/waits with its start until \d{4}-/)
    expect(readyOf(await story.completed("fourth")).status).toBe("True")
    expect(containerOf(await story.pod(), "app")).toMatchObject({
      restartCount: 4,
      lastState: { terminated: { exitCode: 0, containerID: stateOf(await story.of("fourth"), "app").containerID } },
    })
  },
)

test("what needs another object is reported within a second, in the status, in an event and by aim why", async () => {
  const story = await begin()
  const { namespace } = story
  const pods = `/api/v1/namespaces/${namespace}/pods`
  const { api, kubectlRun } = floor()
  const containers = [{ name: "app", image }]
  const setup = { name: "setup", image, command: ["true"] }
  const [, staticPod] = await Promise.all([
    story.start([{ name: "app" }], { initContainers: [setup] }),
    startStaticPod(namespace, "static", { containers }),
    api.create(pods, { metadata: { name: "waiting" }, spec: { schedulerName: "none", containers } }),
    startTerminating(story),
    startOnWindows(namespace, { containers }),
  ])
  const cases: Record<string, { spec: Json; reason: string; words: string; container?: string }> = {
    wrong: { spec: {}, container: "nothing", reason: "ContainerNotFound", words: "write one of app" },
    init: { spec: {}, container: "setup", reason: "InitContainer", words: "setup is an init container" },
    missing: { spec: { podName: "nothing" }, reason: "PodNotFound", words: "pod nothing is not in this namespace" },
    unscheduled: { spec: { podName: "waiting" }, reason: "PodNotScheduled", words: "is not on a node yet" },
    terminating: { spec: { podName: "terminating" }, reason: "PodTerminating", words: "is being deleted" },
    static: { spec: { podName: staticPod }, reason: "StaticPod", words: "touch its file on the node" },
    windows: { spec: { podName: "windows" }, reason: "WindowsPod", words: "is for Windows, where no agent runs" },
  }
  const began = Date.now()
  await Promise.all(
    Object.entries(cases).map(async ([name, { spec, container = "app", reason, words }]) => {
      await story.request(name, [container], spec)
      const request = await story.completed(name)
      expect(readyOf(request), name).toMatchObject({
        status: "False",
        reason,
        message: expect.stringContaining(words),
      })
      expect(conditionOf(request, "Stalled"), name).toMatchObject({ status: "True", reason })
    }),
  )
  // A second on a quiet machine. What is not told at once is told after a minute.
  expect(Date.now() - began).toBeLessThan(30_000)
  await until("the events are there", async () => {
    const printed = await kubectlRun("get", "events", "-n", namespace, "-o", "jsonpath={.items[*].reason}")
    return Object.values(cases).every(({ reason }) => printed.split(" ").includes(reason))
  })
  for (const name of ["terminating", "static", "windows"])
    expect(await aim("why", `crr/${name}`, "-n", namespace)).toContain(cases[name]!.words)
})

/** A pod from a file of the node; its mirror's name is returned once the server has it. */
async function startStaticPod(namespace: string, name: string, spec: Json): Promise<string> {
  const { folder, api } = floor()
  const file = join(staticPods(folder), `${namespace}.json`)
  writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec }))
  onTestFinished(() => rmSync(file))
  const mirror = `${name}-${realNode}`
  await until("the mirror pod", () => api.find(`/api/v1/namespaces/${namespace}/pods/${mirror}`))
  return mirror
}

/** A pod that is deleted, and has not ended. */
async function startTerminating(story: Awaited<ReturnType<typeof begin>>): Promise<void> {
  const { api } = floor()
  const path = `/api/v1/namespaces/${story.namespace}/pods/terminating`
  await story.start([{ name: "app", command: shell(stubborn) }], { terminationGracePeriodSeconds: 300 }, "terminating")
  onTestFinished(() => api.remove(path, { gracePeriodSeconds: 0 }))
  await api.remove(path)
}

/** A pod on a node that exists in the API only. */
async function startOnWindows(namespace: string, spec: Json): Promise<void> {
  const { api } = floor()
  const nodeName = `windows-${namespace}`
  await api.create("/api/v1/nodes", { metadata: { name: nodeName, labels: { "kubernetes.io/os": "windows" } } })
  onTestFinished(() => api.remove(`/api/v1/nodes/${nodeName}`))
  const pods = `/api/v1/namespaces/${namespace}/pods`
  await api.create(pods, { metadata: { name: "windows" }, spec: { nodeName, os: { name: "windows" }, ...spec } })
  // No kubelet confirms its end.
  onTestFinished(() => api.remove(`${pods}/windows`, { gracePeriodSeconds: 0 }))
}
