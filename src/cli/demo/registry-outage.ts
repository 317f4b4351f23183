import { type Json, parseRegistries } from "#cluster-sim/index.ts"
import { alternateImageSources } from "../kinds.ts"
import { change, deployments, events, imageChange, podsOf, shop, web } from "./shop.ts"
import type { Stage, Story } from "./story.ts"

const [here, mirror] = ["registry.example.com", "mirror.example.com"]
const repository = "shop/web"
const imageOf = (tag: string) => `${here}/${repository}:${tag}`
const digest = (digit: string) => `sha256:${digit.repeat(64)}`
const images = `images: { ${repository}: { v1: { digest: "${digest("1")}" }, v2: { digest: "${digest("2")}" } } }`

/** A registry goes down while a shop grows; its pods are repaired in place. A misspelt tag is not tried elsewhere. */
export const registryOutage: Story = {
  name: "registry-outage",
  title: "a registry goes down while a shop grows, and its pods start all the same",
  nodes: 6,
  registries: parseRegistries(`registries: { ${here}: { ${images} }, ${mirror}: { ${images} } }`),
  operators: [],
  async tellWith(stage) {
    const { world } = stage
    await world.apply(shop(2, [{ name: "web", image: imageOf("v1") }]), source)
    stage.tell(`A shop: two pods of ${here}/${repository}:v1, as its Deployment says.
An AlternateImageSource says that ${mirror} has the same images. So far it only watches.`)
    await stage.show(() => look(stage, ({ running }) => running === 2), 120)

    stage.tell(`${here} goes down. The pods that run do not need it.`)
    world.registries.setFault(here, { kind: "refused" })
    await stage.pause(1)

    stage.tell("The shop grows to six pods. Four of them are on nodes that do not have the image yet.")
    await change(stage, { spec: { replicas: 6 } })
    await stage.show(() => look(stage, ({ running }) => running === 6), 300)
    const { message, stuck } = await failures(stage)
    const same = (await podsOf(stage)).filter(({ metadata }) => stuck.has(metadata.uid)).length
    const { spec } = (await world.client.get(deployments, web)) as Json
    stage.tell(`A kubelet had said:
  ${message}
Two seconds later the registry was asked whether it fails for aim too, and the mirror whether it has the same bits.
All six serve. ${same} of the ${stuck.size} that failed are the same pods as before, now with the mirror's image: none was recreated.
The Deployment still says ${spec.template.spec.containers[0].image}, so GitOps has nothing to revert.`)
    await stage.pause(3)

    world.registries.setFault(here, undefined)
    stage.tell(`${here} is back. No running pod is restarted for that; the next version is pulled from there again.
The next version is v2, but v22 is typed.`)
    await change(stage, imageChange(imageOf("v22")))
    await stage.show(() => look(stage, ({ reason }) => reason === "NotFoundAnywhere"), 300)
    stage.tell(`No repository has v22. A misspelt tag is reported and not tried elsewhere, and the registries are asked at growing intervals.
The pods of v1 keep serving.`)
    await stage.pause(3)

    stage.tell("v2, then.")
    await change(stage, imageChange(imageOf("v2")))
    await stage.show(() => look(stage, ({ isDone }) => isDone), 300)
    const from = (await podsOf(stage)).filter(({ spec }) => spec.containers[0].image === imageOf("v2"))
    stage.tell(
      `${from.length} of 6 pods run v2, all from ${here} again. The incident is over: pods run what the Deployment says.`,
    )
  },
  next: [
    "docs/guides/when-a-registry-fails.md  do it yourself",
    "aim why pod/NAME                      why a pod pulls from where it does",
    "aim demo --list                       other stories",
  ],
}

const source: Json = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: alternateImageSources.kind,
  metadata: web,
  spec: {
    imageSourceReplacements: [{ equivalentRepositories: [`${here}/${repository}`, `${mirror}/${repository}`] }],
  },
}

const waitingOf = ({ status }: Json): Json | undefined => status?.containerStatuses?.[0]?.state?.waiting
const isFailing = (pod: Json) => /ImagePull/.test(waitingOf(pod)?.reason ?? "")
const isRunning = ({ status }: Json) => status?.containerStatuses?.[0]?.ready === true

/** The kubelets' messages about failed pulls, by pod. A failure may end before a frame is drawn. */
async function failures({ world }: Stage): Promise<{ message: string; stuck: ReadonlySet<string> }> {
  const all = (await world.client.list(events, { namespace: "default" })).items as Json[]
  const failed = all.filter(({ reason, message }) => reason === "Failed" && /pull image/.test(message))
  return { message: failed[0]?.message, stuck: new Set(failed.map(each => each.involvedObject.uid)) }
}

type Facts = { running: number; failing: number; reason: string; isDone: boolean }

/** Two lines: where the pods pull from, and what the AlternateImageSource reports. */
async function look(stage: Stage, isSo: (facts: Facts) => boolean): Promise<{ text: string; isSo: boolean }> {
  const all = await podsOf(stage)
  const { status } = (await stage.world.client.get(alternateImageSources, web)) as Json
  const ready = status?.conditions?.find(({ type }: Json) => type === "Ready")
  const running = all.filter(isRunning)
  const failing = all.filter(isFailing)
  const places = [...new Set(running.map(({ spec }) => spec.containers[0].image as string))].sort()
  const counts = places.map(image => {
    const { length } = running.filter(({ spec }) => spec.containers[0].image === image)
    return `${length} ${length === 1 ? "runs" : "run"} ${image}`
  })
  const isNew = all.every(({ spec }) => spec.containers[0].image.endsWith(":v2"))
  const facts: Facts = {
    running: running.length,
    failing: failing.length,
    reason: ready?.reason ?? "",
    isDone: isNew && running.length === 6 && all.length === 6 && status?.switched === 0,
  }
  const told = [...counts, ...(failing.length > 0 ? [`${failing.length} cannot pull`] : [])].join(", ")
  const text = `  pods     ${told || "none yet"}\n  ais/web  ${ready ? `${ready.reason}: ${ready.message}` : "not observed yet"}\n`
  return { text, isSo: isSo(facts) }
}
