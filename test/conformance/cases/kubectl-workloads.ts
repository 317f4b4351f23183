import { onKwok, onRealNode } from "../../support/floor.ts"
import { type Json, type Kubectl, type Script, topic } from "../harness/script.ts"
import { configMap, cronJob, daemonSet, deployment, dicom, idlePod, job, statefulSet } from "./objects.ts"
import { atLeast, begun, eventsOf } from "./views.ts"

/** Pods end at once: a busy kwok leaves them Terminating for minutes. */
const quick = {
  "spec.template.spec.nodeSelector": onKwok.nodeSelector,
  "spec.template.spec.tolerations": onKwok.tolerations,
  "spec.template.spec.terminationGracePeriodSeconds": 0,
}

/** A pod on the node that really runs containers. */
const pod = (on: Script, image: string, spec: Json = {}): Json => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "a", labels: { app: "a" } },
  spec: {
    ...onRealNode,
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    containers: [
      { name: "app", image: image.includes(":") ? image : `${on.registry}/${image}:1`, imagePullPolicy: "Always" },
    ],
    ...spec,
  },
})

const waitsFor = (reason: string) => (object: Json) =>
  object.status.containerStatuses?.[0].state.waiting?.reason === reason
const isReady = ({ status }: Json) =>
  status.conditions?.some((each: Json) => each.type === "Ready" && each.status === "True")

/** A description without its events, whose number depends on the moment. */
const untilEvents = ({ code, stdout, stderr }: Kubectl) => ({
  code,
  stdout: stdout.split(/^Events:/m)[0] ?? "",
  stderr,
})
const lastLine = ({ code, stdout, stderr }: Kubectl) => ({
  code,
  stdout: stdout.trim().split("\n").at(-1) ?? "",
  stderr,
})
/** It crashes, waits or runs again: that and the number of restarts depend on the moment. */
const whateverItDoes = ({ code, stdout, stderr }: Kubectl) => ({
  code,
  stdout: stdout.replace(/[01]\/1 +(Running|Error|CrashLoopBackOff) +\d+ \(\d+s ago\)/g, "crashes"),
  stderr,
})

