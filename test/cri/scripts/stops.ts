import { sleep } from "#runtime/clock.ts"
import { containersOf, noteState, outcome, type Script, startOne, timed, until } from "../harness/script.ts"

export const stops: Script[] = [
  {
    name: "a stubborn container is killed at the end of its grace period",
    async run(scene) {
      const { id } = await startOne(scene, { behaviour: "stubborn" })
      await timed(scene, "stop", 3, scene.runtime.stopContainer(id, { graceSeconds: 3 }))
      await noteState(scene, "afterwards", id)
    },
  },
  {
    name: "without a grace period a container is killed at once",
    async run(scene) {
      const { id } = await startOne(scene, { behaviour: "polite" })
      await timed(scene, "stop", 0, scene.runtime.stopContainer(id, { graceSeconds: 0 }))
      await noteState(scene, "afterwards", id)
    },
  },
  {
    name: "no kill follows when the caller of a stop is gone, and the next stop starts from the beginning",
    async run(scene) {
      const { runtime, clock, note } = scene
      const { id } = await startOne(scene, { behaviour: "stubborn" })
      const gone = new AbortController()
      const stop = runtime.stopContainer(id, { graceSeconds: 4 }, { signal: gone.signal })
      const how = stop.then(
        () => "answered",
        error => String(error),
      )
      await sleep(clock, 1000)
      gone.abort(new Error("the caller is gone"))
      note("stop", await how)
      await sleep(clock, 5000)
      await noteState(scene, "after its grace period", id)
      await timed(scene, "the next stop", 2, runtime.stopContainer(id, { graceSeconds: 2 }))
      await noteState(scene, "afterwards", id)
    },
  },
  {
    name: "no kill follows, however and whenever the caller goes away",
    async run(scene) {
      const { clock, note } = scene
      const ways = { "at once": 0, late: 3000, "connection closed": 1000 }
      const names = Object.keys(ways).map(way => way.replace(" ", "-"))
      const uid = await scene.startPod({
        name: `ways-${scene.id}`,
        restartPolicy: "Never",
        graceSeconds: 1,
        containers: names.map(name => ({ name, behaviour: "stubborn" })),
      })
      const found = await containersOf(scene, uid)
      const went = Object.entries(ways).map(async ([way, afterMs], index) => {
        const id = found.find(({ name }) => name === names[index])?.id ?? ""
        const own = scene.connect()
        const gone = new AbortController()
        const stop = own.stopContainer(id, { graceSeconds: 6 }, { signal: gone.signal }).then(
          () => "answered",
          () => "not answered",
        )
        await sleep(clock, afterMs)
        if (way === "connection closed") own.close()
        else gone.abort(new Error("the caller is gone"))
        const how = await stop
        await sleep(clock, 8000 - afterMs)
        own.close()
        return { way, id, how }
      })
      for (const { way, id, how } of await Promise.all(went)) {
        note(way, how)
        await noteState(scene, `${way}, after its grace period`, id)
      }
    },
  },
  {
    name: "a caller that stands still is not gone: the kill follows",
    async run(scene) {
      const { runtime } = scene
      const { id } = await startOne(scene, { behaviour: "stubborn" })
      const end = await scene.freezeDuringStop(id, { graceSeconds: 2 })
      try {
        await until(scene, "its end", async () => (await runtime.containerStatus(id))?.state === "Exited")
        await noteState(scene, "afterwards", id)
      } finally {
        end()
      }
    },
  },
  {
    name: "of two stops at once the shorter one ends both",
    async run(scene) {
      const { runtime } = scene
      const { id } = await startOne(scene, { behaviour: "stubborn" })
      const long = timed(scene, "stop", 2, runtime.stopContainer(id, { graceSeconds: 30 }))
      const short = timed(scene, "stop", 2, runtime.stopContainer(id, { graceSeconds: 2 }))
      await Promise.all([long, short])
      await noteState(scene, "afterwards", id)
    },
  },
  {
    name: "commands in a container",
    async run(scene) {
      const { runtime, note } = scene
      const { id } = await startOne(scene, { behaviour: "polite" })
      const run = (timeoutSeconds: number, ...command: string[]) => runtime.execSync(id, { command, timeoutSeconds })
      note("success", await run(20, "echo", "hello"))
      note("failure", await run(20, "sh", "-c", "echo out; echo err >&2; exit 3"))
      await timed(scene, "too slow", 1, run(1, "sleep", "20"))
      note("no such command", { ...(await outcome(run(20, "/bin/nothing"))), said: undefined })
      await runtime.stopContainer(id, { graceSeconds: 1 })
      note("in a dead container", { ...(await outcome(run(20, "true"))), said: undefined })
    },
  },
]
