import { describe, expect, test } from "vitest"
import type { Json, Obj } from "../../object.ts"
import type { NodeRuntime } from "../container-runtime/index.ts"
import { nodeLifecycle } from "../kube-controllers/node-lifecycle.ts"
import { type TestWorldOptions, testWorld } from "./test-world.ts"

const MB = 1_000_000

/** A node whose disk holds ten images of 10 MB. */
function world(options: TestWorldOptions = {}) {
  const made = testWorld({ disk: { capacityBytes: 100 * MB }, more: [nodeLifecycle], ...options })
  const runtime = made.cluster.node("node-0")?.runtime as NodeRuntime
  const load = (name: string) => {
    made.registries.push(`ghcr.io/${name}:1`, { sizeBytes: 10 * MB })
    made.machines.loadImage("node-0", `ghcr.io/${name}:1`)
  }
  return {
    ...made,
    runtime,
    load,
    run: (name: string) => made.create(name, { containers: [{ name: "app", image: `ghcr.io/${name}:1` }] }),
    images: () =>
      [...runtime.images.all()].flatMap(({ tags }) => [...tags].map(tag => /\/(.*):/.exec(tag)?.[1])).sort(),
    object: () => made.storage.get(made.kind("Node"), { name: "node-0" }) as Obj,
  }
}

const pressure = ({ status }: Obj) => status.conditions.find(({ type }: Json) => type === "DiskPressure")
const calm = { imageCollection: { pressureBelowPercent: 0 } }

describe("the kubelet's image garbage collection", () => {
  test("from 85 % on: the least recently used go, down to 80 %, and images in use stay", async () => {
    const each = world(calm)
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) each.load(name)
    each.run("a")
    each.run("b")
    await each.advance("7m")
    each.remove("b", 0) // used until now, so it goes last
    await each.advance("1h")
    expect(each.images()).toHaveLength(8) // 80 % is not too much
    each.load("i")
    await each.advance("6m")
    expect(each.images()).toEqual(["a", "b", "d", "e", "f", "g", "h", "i"])
    for (const name of ["j", "k"]) each.load(name)
    await each.advance("6m")
    expect(each.images()).toEqual(["a", "b", "f", "g", "h", "i", "j", "k"])
    expect(each.events("node-0").filter(text => /FreeDiskSpaceFailed/.test(text))).toEqual([])
  })

  test("spares images that it first saw less than two minutes ago, and reports that it found too little", async () => {
    const each = world(calm)
    await each.advance("4m")
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h", "i"]) each.load(name)
    await each.advance("1m1s")
    expect(each.images()).toHaveLength(9)
    expect(each.events("node-0").at(-1)).toBe(
      "Warning FreeDiskSpaceFailed Failed to garbage collect required amount of images. Attempted to free 10000000 bytes, but only found 0 bytes eligible to free.",
    )
    await each.advance("5m")
    expect(each.images()).toHaveLength(8)
  })

  test("a dead kubelet collects nothing until it is back", async () => {
    const each = world(calm)
    each.machines.stopKubelet("node-0")
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h", "i"]) each.load(name)
    await each.advance("1h")
    expect(each.images()).toHaveLength(9)
    each.machines.startKubelet("node-0")
    await each.advance("11m")
    expect(each.images()).toHaveLength(8)
  })

  test("with less than 15 % free the node has DiskPressure, all unused images go, and five minutes later it ends", async () => {
    const each = world()
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) each.load(name)
    each.run("a")
    await each.advance("4m")
    expect(pressure(each.object()).status).toBe("False")
    each.runtime.images.disk.set({ otherBytes: 6 * MB })
    await each.advance("11s")
    expect(pressure(each.object())).toMatchObject({ status: "True", reason: "KubeletHasDiskPressure" })
    expect(each.object().spec.taints).toMatchObject([{ key: "node.kubernetes.io/disk-pressure", effect: "NoSchedule" }])
    expect(each.images()).toEqual(["a"])
    await each.advance("4m")
    expect(pressure(each.object()).status).toBe("True")
    await each.advance("2m")
    expect(pressure(each.object()).status).toBe("False")
    expect(each.object().spec.taints).toBeUndefined()
  })

  test("costs nothing as long as there is room", async () => {
    const each = world()
    for (const name of ["a", "b"]) each.load(name)
    await each.advance("1m")
    expect(each.clock.nextAt()).toBeUndefined()
  })
})

describe("a runtime that does not answer", () => {
  const ready = ({ status }: Obj) => status.conditions.find(({ type }: Json) => type === "Ready")

  test("makes the node not ready after half a minute, and ready again when it is back", async () => {
    const each = world({ disk: {} })
    each.run("a")
    await each.advance("10s")
    each.runtime.die()
    await each.advance("29s")
    expect(ready(each.object()).status).toBe("True")
    await each.advance("2s")
    expect(ready(each.object())).toMatchObject({ status: "False", message: "container runtime is down" })
    expect(each.object().spec.taints[0].key).toBe("node.kubernetes.io/not-ready")
    each.runtime.revive()
    await each.advance("6s")
    expect(ready(each.object()).status).toBe("True")
    expect(each.object().spec.taints).toBeUndefined()
    expect(each.pod("a")?.status.containerStatuses[0]).toMatchObject({ restartCount: 0, ready: true })
  })
})