export const kubectlOfWorkloads = topic(
  "kubectl",
  "kinds",
  {
    "a pod that runs": async on => {
      await on.quietly.create("pods", pod(on, "web"))
      await on.untilObject("pods", "a", isReady)
      await on.kubectl(["get", "pods"])
      await on.kubectl(["get", "pods", "-o", "wide"])
      await on.kubectl(["describe", "pod", "a"], { only: untilEvents })
      await on.kubectl(["delete", "pod", "a"])
    },
    "a pod whose image is not there": async on => {
      await on.quietly.create("pods", pod(on, `${on.registry}/web:none`))
      await on.untilObject("pods", "a", waitsFor("ImagePullBackOff"))
      await on.kubectl(["get", "pods"], {
        only: ({ code, stdout }) => ({
          code,
          columns: stdout.split("\n").length,
          header: stdout.split("\n")[0],
          isWaiting: /(ImagePullBackOff|ErrImagePull)/.test(stdout),
        }),
      })
      await on.kubectl(["describe", "pod", "a"], {
        only: ({ code, stdout }) => ({
          code,
          stdout: (stdout.split(/^Events:/m)[0] ?? "").replace(/Reason: .*/g, "Reason: R"),
          stderr: "",
        }),
      })
      await on.kubectl(["wait", "--for=condition=Ready", "pod/a", "--timeout=1s"])
      await on.kubectl(["delete", "pod", "a", "--wait=false"])
    },
    "a pod that crashes": async on => {
      await on.quietly.create("pods", pod(on, "crash"))
      await on.untilObject("pods", "a", object => object.status.containerStatuses?.[0].restartCount >= 1)
      await on.kubectl(["get", "pods"], { only: whateverItDoes })
      await on.kubectl([
        "get",
        "pod",
        "a",
        "-o",
        "jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}",
      ])
    },
    "a pod that has ended": async on => {
      await on.quietly.create("pods", pod(on, "once", { restartPolicy: "Never" }))
      await on.untilObject("pods", "a", ({ status }) => status.phase === "Succeeded")
      await on.kubectl(["get", "pods"])
      await on.kubectl(["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/a", "--timeout=10s"])
      await on.kubectl(["get", "pods", "--field-selector=status.phase!=Succeeded"])
    },
    "a pod with init containers, on its way": async on => {
      await on.quietly.create(
        "pods",
        pod(on, "web", { initContainers: [{ name: "first", image: `${on.registry}/web:none` }] }),
      )
      await on.untilObject(
        "pods",
        "a",
        ({ status }) => status.initContainerStatuses?.[0].state.waiting?.reason === "ImagePullBackOff",
      )
      await on.kubectl(["get", "pods"], {
        only: ({ code, stdout }) => ({
          code,
          stdout: stdout.replace(/Init:(ImagePullBackOff|ErrImagePull)/, "Init:WAITS"),
          stderr: "",
        }),
      })
    },
    "a statefulset": async on => {
      await on.quietly.create("statefulsets", statefulSet("db", { ...quick, "spec.replicas": 2 }))
      await on.kubectl(["rollout", "status", "statefulset/db", "--timeout=60s"], { only: lastLine })
      await on.kubectl(["get", "statefulsets"])
      await on.kubectl(["get", "sts", "-o", "wide"])
      await eventsOf(on, "StatefulSet", "db", atLeast(2))
      await on.kubectl(["describe", "sts", "db"])
      await on.kubectl(["scale", "sts", "db", "--replicas=1"])
      await on.kubectl(["rollout", "restart", "sts/db"])
    },
    "a daemonset": async on => {
      await on.quietly.create("daemonsets", daemonSet("agent", quick))
      await on.kubectl(["rollout", "status", "daemonset/agent", "--timeout=60s"], { only: lastLine })
      await on.kubectl(["get", "daemonsets"])
      await on.kubectl(["get", "ds", "-o", "wide"])
      await on.kubectl(["describe", "ds", "agent"], { only: untilEvents })
      await on.kubectl(["set", "image", "ds/agent", "app=registry.test/app:2"])
      await on.kubectl(["rollout", "status", "daemonset/agent", "--timeout=60s"], { only: lastLine })
      await on.kubectl(["rollout", "history", "ds/agent"])
      await on.kubectl(["rollout", "undo", "ds/agent"])
    },
    "a job": async on => {
      const spec = {
        "spec.template.spec.containers": [{ name: "app", image: `${on.registry}/once:1` }],
        "spec.template.spec.nodeSelector": onRealNode.nodeSelector,
      }
      await on.quietly.create("jobs", job("work", spec))
      await on.kubectl(["wait", "--for=condition=Complete", "job/work", "--timeout=110s"])
      await on.kubectl(["get", "jobs"])
      await on.kubectl(["describe", "job", "work"], {
        only: ({ code, stdout }) => ({
          code,
          stdout: (stdout.split(/^Events:/m)[0] ?? "").replace(/Duration: .*/, "Duration: LONG"),
          stderr: "",
        }),
      })
      await on.kubectl(["get", "pods", "-l", "job-name=work"])
      await on.kubectl(["delete", "job", "work"])
    },
    "a cronjob": async on => {
      await on.quietly.create("cronjobs", cronJob("tick", { "spec.schedule": "0 0 1 1 *" }))
      await on.kubectl(["get", "cj"])
      await on.kubectl(["describe", "cronjob", "tick"])
      await on.kubectl(["patch", "cronjob", "tick", "-p", '{"spec":{"suspend":true}}'])
    },
    "a replica set": async on => {
      await on.quietly.create("replicasets", {
        ...deployment("web", { ...quick, "spec.replicas": 1 }),
        kind: "ReplicaSet",
      })
      await on.untilObject("replicasets", "web", ({ status }) => status.availableReplicas === 1)
      await on.kubectl(["get", "rs"])
      await eventsOf(on, "ReplicaSet", "web", atLeast(1))
      await on.kubectl(["describe", "rs", "web"])
      await on.kubectl(["scale", "rs", "web", "--replicas=0"])
    },
    "a deployment as YAML": {
      withManagedFields: false,
      run: async on => {
        await on.quietly.create("deployments", deployment("web", { ...quick, "spec.replicas": 1 }))
        await on.kubectl(["rollout", "status", "deployment/web", "--timeout=60s"], { only: lastLine })
        await on.kubectl(["get", "deployment", "web", "-o", "yaml"])
      },
    },
    "describe of small things": async on => {
      await on.quietly.create("secrets", { metadata: { name: "s" }, stringData: { k: "v" } })
      await on.kubectl(["describe", "secret", "s"])
      await on.kubectl(["describe", "serviceaccount", "default"])
      await on.kubectl(["describe", "namespace", on.namespace])
      await on.quietly.create("poddisruptionbudgets", {
        metadata: { name: "b" },
        spec: { minAvailable: 1, selector: { matchLabels: { a: "b" } } },
      })
      await on.until(
        "it was looked at",
        async () => (await on.quietly.get("poddisruptionbudgets", "b")).status.observedGeneration,
      )
      await on.kubectl(["describe", "pdb", "b"], { only: untilEvents })
      await on.quietly.create("roles", {
        metadata: { name: "r" },
        rules: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list"] }],
      })
      await on.kubectl(["describe", "role", "r"])
    },
    "a network policy": async on => {
      const policy = {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name: "a" },
        spec: { podSelector: { matchLabels: { a: "b" } }, ingress: [{ ports: [{ port: "metrics" }] }] },
      }
      on.file("policy.yaml", policy)
      await on.kubectl(["apply", "-f", "policy.yaml"])
      await on.kubectl(["apply", "-f", "policy.yaml"])
      await on.kubectl(["get", "netpol"])
      await on.kubectl(["describe", "netpol", "a"])
      await on.kubectl(["explain", "netpol.spec.ingress"])
      await on.kubectl(["delete", "netpol", "a"])
    },
    "explain of whole kinds": async on => {
      await on.kubectl(["explain", "pod"])
      await on.kubectl(["explain", "deployment", "--api-version=apps/v1"])
      await on.kubectl(["explain", "si"])
      await on.kubectl(["explain", "nothing"])
    },
    "apply of a folder": async on => {
      on.file("all/a.yaml", configMap("a"))
      on.file("all/deep/b.yaml", configMap("b"))
      await on.kubectl(["apply", "-f", "all"])
      await on.kubectl(["apply", "-R", "-f", "all"])
      on.file("kustomization.yaml", {
        resources: ["all/a.yaml"],
        namePrefix: "k-",
        labels: [{ pairs: { from: "kustomize" } }],
      })
      await on.kubectl(["apply", "-k", "."])
      await on.kubectl(["delete", "-R", "-f", "all"])
    },
    "an old version is refused": async on => {
      const made = await on.quietly.create("configmaps", configMap("a", { one: "1" }))
      await on.quietly.patch("configmaps", "a", "merge", { data: { one: "2" } })
      on.file("a.yaml", {
        ...configMap("a", { one: "3" }),
        metadata: { name: "a", resourceVersion: made.metadata.resourceVersion },
      })
      await on.kubectl(["replace", "-f", "a.yaml"])
      await on.kubectl(["apply", "-f", "a.yaml"], {
        only: ({ code, stdout, stderr }) => ({
          code,
          stdout,
          stderr: stderr
            .split("\n")
            .filter(line => /Conflict|conflict|modified/.test(line))
            .map(line => line.slice(line.lastIndexOf("Operation cannot")))
            .join("\n"),
        }),
      })
      await on.kubectl(["label", "cm", "a", "x=y", `--resource-version=${made.metadata.resourceVersion}`], {
        only: ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
      })
    },
    "an edit that is refused": async on => {
      await on.quietly.create("dicoms", dicom("a"))
      // The second time it is opened with the refusal on top, and left as it is.
      on.file("edit.sh", 'test -e tried && exit; touch tried; sed -i "s/replicas: 1/replicas: 1000/" "$1"\n')
      await on.kubectl(["edit", "dicom", "a"], {
        editor: "sh edit.sh",
        only: ({ code, stdout, stderr }) => ({ code, stdout, stderr: stderr.replace(/"\/tmp\/.*?"/g, '"FILE"') }),
      })
      on.note("kept", (await on.quietly.get("dicoms", "a")).spec.replicas)
    },
    "a watch with its events": async on => {
      await on.quietly.create("configmaps", configMap("a", { one: "1" }, { labels: { tier: "early" } }))
      const watching = ["get", "cm", "-l", "tier", "-w", "--output-watch-events"]
      // What is listed is watched from there: a change after that is not missed.
      const { ended } = await begun(on, watching, ({ stdout }) => /ADDED.*\n/.test(stdout), {
        endsWhen: stdout => /DELETED.*\n/.test(stdout), // the whole line
        only: ({ stdout }) => ({ code: 0, stdout, stderr: "" }),
      })
      await on.quietly.patch("configmaps", "a", "merge", { data: { two: "2" } })
      await on.quietly.remove("configmaps", "a")
      await ended
    },
    "pages by kubectl": async on => {
      for (const name of ["a", "b", "c", "d", "e"]) await on.quietly.create("secrets", { metadata: { name } })
      await on.kubectl(["get", "secrets", "--chunk-size=2"])
      await on.kubectl(["get", "secrets", "--chunk-size=2", "-o", "name"])
    },
    "many at once": async on => {
      for (const name of ["a", "b"]) await on.quietly.create("secrets", { metadata: { name } })
      await on.kubectl(["label", "secrets", "--all", "x=y"])
      await on.kubectl(["get", "secrets,dicoms", "-l", "x=y"])
      await on.kubectl(["get", "secret/a", "cm/none"])
      await on.kubectl(["delete", "secrets", "--all"])
    },
    "wait for what will come": async on => {
      const waiting = on.kubectl(["wait", "--for=create", "cm/late", "--timeout=30s"])
      await on.pause(2000)
      await on.quietly.create("configmaps", configMap("late"))
      await waiting
      await on.quietly.create("dicoms", dicom("a"))
      const condition = on.kubectl(["wait", "--for=condition=UpToDate", "dicom/a", "--timeout=30s"])
      await on.pause(2000)
      await on.quietly.patch("dicoms/status", "a", "merge", {
        status: {
          conditions: [
            { type: "UpToDate", status: "True", reason: "R", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" },
          ],
        },
      })
      await condition
    },
    "a token": async on => {
      await on.kubectl(["create", "token", "default"], {
        only: ({ code, stdout, stderr }) => ({ code, isToken: stdout.trim().split(".").length === 3, stderr }),
      })
      await on.kubectl(["create", "token", "none"])
    },
    "a port that leads nowhere": async on => {
      await on.quietly.create("pods", idlePod("a"))
      await on.kubectl(["port-forward", "pod/a", "18080:80"], { forMs: 10_000 })
    },
    "rights in a list": async on => {
      await on.kubectl(["auth", "can-i", "--list"], {
        only: ({ code, stdout }) => ({ code, hasAll: stdout.includes("*.*") }),
      })
    },
    "a finalizer that holds": async on => {
      await on.quietly.create("configmaps", configMap("a", {}, { finalizers: ["example.com/hold"] }))
      await on.kubectl(["delete", "cm", "a", "--timeout=1s"])
      await on.kubectl(["get", "cm", "a"])
      await on.kubectl(["patch", "cm", "a", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]'])
      await on.kubectl(["get", "cm", "a"])
    },
  },
  { runsPods: true },
)
