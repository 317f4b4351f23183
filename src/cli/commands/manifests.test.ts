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

describe("the dashboard", () => {
  const pod = async (line: string) => {
    const found = (await printed(line)).find(({ kind }) => kind === "Deployment") as Deployment
    return found.spec.template.spec
  }
  test("has no rights, no token, and the name by which it is addressed", async () => {
    const all = await printed("dashboard --host aim.example.com --base-path /aim")
    expect(all.map(({ kind }) => kind)).toEqual([
      ...["Namespace", "ServiceAccount", "NetworkPolicy", "Service", "Deployment"],
    ])
    const { automountServiceAccountToken, containers, volumes } = await pod(
      "dashboard --host aim.example.com --base-path /aim",
    )
    expect(automountServiceAccountToken).toBe(false)
    expect(containers[0]!.args.join(" ")).toBe(
      "dashboard --in-cluster --host aim.example.com --port 8080 --base-path /aim",
    )
    expect(containers[0]!.readinessProbe.httpGet).toMatchObject({
      ...{ path: "/aim/", scheme: "HTTP", httpHeaders: [{ name: "Host", value: "aim.example.com" }] },
    })
    expect(volumes).toEqual([{ name: "authority", configMap: { name: "kube-root-ca.crt" } }])
  })
  test("serves TLS with a Secret, and operates where that is asked for", async () => {
    const { containers, volumes } = await pod("dashboard --host aim.example.com --tls-secret aim-tls --operate")
    expect(containers[0]!.args.join(" ")).toContain(
      "--operate --tls-cert /etc/aim/tls/tls.crt --tls-key /etc/aim/tls/tls.key",
    )
    expect(containers[0]!.readinessProbe.httpGet.scheme).toBe("HTTPS")
    expect(volumes).toContainEqual({ name: "tls", secret: { secretName: "aim-tls" } })
  })
  test("is no part of all, which takes no flag of its", async () => {
    const names = (await printed("all")).map(({ metadata }) => (metadata as { name: string }).name)
    expect(names).not.toContain("aim-dashboard")
    const refused: Record<string, string> = {
      dashboard: "the dashboard of a cluster needs the name that browsers use",
      "dashboard --host a/b": "--host: a/b is not a host",
      "dashboard --host a:70000": "--host: a:70000 is not a host",
      "dashboard --host a --base-path aim": "--base-path: aim is not a path: write one such as /aim",
      "dashboard --host a --tls-secret A_B": "--tls-secret: A_B is not the name of a Secret",
      "all --host a": "--host is for the dashboard, and all has none: write manifests dashboard",
      "rbac --operate": "--operate is for the dashboard, and rbac has none",
    }
    for (const [line, message] of Object.entries(refused)) await expect(printed(line), line).rejects.toThrow(message)
  })
})

type Deployment = {
  spec: {
    template: {
      spec: {
        automountServiceAccountToken: boolean
        containers: {
          args: string[]
          readinessProbe: { httpGet: { path: string; scheme: string; httpHeaders: { name: string; value: string }[] } }
        }[]
        volumes: unknown[]
      }
    }
  }
}
