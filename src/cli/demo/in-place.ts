import { parseRegistries } from "#cluster-sim/index.ts"
import { parseNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { change, countServing, deploymentOf, factsOf, isReady, podsOf, shop, web } from "./shop.ts"
import type { Stage, Story } from "./story.ts"

const registry = "registry.example.com"
const imageOf = (tag: string) => `${registry}/shop/web:${tag}`
const replicas = 4

/** A Deployment gets a new image in the pods it has; then one that crashes, which goes back. */
export const inPlace: Story = {
  name: "in-place",
  title: "a Deployment gets a new image in the pods it has, while the shop serves",
  nodes: 3,
  registries: parseRegistries(
    `registries: { ${registry}: { images: { shop/web: { v1: { readyAfter: 2s }, v2: { readyAfter: 4s }, v3: { exits: { after: 1s, code: 1 } } }, shop/proxy: { v1: {} } } } }`,
  ),
  operators: [],
  async tellWith(stage) {
    const readinessProbe = { httpGet: { path: "/", port: 80 }, periodSeconds: 1 }
    const app = { name: "app", image: imageOf("v1"), readinessProbe }
    const deployment = shop(replicas, [app, { name: "proxy", image: `${registry}/shop/proxy:v1` }])
    const annotations = { [strategyAnnotation]: "InPlaceIfPossible", [settingAnnotations.onFailure]: "Rollback" }
    // Ready for a moment is not enough: a container that ends soon after its start must not count as updated.
    const spec = { ...deployment.spec, minReadySeconds: 3 }
    await stage.world.apply({ ...deployment, metadata: { ...web, annotations }, spec })
    stage.tell(`A shop: ${replicas} pods, each with the containers app and proxy. The Deployment has an annotation:
  ${strategyAnnotation}: InPlaceIfPossible`)
    await stage.show(() => look(stage, "v1"), 120)

    const before = await factsOf(stage)
    const serving = countServing(stage)
    stage.tell("$ kubectl set image deploy/web app=v2")
    await setImage(stage, "v2")
    await stage.show(() => look(stage, "v2"), 300)
    const fewest = serving.end()
    const after = await factsOf(stage)
    const same = (of: (facts: (typeof before)[number]) => string) =>
      after.filter((each, i) => before[i] && of(each) === of(before[i])).length
    stage.tell(`What stayed, read from the pods before and after:
  ${same(({ uid }) => uid)} of ${replicas} pods are the same ones, ${same(({ address }) => address)} with the same address
  ${same(({ proxy }) => proxy)} of ${replicas} proxies are the same containers, never stopped
  ${replicas - same(({ app }) => app)} of ${replicas} apps are new containers, of v2
At every moment at least ${fewest} of ${replicas} pods were ready.`)
    await stage.pause(3)

    stage.tell(
      "v3 ends a second after its start. in-place-on-failure is Rollback.\n$ kubectl set image deploy/web app=v3",
    )
    await setImage(stage, "v3")
    await stage.show(() => look(stage, "v2"), 600)
    const { reason, message } = await noteOf(stage)
    stage.tell(
      `${reason}: ${message}. The first pod had shown it; the shop serves v2 with the same ${same(({ uid }) => uid)} pods.`,
    )
  },
  next: [
    "docs/guides/update-in-place.md  do it yourself",
    "aim demo restart                restart a container and keep its pod",
    "aim demo --list                 other stories",
  ],
}

const setImage = (stage: Stage, tag: string) =>
  change(stage, { spec: { template: { spec: { containers: [{ name: "app", image: imageOf(tag) }] } } } })

const noteOf = async (stage: Stage) =>
  parseNote((await deploymentOf(stage)).metadata.annotations[inPlaceAnnotation]) ?? { reason: "", message: "" }

async function look(stage: Stage, tag: string): Promise<{ text: string; isSo: boolean }> {
  const pods = await podsOf(stage)
  const { metadata } = await deploymentOf(stage)
  const ready = pods.filter(isReady).length
  const running = pods.filter(({ spec }) => spec.containers[0].image === imageOf(tag)).length
  const isHeld = metadata.labels?.[heldMark] !== undefined
  const { reason } = await noteOf(stage)
  const text = `  deploy/${web.name}  ${ready} of ${replicas} pods ready, ${running} on ${tag}${isHeld ? `  held: ${reason}` : ""}\n`
  return { text, isSo: ready === replicas && running === replicas && !isHeld }
}
