import { onKwok } from "../../support/floor.ts"
import { type Json, type Kubectl, type Script, topic } from "../harness/script.ts"
import { collectorKnows } from "./lives.ts"
import { configMap, deployment, dicom, idlePod, job, service } from "./objects.ts"
import { atLeast, begun, eventsOf } from "./views.ts"

/** A deployment whose pods are ready at once. */
const web = (fields: Json = {}) =>
  deployment("web", {
    "spec.replicas": 2,
    "metadata.labels": { app: "web" },
    "spec.template.spec.nodeSelector": onKwok.nodeSelector,
    "spec.template.spec.tolerations": onKwok.tolerations,
    // At once: a busy kwok leaves them Terminating for minutes.
    "spec.template.spec.terminationGracePeriodSeconds": 0,
    ...fields,
  })

async function rolledOut(on: Script, name = "web") {
  await on.untilObject(
    "deployments",
    name,
    ({ metadata, spec, status }) =>
      status.observedGeneration === metadata.generation &&
      status.availableReplicas === spec.replicas &&
      status.updatedReplicas === spec.replicas &&
      status.replicas === spec.replicas &&
      !status.terminatingReplicas,
  )
  const { items } = await on.quietly.list("replicasets")
  on.note("replica sets", items.length)
}

/** Only that it worked and what its last line says: what comes before depends on the moment. */
const lastLine = ({ code, stdout, stderr }: Kubectl) => ({
  code,
  stdout: stdout.trim().split("\n").at(-1) ?? "",
  stderr,
})

