import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { repository } from "#tools/kube/folders.ts"

// The cases that an update in place, a restart or a pull has to get right, and the test that shows each. A test that is
// renamed or removed fails here.

type Shown = readonly [file: string, ...names: string[]]

const story = (...names: string[]): Shown => ["test/scenarios/in-place.test.ts", ...names]
const between = (...names: string[]): Shown => ["test/scenarios/in-place-between.test.ts", ...names]
const next = (...names: string[]): Shown => ["src/core/in-place/next.test.ts", ...names]
const template = (...names: string[]): Shown => ["src/core/in-place/template.test.ts", ...names]
const restart = (...names: string[]): Shown => ["test/scenarios/containerrecreaterequest.test.ts", ...names]
const request = (...names: string[]): Shown => [
  "src/controllers/containerrecreaterequest/plan.test.ts",
  ...names.map(name => `"${name}"`),
]

const cases: readonly [what: string, ...Shown[]][] = [
  ["1 the new image cannot be pulled", story("is missing: no pod is touched, and the nodes are named")],
  ["2 the agent pulls it and the kubelet cannot", next("and a report that lasts is")],
  // A pull job that never completes keeps it wanted on the node; it is not asked for again right before the patch.
  ["3 the image is collected before the patch", ["test/scenarios/image-pulls.test.ts", "images.collect(image)"]],
  ["4 the disk is nearly full", ["test/scenarios/image-pulls.test.ts", "a disk over the kubelet's threshold"]],
  ["5 the same digest under a new tag", story("the same bits under a new tag: no restart")],
  ["6 a tag that moved: the template is the same, and nothing is held", story("by a write that is no change of the")],
  [
    "7 a webhook rewrites the image",
    between("a webhook rewrites the image of pods"),
    next("a webhook has rewritten our"),
  ],
  ["8 injected containers", between("a container that admission has injected")],
  ["9 another field changes too", story("an environment variable is changed too", "under InPlaceOnly such a change")],
  ["10 an ordinary init container", template("an ordinary init container")],
  ["11 a restartable init container", template("a restartable init container")],
  ["12 an image volume", template("an image volume")],
  ["13 no pod may be down", story("a single pod is not stopped without being asked for")],
  ["14 a PodDisruptionBudget allows none", story("a PodDisruptionBudget that allows none is waited for")],
  ["15 a pod that is not ready", next("a pod that serves nothing is free")],
  ["16 a pod without a node", next("a pod without a node needs no image there")],
  ["17 a pod that ends", ["src/core/in-place/pod.test.ts", "a pod that ends"]],
  [
    "18 a pod that is evicted",
    story("a pod is deleted: its successor is brought along"),
    between("a pod that was drained"),
  ],
  [
    "19 a node is lost",
    between("a node: its pods are replaced elsewhere"),
    ["test/scenarios/in-place-lost.test.ts", "it is waited for, and named"],
  ],
  ["20 no agent", between("the agent of a node: its pod is not touched", "and in-place-unverified allows it")],
  ["21 a crash loop", story("crashes: ")],
  [
    "22 ready, and ended within minReadySeconds",
    story("minReadySeconds: 5"),
    next("a pod with a new container has been up"),
  ],
  ["23 scaled to zero", between("to zero and back", "a Deployment without pods is released at once")],
  ["24 two ReplicaSets have pods", between("two ReplicaSets have pods when it begins")],
  ["25 the owner's own pause", story("of a Deployment that its owner has paused")],
  ["26 GitOps puts the old image back", between("GitOps puts the old one back")],
  ["27 GitOps fights the hold", ["test/simulation/in-place-hostile.test.ts", "puts the old image back, once a second"]],
  [
    "28 resumed, or another ReplicaSet",
    story("kubectl rollout resume is its owner's"),
    between("another ReplicaSet with pods"),
  ],
  ["29 kubectl rollout restart", between("restart, by a tool that does not look at the pause", "restart afterwards")],
  ["30 the Deployment is deleted", between("the Deployment: its pods and jobs go")],
  ["31 a conflict", ["test/simulation/fates.ts", "a conflict is the answer"]],
  ["32 two operations", story("the image is changed again"), restart("a second request for the same container joins")],
  ["33 restartPolicy", request("restartPolicy Never")],
  ["34 the kubelet's back-off", restart("a second restart soon after waits for the kubelet's back-off")],
  ["35 preStop", restart("preStop is the one that the kubelet wrote", "preStop exec runs in the container")],
  [
    "36 a grace period longer than the deadline",
    ["src/cli/convert/openkruise.test.ts", "must be less than activeDeadlineSeconds"],
  ],
  ["37 an agent that ends during a stop", restart("an agent killed during a stop")],
  ["38 clocks that differ", next("a grace period begins when the pod is seen drained")],
  ["39 the deadline", restart("the deadline fails what is unfinished"), next('"too late"')],
  ["40 another leader", ["test/simulation/in-place-hostile.test.ts", "and the other one goes on with what it sees"]],
  ["41 a static pod", request("a static pod"), ["src/core/in-place/pod.test.ts", "a static pod"]],
  ["42 Windows", request("a pod on Windows")],
  ["43 many at once, within bounds", story("at a time`")],
]

test("every case has its number", () => {
  expect(cases.map(([what]) => Number.parseInt(what, 10))).toEqual(Array.from({ length: 43 }, (_, index) => index + 1))
})

for (const [what, ...shown] of cases)
  test(what, async () => {
    for (const [file, ...names] of shown) {
      const source = await readFile(join(repository, file), "utf8")
      for (const name of names) expect(source, `${file} has ${name}`).toContain(name)
    }
  })
