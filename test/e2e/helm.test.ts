import { join } from "node:path"
import { expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import { kindNames } from "#api/names.ts"
import type { Json } from "#test/support/floor.ts"
import { type Helm, helmFor, useHelm } from "#test/support/helm.ts"
import { runProgram } from "#test/support/program.ts"
import { repository } from "#tools/kube/folders.ts"

useHelm()

const chart = join(repository, "charts/aim")
const objects = (text: string): Json[] => parseAllDocuments(text).map(document => document.toJS())
const nameOf = ({ kind, metadata }: Json) => `${kind}/${metadata.name}`
/** By name, so that a difference is shown in the object that has it. */
const byName = (all: Json[]) => Object.fromEntries(all.map(object => [nameOf(object), object]))

/** As on a server that has the newest of the kinds. */
const rendered = async (helm: Helm, ...args: string[]) => {
  const served = ["--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"]
  const all = objects(await helm("template", "aim", chart, ...served, ...args))
  expect(new Set(all.map(nameOf)).size).toBe(all.length)
  return byName(all)
}

const printed = async (...args: string[]): Promise<Record<string, Json>> => {
  const { code, stdout, output } = await runProgram("bin/aim", ["manifests", "all", ...args])
  expect(code, output).toBe(0)
  // Helm makes the namespace of the release. That of the agents is the chart's, because of its label.
  const all = objects(stdout).filter(({ kind, metadata }) => kind !== "Namespace" || metadata.name === "aim-agents")
  for (const { kind, metadata } of all)
    if (kind === "CustomResourceDefinition") metadata.annotations = { "helm.sh/resource-policy": "keep" }
  return byName(all)
}

test("the chart installs what aim manifests prints, object by object, for another namespace, image and kinds too", async () => {
  const helm = await helmFor()
  expect(await helm("lint", chart, "--strict")).toContain("1 chart(s) linted, 0 chart(s) failed")
  expect(await rendered(helm, "--namespace", "aim-system")).toEqual(await printed("--no-agent"))

  const image =
    "registry.example.com:5000/team/aim:1@sha256:0123456789012345678901234567890123456789012345678901234567890123"
  const kinds = [
    ["dicoms", "services.example.com"],
    ["shops", "example.org"],
  ]
  const sets = kinds.flatMap(([plural, group], i) => ["--set", `for[${i}].plural=${plural},for[${i}].group=${group}`])
  const flags = kinds.flatMap(([plural, group]) => ["--for", `${plural}.${group}`])
  expect(await rendered(helm, "--namespace", "123", "--set", `image=${image}`, ...sets)).toEqual(
    await printed("--namespace", "123", "--image", image, "--no-agent", ...flags),
  )

  const socket = "/run/k3s/containerd/containerd.sock"
  const agent = ["--set", `agent.enabled=true,agent.criSocket=${socket}`]
  expect(await rendered(helm, "--namespace", "aim-system", "--set", `image=${image}`, ...agent)).toEqual(
    await printed("--image", image, "--cri-socket", socket),
  )
})

test("an option adds what it says and changes nothing else", async () => {
  const helm = await helmFor()
  const plain = await rendered(helm)
  const added = async (...sets: string[]) => {
    const all = await rendered(helm, ...sets.flatMap(set => ["--set", set]))
    const differs = (name: string) => JSON.stringify(all[name]) !== JSON.stringify(plain[name])
    return Object.fromEntries(
      [...new Set(Object.keys({ ...plain, ...all }))].filter(differs).map(name => [name, all[name]]),
    )
  }
  const gone = await added("networkPolicy.enabled=false", "crds.install=false")
  expect(gone).toEqual({
    "NetworkPolicy/aim-controller": undefined,
    ...Object.fromEntries(
      kindNames.map(({ plural, group }) => [`CustomResourceDefinition/${plural}.${group}`, undefined]),
    ),
  })
  const two = await added("replicas=2", "podDisruptionBudget.enabled=true", "resources.limits.memory=1Gi")
  expect(two).toMatchObject({
    "Deployment/aim-controller": {
      spec: {
        replicas: 2,
        template: { spec: { containers: [{ resources: { requests: { cpu: "50m" }, limits: { memory: "1Gi" } } }] } },
      },
    },
    "PodDisruptionBudget/aim-controller": { spec: { maxUnavailable: 1 } },
  })
  expect(Object.keys(two)).toHaveLength(2)
  const reached = await added(
    "allowEgress[0]=shop=prometheus.monitoring.svc:9090,allowEgress[1]=*=10.0.0.7:443",
    "sharedNamespaces[0]=monitoring",
    "metricsServer=http://prometheus.monitoring.svc:9090",
  )
  expect(Object.keys(reached)).toEqual(["Deployment/aim-controller"])
  expect(reached["Deployment/aim-controller"].spec.template.spec.containers[0].args.slice(-4)).toEqual([
    "--allow-egress=shop=prometheus.monitoring.svc:9090",
    "--allow-egress=*=10.0.0.7:443",
    "--shared-namespace=monitoring",
    "--metrics-server=http://prometheus.monitoring.svc:9090",
  ])
  const monitored = await added("serviceMonitor.enabled=true", "serviceMonitor.labels.release=prometheus")
  const { metadata, spec } = monitored["ServiceMonitor/aim-controller"]
  expect(metadata.labels).toMatchObject({ release: "prometheus" })
  // The monitor finds the Service, the Service the pods, and both the port.
  const service = monitored["Service/aim-controller"]
  const { template } = plain["Deployment/aim-controller"].spec
  expect(service.metadata.labels).toMatchObject(spec.selector.matchLabels)
  expect(template.metadata.labels).toMatchObject(service.spec.selector)
  expect(spec.endpoints[0].port).toBe(service.spec.ports[0].name)
  expect(template.spec.containers[0].ports).toContainEqual(
    expect.objectContaining({ name: service.spec.ports[0].targetPort }),
  )
  expect(Object.keys(monitored)).toHaveLength(2)

  const agents = await added(
    "agent.enabled=true",
    "agent.stopsPerMinute=3,agent.pullsPerNode=4,agent.imageGcHighThreshold=90",
    "agent.resources.limits.memory=256Mi",
    "networkPolicy.enabled=false",
    "serviceMonitor.enabled=true",
  )
  const { args, resources } = agents["DaemonSet/aim-agent"].spec.template.spec.containers[0]
  expect(args.slice(-6)).toEqual([
    "--stops-per-minute",
    "3",
    "--pulls-per-node",
    "4",
    "--image-gc-high-threshold",
    "90",
  ])
  expect(resources.limits).toEqual({ memory: "256Mi" })
  expect(agents["Namespace/aim-agents"].metadata.labels).toMatchObject({
    "pod-security.kubernetes.io/enforce": "privileged",
  })
  expect(agents["NetworkPolicy/aim-agent"]).toBeUndefined()
  const ofAgents = agents["Service/aim-agent"]
  expect(agents["DaemonSet/aim-agent"].spec.template.metadata.labels).toMatchObject(ofAgents.spec.selector)
  expect(ofAgents.metadata.labels).toMatchObject(agents["ServiceMonitor/aim-agent"].spec.selector.matchLabels)
})

test("a value that is misspelt or that no chart could carry out is refused by its name", async () => {
  const helm = await helmFor()
  const wrong: Record<string, string> = {
    "imge=aim:1": "imge",
    "replicas=two": "/replicas",
    "agent.criSocket=containerd.sock": "/agent/criSocket",
    "agent.criSocket=/run/../etc/shadow": "/agent/criSocket",
    "agent.stopsPerMinute=0": "/agent/stopsPerMinute",
    "agent.imageGcHighThreshold=101": "/agent/imageGcHighThreshold",
    "agent.flags=none": "flags",
    "podDisruptionBudget.enabled=1": "/podDisruptionBudget/enabled",
    "for[0].plural=Dicoms,for[0].group=example.com": "/for/0/plural",
    // A role that reads the roles of a cluster, or that changes aim's own kinds, is no target's.
    "for[0].plural=clusterroles,for[0].group=rbac.authorization.k8s.io": "/for/0/group",
    "for[0].plural=serviceimages,for[0].group=autoimagemanager.io": "/for/0/group",
    "for[0].plural=dicoms,for[0].group=v1alpha1.services.example.com": "/for/0/group",
  }
  for (const [set, path] of Object.entries(wrong))
    await expect(helm("template", "aim", chart, "--set", set), set).rejects.toThrow(path)
  await expect(helm("template", "aim", chart, "--kube-version", "1.33.4")).rejects.toThrow("1.34.0")
})
