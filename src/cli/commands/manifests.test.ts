import { describe, expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import type { View } from "../command.ts"
import { parse } from "../program.ts"
import { testCluster, testWorld } from "../test-world.ts"
import { commands } from "../tree.ts"
import { run } from "./manifests.ts"

const view: View = { isTerminal: false, columns: 80, colours: false }

async function printed(line: string): Promise<Record<string, unknown>[]> {
  const decided = parse(`manifests ${line}`.trim().split(" "), { program: "aim", version: "1.2.3", view, commands })
  if (decided.do !== "run") throw new Error(JSON.stringify(decided))
  const { text } = await run(decided.input, testWorld(testCluster()).world)
  return parseAllDocuments(text).map(document => document.toJS())
}

const socketsOf = async (line: string) =>
  (await printed(line))
    .filter(({ kind }) => kind === "DaemonSet")
    .map(({ spec }) => (spec as { template: { spec: { volumes: unknown[] } } }).template.spec.volumes)
const mounting = (path: string) => [[{ name: "runtime", hostPath: { path, type: "Socket" } }]]

describe("the agents", () => {
  test("are part of all, with containerd's socket unless another is named", async () => {
    for (const section of ["", "all", "agent"]) {
      expect(await socketsOf(section)).toEqual(mounting("/run/containerd/containerd.sock"))
      const other = "/run/k3s/containerd/containerd.sock"
      expect(await socketsOf(`${section} --cri-socket ${other}`.trim())).toEqual(mounting(other))
    }
  })
  test("are left out by --no-agent, and nothing else is", async () => {
    const nameOf = ({ kind, metadata }: Record<string, unknown>) => `${kind}/${(metadata as { name: string }).name}`
    const [all, without, agents] = await Promise.all(
      ["all", "all --no-agent", "agent"].map(async line => (await printed(line)).map(nameOf)),
    )
    expect(without!.length).toBeGreaterThan(0)
    expect(all).toEqual([...without!, ...agents!])
  })
  test("a section without agents takes no flag of theirs, and a contradiction is refused", async () => {
    const refused: Record<string, string> = {
      "crds --cri-socket /run/a.sock": "crds has none: write agent --cri-socket /run/a.sock",
      "rbac --no-agent": "--no-agent leaves the agents out of all: leave it out of rbac",
      "agent --no-agent": "--no-agent leaves the agents out of all: leave it out of agent",
      "all --no-agent --cri-socket /run/a.sock": "write one of the two",
      "all --cri-socket run/a.sock": "run/a.sock is not the path of a socket",
    }
    for (const [line, message] of Object.entries(refused)) await expect(printed(line), line).rejects.toThrow(message)
  })
})
