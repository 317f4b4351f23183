import { noteState, outcome, type Script, startOne } from "../harness/script.ts"

export const restart: Script[] = [
  {
    name: "a runtime that is killed during a stop, and started again",
    alone: true,
    async run(scene) {
      const { runtime, note } = scene
      const mounted = scene.connectMounted()
      const { id } = await startOne(scene, { behaviour: "stubborn" })
      note("through a mount", await outcome(mounted.version()))
      const stop = outcome(runtime.stopContainer(id, { graceSeconds: 20 }))
      // The stop is under way when a later call has been answered.
      await noteState(scene, "during the stop", id)
      await scene.killRuntime()
      note("the stop", { ...(await stop), said: undefined })
      note("through the path, while it is dead", { ...(await outcome(runtime.version())), said: undefined })
      // Its open connection may not be seen to be broken yet; then the first call breaks with it.
      await outcome(mounted.version())
      note("through the mount, while it is dead", { ...(await outcome(mounted.version())), said: undefined })
      await scene.startRuntime()
      note("through the path", await outcome(runtime.version()))
      note("through the mount", { ...(await outcome(mounted.version())), said: undefined })
      await noteState(scene, "the container", id)
      note("stopped", await outcome(runtime.stopContainer(id, { graceSeconds: 1 })))
      await noteState(scene, "afterwards", id)
      mounted.close()
    },
  },
]
