import { describe, expect, test } from "vitest"
import { read } from "./agent.ts"

const usual = { stopsPerMinute: "10", pullsPerNode: "2", imageGcHighThreshold: "85", logLevel: "info" }
const given = (options: Record<string, unknown>, variables: Record<string, string> = {}) =>
  read({ options: { ...usual, ...options } }, variables)

describe("agent", () => {
  test("the name of the node comes from the flag, or from the variable that the DaemonSet sets", () => {
    expect(given({ nodeName: "worker-1" })).toMatchObject({ nodeName: "worker-1", limits: { stopsPerMinute: 10 } })
    expect(given({}, { NODE_NAME: "worker-2" }).nodeName).toBe("worker-2")
    expect(given({ nodeName: "worker-1" }, { NODE_NAME: "worker-2" }).nodeName).toBe("worker-1")
  })
  test("its limits are the flags", () =>
    expect(given({ nodeName: "n", stopsPerMinute: "3", pullsPerNode: "5", imageGcHighThreshold: "70" }).limits).toEqual(
      { stopsPerMinute: 3, pullsPerNode: 5, imageGcHighThresholdPercent: 70 },
    ))
  test("what it does not understand is refused with what to write", () => {
    expect(() => given({})).toThrow("--node-name is missing: write the name of the node")
    expect(() => given({ nodeName: "a,status.phase=b" })).toThrow("is not the name of a node")
    expect(() => given({ nodeName: "n", criSocket: "containerd.sock" })).toThrow("is not an absolute path")
    expect(() => given({ nodeName: "n", stopsPerMinute: "0" })).toThrow(
      "--stops-per-minute: 0 is not a number from 1 to 9999",
    )
    expect(() => given({ nodeName: "n", pullsPerNode: "all" })).toThrow("--pulls-per-node: all is not a number")
    expect(() => given({ nodeName: "n", imageGcHighThreshold: "101" })).toThrow(
      "--image-gc-high-threshold: 101 is not a percentage from 1 to 100",
    )
    expect(() => given({ nodeName: "n", metricsPort: "http" })).toThrow("http is not a port")
  })
})