export const kubectl = topic(
  "kubectl",
  "registry",
  {
    "apply makes, changes and leaves": async on => {
      on.file("a.yaml", configMap("a", { one: "1" }))
      await on.kubectl(["apply", "-f", "a.yaml"])
      await on.kubectl(["apply", "-f", "a.yaml"])
      on.file("a.yaml", configMap("a", { two: "2" }))
      await on.kubectl(["apply", "-f", "a.yaml"])
      const { data, metadata } = await on.quietly.get("configmaps", "a")
      on.note("stored", { data, annotations: metadata.annotations, managedFields: metadata.managedFields })
    },
    "apply of several, from stdin": async on => {
      const text = [configMap("a", { one: "1" }), service("web"), deployment("web", { "spec.paused": true })]
        .map(object => JSON.stringify(object))
        .join("\n---\n")
      await on.kubectl(["apply", "-f", "-"], { stdin: text })
      await on.kubectl(["apply", "-f", "-"], { stdin: text })
    },
    "apply in dry runs": async on => {
      on.file("a.yaml", configMap("a", { one: "1" }))
      await on.kubectl(["apply", "-f", "a.yaml", "--dry-run=client"])
      await on.kubectl(["apply", "-f", "a.yaml", "--dry-run=server"])
      await on.kubectl(["apply", "-f", "a.yaml", "--dry-run=server", "-o", "yaml"])
      await on.kubectl(["get", "configmap", "a"])
    },
    "apply of a deployment changes an image": async on => {
      on.file("web.yaml", deployment("web", { "spec.paused": true }))
      await on.kubectl(["apply", "-f", "web.yaml"])
      on.file(
        "web.yaml",
        deployment("web", {
          "spec.paused": true,
          "spec.template.spec.containers.0.image": "registry.test/app:2",
          "spec.template.spec.containers.0.env": [{ name: "A", value: "1" }],
        }),
      )
      await on.kubectl(["apply", "-f", "web.yaml"])
      on.note("containers", (await on.quietly.get("deployments", "web")).spec.template.spec.containers)
    },
    "apply on the server": async on => {
      on.file("a.yaml", configMap("a", { one: "1" }))
      await on.kubectl(["apply", "--server-side", "-f", "a.yaml"])
      await on.kubectl(["apply", "--server-side", "-f", "a.yaml"])
      on.file("a.yaml", configMap("a", { one: "I" }))
      await on.kubectl(["apply", "--server-side", "-f", "a.yaml", "--field-manager=other"])
      await on.kubectl(["apply", "--server-side", "-f", "a.yaml", "--field-manager=other", "--force-conflicts"])
      on.note("managers", (await on.quietly.get("configmaps", "a")).metadata.managedFields)
    },
    "apply from client to server": async on => {
      on.file("a.yaml", configMap("a", { one: "1" }))
      await on.kubectl(["apply", "-f", "a.yaml"])
      await on.kubectl(["apply", "--server-side", "-f", "a.yaml"])
      on.note("metadata", (await on.quietly.get("configmaps", "a")).metadata)
    },
    "apply of what is wrong": async on => {
      on.file("a.yaml", deployment("web", { "spec.replcas": 3 }))
      await on.kubectl(["apply", "-f", "a.yaml"])
      on.file("b.yaml", deployment("web", { "spec.replicas": "three" }))
      await on.kubectl(["apply", "-f", "b.yaml"])
      on.file("c.yaml", { apiVersion: "nowhere/v1", kind: "Nothing", metadata: { name: "a" } })
      await on.kubectl(["apply", "-f", "c.yaml"])
      on.file("d.yaml", deployment("web", { "spec.selector": { matchLabels: { app: "other" } } }))
      await on.kubectl(["apply", "-f", "d.yaml"])
      on.file("e.yaml", "not: [yaml")
      await on.kubectl(["apply", "-f", "e.yaml"])
      await on.kubectl(["apply", "-f", "none.yaml"])
    },
    "apply prunes nothing that others own": async on => {
      on.file("a.yaml", configMap("a", { one: "1" }, { labels: { set: on.id } }))
      on.file("b.yaml", configMap("b", { one: "1" }, { labels: { set: on.id } }))
      await on.kubectl(["apply", "-f", "a.yaml", "-f", "b.yaml"])
      await on.kubectl([
        "apply",
        "-f",
        "a.yaml",
        "--prune",
        "-l",
        `set=${on.id}`,
        "--prune-allowlist=core/v1/ConfigMap",
      ])
    },
    "create in its forms": async on => {
      await on.kubectl(["create", "configmap", "a", "--from-literal=one=1"])
      await on.kubectl(["create", "configmap", "a", "--from-literal=one=1"])
      await on.kubectl(["create", "secret", "generic", "s", "--from-literal=k=v"])
      await on.kubectl(["create", "serviceaccount", "robot"])
      await on.kubectl(["create", "role", "r", "--verb=get", "--resource=pods"])
      await on.kubectl(["create", "rolebinding", "b", "--role=r", `--serviceaccount=${on.namespace}:robot`])
      await on.kubectl(["create", "deployment", "d", "--image=registry.test/app:1", "--replicas=0"])
      await on.kubectl(["create", "deployment", "e", "--image=registry.test/app:1", "--dry-run=client", "-o", "yaml"])
      await on.kubectl(["create", "namespace", `${on.id}-more`])
      await on.quietly.remove("namespaces", `${on.id}-more`)
    },
    "create of a file": async on => {
      on.file("a.yaml", configMap("a", { one: "1" }))
      await on.kubectl(["create", "-f", "a.yaml"])
      await on.kubectl(["create", "-f", "a.yaml"])
      on.file("g.yaml", { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "made-" } })
      await on.kubectl(["create", "-f", "g.yaml"])
    },
    replace: async on => {
      on.file("a.yaml", configMap("a", { one: "1" }))
      await on.kubectl(["replace", "-f", "a.yaml"])
      await on.kubectl(["create", "-f", "a.yaml"])
      on.file("a.yaml", configMap("a", { two: "2" }))
      await on.kubectl(["replace", "-f", "a.yaml"])
      await on.kubectl(["replace", "--force", "-f", "a.yaml"])
    },
    edit: async on => {
      await on.quietly.create("configmaps", configMap("a", { colour: "blue" }))
      await on.kubectl(["edit", "configmap", "a"], { editor: "sed -i s/blue/red/" })
      await on.kubectl(["edit", "configmap", "a"], { editor: "true" })
      on.note("data", (await on.quietly.get("configmaps", "a")).data)
      await on.quietly.create("dicoms", dicom("d"))
      await on.kubectl(["edit", "dicom", "d"], { editor: "sed -i s/dicom:1/dicom:2/" })
      on.note("image", (await on.quietly.get("dicoms", "d")).spec.image)
    },
    diff: async on => {
      on.file("a.yaml", configMap("a", { colour: "blue" }))
      await on.kubectl(["diff", "-f", "a.yaml"])
      await on.kubectl(["apply", "-f", "a.yaml"])
      await on.kubectl(["diff", "-f", "a.yaml"])
      on.file("a.yaml", configMap("a", { colour: "red" }))
      await on.kubectl(["diff", "-f", "a.yaml"])
      await on.kubectl(["diff", "--server-side", "--force-conflicts", "-f", "a.yaml"])
    },
    "get as a table": async on => {
      await on.quietly.create("configmaps", configMap("a", { one: "1" }, { labels: { tier: "early" } }))
      await on.quietly.create("configmaps", configMap("b", {}, { labels: { tier: "late" } }))
      await on.kubectl(["get", "cm", "-l", "tier"])
      await on.kubectl(["get", "configmaps", "a", "b"])
      await on.kubectl(["get", "cm/a", "--show-labels"])
      await on.kubectl(["get", "cm", "-l", "tier", "-L", "tier", "--no-headers"])
      await on.kubectl(["get", "cm", "-l", "tier=late", "--show-kind"])
      await on.kubectl(["get", "cm", "--field-selector", "metadata.name=b"])
      await on.kubectl(["get", "cm", "-l", "tier=none"])
      await on.kubectl(["get", "cm", "none"])
      await on.kubectl(["get", "cm", "none", "--ignore-not-found"])
      await on.kubectl(["get", "nothings"])
      await on.kubectl(["get", "cm", "-l", "tier", "--sort-by=.metadata.labels.tier"])
    },
    "get in other forms": async on => {
      await on.quietly.create("configmaps", configMap("a", { one: "1" }, { labels: { tier: "early" } }))
      await on.kubectl(["get", "cm", "a", "-o", "yaml"])
      await on.kubectl(["get", "cm", "a", "-o", "json"])
      await on.kubectl(["get", "cm", "a", "-o", "yaml", "--show-managed-fields"])
      await on.kubectl(["get", "cm", "-l", "tier", "-o", "name"])
      await on.kubectl(["get", "cm", "-l", "tier", "-o", "wide"])
      await on.kubectl(["get", "cm", "-l", "tier", "-o", "custom-columns=NAME:.metadata.name,ONE:.data.one"])
      await on.kubectl(["get", "cm", "a", "-o", "jsonpath={.data.one}"])
      await on.kubectl(["get", "cm", "-l", "tier", "-o", "jsonpath={range .items[*]}{.metadata.name}{'\\n'}{end}"])
      await on.kubectl(["get", "cm", "a", "-o", "go-template={{.data.one}}"])
      await on.kubectl(["get", "cm", "-l", "tier", "-o", "yaml"])
    },
    "get of a deployment and all that is its": async on => {
      await on.quietly.create("deployments", web())
      await rolledOut(on)
      await on.kubectl(["get", "deployments"])
      await on.kubectl(["get", "deploy", "web", "-o", "wide"])
      await on.kubectl(["get", "rs"])
      await on.kubectl(["get", "rs", "-o", "wide"])
      await on.kubectl(["get", "pods"])
      await on.kubectl(["get", "pods", "-o", "wide"])
      await on.kubectl(["get", "pods", "--show-labels"])
      await on.kubectl(["get", "all"])
      await on.kubectl(["get", "deployment/web", "-o", "jsonpath={.status.readyReplicas}"])
    },
    "get of everything everywhere": async on => {
      await on.quietly.create("secrets", { metadata: { name: "a", labels: { of: on.id } } })
      await on.kubectl(["get", "secrets", "-A", "-l", `of=${on.id}`])
      await on.kubectl(["get", "secrets", "-A", "-l", `of=${on.id}`, "-o", "name"])
    },
    "get and watch": async on => {
      await on.quietly.create("configmaps", configMap("a", { one: "1" }, { labels: { tier: "early" } }))
      const lines = (stdout: string) => stdout.split("\n").length - 1
      // What is listed is watched from there: a change after that is not missed.
      const { ended } = await begun(on, ["get", "cm", "-l", "tier", "-w"], ({ stdout }) => lines(stdout) === 2, {
        endsWhen: stdout => lines(stdout) > 2,
        only: ({ stdout }) => ({ code: 0, stdout, stderr: "" }),
      })
      await on.quietly.patch("configmaps", "a", "merge", { data: { two: "2" } })
      await ended
    },
    "get of our own kinds": async on => {
      await on.quietly.create("dicoms", dicom("a", { "metadata.labels": { "upgrade-tier": "early" } }))
      await on.kubectl(["get", "dicoms"])
      await on.kubectl(["get", "dicom", "a", "-o", "yaml"])
      await on.kubectl(["get", "dicoms.services.example.com", "-o", "wide"])
      await on.quietly.create("serviceimages", {
        apiVersion: "autoimagemanager.io/v1alpha1",
        kind: "ServiceImage",
        metadata: { name: on.id },
        spec: {
          target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
          defaultImage: "registry.test/dicom:2",
        },
      })
      await on.kubectl(["get", "si", on.id])
      await on.kubectl(["get", "serviceimages", on.id, "-o", "wide"])
      await on.quietly.remove("serviceimages", on.id)
    },
    "apply of our own kinds": async on => {
      on.file("d.yaml", dicom("a"))
      await on.kubectl(["apply", "-f", "d.yaml"])
      await on.kubectl(["apply", "-f", "d.yaml"])
      on.file("d.yaml", dicom("a", { "spec.replicas": 3, "spec.nope": 1 }))
      await on.kubectl(["apply", "-f", "d.yaml"])
      on.file("d.yaml", dicom("a", { "spec.replicas": 300 }))
      await on.kubectl(["apply", "-f", "d.yaml"])
      await on.kubectl(["apply", "--server-side", "-f", "d.yaml"])
      on.file("d.yaml", dicom("a", { "spec.replicas": 4 }))
      await on.kubectl(["apply", "--server-side", "-f", "d.yaml"])
      await on.kubectl(["delete", "-f", "d.yaml"])
    },
    "describe of a map and a service": async on => {
      await on.quietly.create(
        "configmaps",
        configMap("a", { one: "1" }, { labels: { l: "v" }, annotations: { x: "y" } }),
      )
      await on.kubectl(["describe", "configmap", "a"])
      await on.quietly.create("services", service("s", { "spec.clusterIP": "None" }))
      // Without it, another word stands for no endpoints.
      await on.until("its slice is there", async () => (await on.quietly.list("endpointslices")).items.length === 1)
      await on.kubectl(["describe", "service", "s"])
      await on.kubectl(["describe", "cm", "none"])
    },
    "describe of a deployment": async on => {
      await on.quietly.create("deployments", web())
      await rolledOut(on)
      await eventsOf(on, "Deployment", "web", atLeast(1))
      await on.kubectl(["describe", "deployment", "web"])
    },
    "describe of a pod that waits": async on => {
      await on.quietly.create("pods", idlePod("a"))
      await on.kubectl(["describe", "pod", "a"])
    },
    "describe of our own kind": async on => {
      await on.quietly.create("dicoms", dicom("a"))
      await on.kubectl(["describe", "dicom", "a"])
    },
    explain: async on => {
      await on.kubectl(["explain", "configmap.data"])
      await on.kubectl(["explain", "deployment.spec.strategy"])
      await on.kubectl(["explain", "pod.spec.containers.imagePullPolicy"])
      await on.kubectl(["explain", "deployment.spec.none"])
      await on.kubectl(["explain", "deployment.spec.strategy", "--recursive"])
    },
    "explain of our own kinds": async on => {
      await on.kubectl(["explain", "dicom"])
      await on.kubectl(["explain", "dicom.spec"])
      await on.kubectl(["explain", "dicom.spec.image"])
      await on.kubectl(["explain", "serviceimage.spec.tiers"])
    },
    "patch in its types": async on => {
      await on.quietly.create("deployments", deployment("web", { "spec.paused": true }))
      await on.kubectl([
        "patch",
        "deployment",
        "web",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.test/app:2"}]}}}}',
      ])
      await on.kubectl(["patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}'])
      await on.kubectl([
        "patch",
        "deployment",
        "web",
        "--type=json",
        "-p",
        '[{"op":"replace","path":"/spec/minReadySeconds","value":5}]',
      ])
      await on.kubectl(["patch", "deployment", "web", "--type=merge", "-p", "{}"])
      await on.kubectl([
        "patch",
        "deployment",
        "web",
        "--subresource=scale",
        "--type=merge",
        "-p",
        '{"spec":{"replicas":0}}',
      ])
      await on.kubectl(["patch", "deployment", "none", "-p", "{}"])
      await on.quietly.create("dicoms", dicom("a"))
      await on.kubectl(["patch", "dicom", "a", "-p", '{"spec":{"image":"x"}}'])
      await on.kubectl(["patch", "dicom", "a", "--type=merge", "-p", '{"spec":{"image":"x"}}'])
      await on.kubectl([
        "patch",
        "dicom",
        "a",
        "--type=merge",
        "--subresource=status",
        "-p",
        '{"status":{"observedGeneration":1}}',
      ])
    },
    "label and annotate": async on => {
      await on.quietly.create("configmaps", configMap("a"))
      await on.kubectl(["label", "cm", "a", "x=y"])
      await on.kubectl(["label", "cm", "a", "x=z"])
      await on.kubectl(["label", "cm", "a", "x=z", "--overwrite"])
      await on.kubectl(["label", "cm", "a", "x-"])
      await on.kubectl(["label", "cm", "a", "none-"])
      await on.kubectl(["annotate", "cm", "a", "note=hello there"])
      await on.kubectl(["annotate", "cm", "a", "note-"])
      await on.kubectl(["label", "cm", "none", "x=y"])
      await on.kubectl(["label", "cm", "a", "bad key=y"])
    },
    scale: async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await on.kubectl(["scale", "deployment", "web", "--replicas=2"])
      await rolledOut(on)
      await on.kubectl(["scale", "deployment/web", "--replicas=0", "--current-replicas=5"])
      await on.kubectl(["scale", "deploy/web", "--replicas=0", "--current-replicas=2"])
      await on.kubectl(["scale", "deploy/none", "--replicas=0"])
    },
    "set image": async on => {
      await on.quietly.create("deployments", deployment("web", { "spec.paused": true }))
      await on.kubectl(["set", "image", "deployment/web", "app=registry.test/app:2"])
      await on.kubectl(["set", "image", "deployment/web", "app=registry.test/app:2"])
      await on.kubectl(["set", "image", "deployment/web", "none=registry.test/app:2"])
      await on.kubectl(["set", "env", "deployment/web", "A=1"])
      on.note("container", (await on.quietly.get("deployments", "web")).spec.template.spec.containers)
    },
    "rollout, step by step": async on => {
      await on.quietly.create("deployments", web())
      await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], { only: lastLine })
      await on.kubectl(["set", "image", "deployment/web", "app=registry.test/app:2"])
      await on.kubectl(["annotate", "deployment/web", "kubernetes.io/change-cause=to 2"])
      await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], { only: lastLine })
      await rolledOut(on)
      await on.kubectl(["rollout", "history", "deployment/web"])
      await on.kubectl(["rollout", "history", "deployment/web", "--revision=1"])
      await on.kubectl(["rollout", "undo", "deployment/web"])
      await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], { only: lastLine })
      await rolledOut(on)
      await on.kubectl(["rollout", "history", "deployment/web"])
      await on.kubectl(["rollout", "undo", "deployment/web", "--to-revision=2"])
      await on.kubectl(["rollout", "undo", "deployment/web", "--to-revision=9"])
    },
    "rollout, paused and resumed": async on => {
      await on.quietly.create("deployments", web())
      await rolledOut(on)
      await on.kubectl(["rollout", "pause", "deployment/web"])
      await on.kubectl(["rollout", "pause", "deployment/web"])
      await on.kubectl(["set", "image", "deployment/web", "app=registry.test/app:2"])
      await on.kubectl(["rollout", "undo", "deployment/web"])
      await on.kubectl(["rollout", "resume", "deployment/web"])
      await on.kubectl(["rollout", "resume", "deployment/web"])
      await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], { only: lastLine })
    },
    "rollout restart": async on => {
      await on.quietly.create("deployments", web())
      await rolledOut(on)
      await on.kubectl(["rollout", "restart", "deployment/web"])
      await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], { only: lastLine })
      const { metadata } = (await on.quietly.get("deployments", "web")).spec.template
      on.note("annotations", metadata.annotations)
      await on.kubectl(["rollout", "status", "deployment/none"])
    },
    "rollout that does not end": async on => {
      await on.quietly.create(
        "deployments",
        web({ "spec.template.spec.nodeSelector": { type: "nowhere" }, "spec.progressDeadlineSeconds": 1 }),
      )
      await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], {
        only: ({ code, stderr }) => ({ code, stdout: "", stderr }),
      })
    },
    "rollout of other kinds": async on => {
      await on.quietly.create("statefulsets", {
        ...web({ "spec.serviceName": "web", "spec.replicas": 1 }),
        kind: "StatefulSet",
      })
      await on.kubectl(["rollout", "status", "statefulset/web", "--timeout=60s"], { only: lastLine })
      await on.kubectl(["set", "image", "statefulset/web", "app=registry.test/app:2"])
      await on.kubectl(["rollout", "status", "statefulset/web", "--timeout=60s"], { only: lastLine })
      await on.kubectl(["rollout", "history", "statefulset/web"])
      await on.kubectl(["rollout", "undo", "statefulset/web"])
      await on.kubectl(["get", "statefulset", "web", "-o", "name"])
    },
    wait: async on => {
      await on.quietly.create("deployments", web())
      await on.kubectl(["wait", "--for=condition=Available", "deployment/web", "--timeout=60s"])
      await on.kubectl(["wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=60s"])
      await on.kubectl(["wait", "--for=condition=Ready", "pods", "-l", "app=web", "--timeout=60s"])
      await on.kubectl(["wait", "--for=condition=Never", "deployment/web", "--timeout=1s"])
      await on.kubectl(["wait", "--for=condition=Ready", "pod/none", "--timeout=1s"])
      await on.quietly.create("configmaps", configMap("a"))
      // It says at this level that its watch was answered.
      const waiting = ["wait", "--for=delete", "configmap/a", "--timeout=60s", "-v=6"]
      const { ended } = await begun(on, waiting, ({ stderr }) => /watch=true.* status="200/.test(stderr))
      await on.quietly.remove("configmaps", "a")
      await ended
    },
    delete: async on => {
      for (const name of ["a", "b", "c"])
        await on.quietly.create("configmaps", configMap(name, {}, { labels: { tier: "x" } }))
      await on.kubectl(["delete", "cm", "a"])
      await on.kubectl(["delete", "cm", "a"])
      await on.kubectl(["delete", "cm", "a", "--ignore-not-found"])
      await on.kubectl(["delete", "cm", "-l", "tier=x", "--dry-run=server"])
      await on.kubectl(["delete", "cm", "-l", "tier=x"])
      await on.kubectl(["delete", "cm", "-l", "tier=x"])
      await on.kubectl(["delete", "secrets", "--all"])
    },
    "delete with each policy": async on => {
      for (const [index, policy] of ["background", "foreground", "orphan"].entries()) {
        const name = `d-${index}`
        await on.quietly.create("deployments", deployment(name))
        await on.until("its replica set is there", async () =>
          (await on.quietly.list("replicasets")).items.some(
            (set: Json) => set.metadata.ownerReferences?.[0].name === name,
          ),
        )
        await collectorKnows(on, "replicasets")
        await on.kubectl(["delete", "deployment", name, `--cascade=${policy}`])
      }
      const left = await on.until("one replica set is left", async () => {
        const { items } = await on.quietly.list("replicasets")
        return items.length === 1 && items
      })
      on.note("left", left[0].metadata.labels.app)
    },
    "delete of a pod": async on => {
      await on.quietly.create("pods", idlePod("a", { "spec.terminationGracePeriodSeconds": 30 }))
      await on.kubectl(["delete", "pod", "a"])
      await on.quietly.create("pods", idlePod("b"))
      await on.kubectl(["delete", "pod", "b", "--force", "--grace-period=0"])
      await on.quietly.create("pods", idlePod("c"))
      await on.kubectl(["delete", "pod", "c", "--now", "--wait=false"])
    },
    "delete of a namespace": async on => {
      const name = `${on.id}-gone`
      await on.quietly.create("namespaces", { metadata: { name } })
      await on.kubectl(["delete", "namespace", name])
      await on.kubectl(["get", "namespace", name])
    },
    "api-resources": async on => {
      await on.kubectl(["api-resources", "--api-group=apps"])
      await on.kubectl(["api-resources", "--api-group=batch"])
      await on.kubectl(["api-resources", "--api-group=autoimagemanager.io", "-o", "wide"])
      await on.kubectl(["api-resources", "--api-group=services.example.com"])
      await on.kubectl(["api-versions"], {
        only: ({ code, stdout }) => ({
          code,
          stdout: stdout
            .split("\n")
            .filter(line => /^(apps|batch|policy|v1|autoimagemanager.io|coordination)/.test(line))
            .join("\n"),
          stderr: "",
        }),
      })
    },
    events: async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await rolledOut(on)
      for (const kind of ["Deployment", "ReplicaSet"]) await eventsOf(on, kind, undefined, atLeast(1))
      await on.kubectl(["get", "events", "--field-selector", "involvedObject.kind=Deployment"])
      await on.kubectl([
        "get",
        "events",
        "--field-selector",
        "involvedObject.kind=ReplicaSet",
        "-o",
        "custom-columns=R:.reason,M:.message",
      ])
      await on.kubectl(["events", "--for", "deployment/web"])
      await on.kubectl(["events", "--for", "deployment/none"])
    },
    auth: async on => {
      await on.kubectl(["auth", "can-i", "get", "pods"])
      await on.kubectl(["auth", "can-i", "create", "deployments.apps"])
      await on.kubectl(["auth", "can-i", "dance", "pods"])
    },
    "who am I": async on => {
      await on.kubectl(["auth", "whoami", "-o", "name"])
    },
    logs: async on => {
      await on.quietly.create("pods", idlePod("a"))
      await on.kubectl(["logs", "a"])
      await on.kubectl(["logs", "none"])
      await on.kubectl(["logs", "a", "-c", "none"])
    },
    exec: async on => {
      await on.quietly.create("pods", idlePod("a"))
      await on.kubectl(["exec", "a", "--", "true"])
      await on.kubectl(["exec", "none", "--", "true"])
    },
    "run and expose": async on => {
      await on.kubectl([
        "run",
        "a",
        "--image=registry.test/app:1",
        "--overrides",
        '{"spec":{"schedulerName":"nobody"}}',
        "--labels=app=a",
      ])
      await on.kubectl(["expose", "pod", "a", "--port=80", "--name=a"])
      await on.kubectl(["get", "service", "a", "-o", "jsonpath={.spec.ports[0].targetPort} {.spec.selector}"])
      on.note("labels", (await on.quietly.get("pods", "a")).metadata.labels)
    },
    "a job of a cronjob": async on => {
      await on.quietly.create("cronjobs", {
        apiVersion: "batch/v1",
        kind: "CronJob",
        metadata: { name: "tick" },
        spec: { schedule: "0 0 1 1 *", suspend: true, jobTemplate: { spec: { ...job("x").spec, suspend: true } } },
      })
      await on.kubectl(["create", "job", "by-hand", "--from=cronjob/tick"])
      await on.kubectl(["get", "cronjobs"])
      await on.kubectl(["get", "cronjobs", "-o", "wide"])
      await on.until("the job is looked at", async () => (await on.quietly.get("jobs", "by-hand")).status.conditions)
      await on.kubectl(["get", "jobs"])
    },
    definitions: async on => {
      await on.kubectl(["get", "crd", "dicoms.services.example.com"])
      await on.kubectl([
        "get",
        "crd",
        "serviceimages.autoimagemanager.io",
        "-o",
        "jsonpath={.spec.names.shortNames[0]} {.status.acceptedNames.plural}",
      ])
      await on.kubectl(["wait", "--for=condition=Established", "crd/dicoms.services.example.com", "--timeout=10s"])
    },
    "namespaces and nodes": async on => {
      await on.kubectl(["get", "namespace", on.namespace])
      await on.kubectl(["get", "ns", on.namespace, "--show-labels"])
      await on.kubectl(["get", "nodes", "-l", "type=kwok", "-o", "name"])
      await on.kubectl([
        "get",
        "nodes",
        "-l",
        "type=kwok",
        "-o",
        "custom-columns=N:.metadata.name,T:.spec.taints[*].key",
      ])
    },
    "cordon and drain": async on => {
      await on.kubectl(["cordon", "none"])
      await on.kubectl(["drain", "none"])
    },
    version: async on => {
      await on.kubectl(["version"])
    },
    raw: async on => {
      await on.quietly.create("configmaps", configMap("a", { one: "1" }))
      await on.kubectl(["get", "--raw", on.path("configmaps", "a")], {
        only: ({ code, stdout }) => ({ code, body: JSON.parse(stdout).data }),
      })
      await on.kubectl(["get", "--raw", "/nowhere"])
      await on.kubectl(["get", "--raw", "/readyz"])
    },
    "scale of what cannot be scaled": async on => {
      await on.quietly.create("dicoms", dicom("a"))
      await on.kubectl(["scale", "dicom/a", "--replicas=2"])
      await on.kubectl(["rollout", "status", "dicom/a"])
    },
    "autoscale and set resources": async on => {
      await on.quietly.create("deployments", deployment("web", { "spec.paused": true }))
      await on.kubectl(["autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu=80%"])
      await on.kubectl(["set", "resources", "deployment/web", "--requests=cpu=100m"])
      on.note("container", (await on.quietly.get("deployments", "web")).spec.template.spec.containers)
    },
  },
  { runsPods: true },
)
