import { kubeletAnnotations, kubeletLabels, recordedBy } from "#runtime/cri/index.ts"
import { containersOf, noteState, outcome, type Script, startOne, timed, until } from "../harness/script.ts"

const unknown = "f".repeat(64)

export const containers: Script[] = [
  {
    name: "a pod's containers, as the kubelet made them",
    async run(scene) {
      const { runtime, note } = scene
      const uid = await scene.startPod({
        name: `two-${scene.id}`,
        restartPolicy: "Always",
        graceSeconds: 7,
        containers: [
          { name: "plain", behaviour: "polite" },
          {
            ...{ name: "rich", behaviour: "stubborn", ports: [{ name: "admin", containerPort: 9000 }] },
            preStop: { httpGet: { path: "/bye", port: "admin", scheme: "HTTP" } },
          },
        ],
      })
      const [plain, rich, ...more] = await containersOf(scene, uid)
      if (!plain || !rich) throw new Error("two containers run")
      note("further containers", more)
      for (const { createdAt: _, annotations, ...container } of [plain, rich]) {
        const { [kubeletAnnotations.hash]: hash = "", ...noted } = annotations
        note(container.name, { ...container, annotations: noted, hasHash: /^[0-9a-f]+$/.test(hash) })
      }
      note("recorded of rich", recordedBy(rich))
      const {
        createdAt: _,
        startedAt = 0,
        annotations: __,
        labels: ___,
        ...status
      } = (await runtime.containerStatus(plain.id)) ?? expectThere("status")
      note("status", { ...status, isStarted: startedAt >= plain.createdAt })
      const image = (await runtime.imageStatus(status.imageRef)) ?? expectThere("image")
      note("its image has the ID of the list", image.id === plain.imageId)

      const sandbox = (await runtime.podSandboxStatus(plain.podSandboxId)) ?? expectThere("sandbox")
      note("sandbox", sandbox)
      const named = async (filter: Parameters<typeof runtime.listContainers>[0]) =>
        (await runtime.listContainers(filter)).map(({ name }) => name).sort()
      const byUid = { [kubeletLabels.podUid]: uid }
      note("by ID", await named({ id: rich.id }))
      note("by sandbox", await named({ podSandboxId: rich.podSandboxId }))
      note("by two labels", await named({ labels: { ...byUid, [kubeletLabels.containerName]: "plain" } }))
      note("by a label that is not there", await named({ labels: { ...byUid, more: "no" } }))
    },
  },
  {
    name: "IDs that no container has",
    async run({ runtime, note }) {
      note("status", await runtime.containerStatus(unknown))
      note("sandbox", await runtime.podSandboxStatus(unknown))
      note("list", await runtime.listContainers({ id: unknown }))
      note("stop", await outcome(runtime.stopContainer(unknown, { graceSeconds: 1 })))
      const { said: _, ...exec } = said(
        await outcome(runtime.execSync(unknown, { command: ["true"], timeoutSeconds: 1 })),
      )
      note("exec", exec)
    },
  },
  {
    name: "a polite container is stopped, stays as a dead one, and the kubelet starts another",
    async run(scene) {
      const { runtime, note } = scene
      const { id, labels } = await startOne(scene, { behaviour: "polite", restartPolicy: "Always" })
      await timed(scene, "stop", 0, runtime.stopContainer(id, { graceSeconds: 30 }))
      await noteState(scene, "the stopped one", id)
      const uid = labels[kubeletLabels.podUid] ?? ""
      const both = await until(scene, "the next container", async () => {
        const found = await containersOf(scene, uid)
        return found.length === 2 && found[1]?.state === "Running" && found
      })
      note(
        "containers",
        both.map(({ name, attempt, state, id, annotations }) => ({
          ...{ id, name, attempt, state, restartCount: annotations[kubeletAnnotations.restartCount] },
        })),
      )
      note("in one sandbox", new Set(both.map(each => each.podSandboxId)).size)
      await timed(scene, "stop of the dead one", 0, runtime.stopContainer(id, { graceSeconds: 30 }))
      note("the next one", (await runtime.containerStatus(both[1]?.id ?? ""))?.state)
    },
  },
]

const said = (outcome: object) => outcome as { said?: string }

function expectThere(what: string): never {
  throw new Error(`there is no ${what}`)
}
