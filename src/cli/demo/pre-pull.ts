import { namesOf } from "#api/names.ts"
import { type Json, parseRegistries } from "#cluster-sim/index.ts"
import { resourceOf } from "#runtime/resource.ts"
import { change, events, imageChange, isReady, labels, podsOf, shop, web } from "./shop.ts"
import type { Stage, Story } from "./story.ts"

const registry = "registry.example.com"
const imageOf = (tag: string) => `${registry}/shop/web:${tag}`
const [v1, v2] = [imageOf("v1"), imageOf("v2")]
const nodes = 6
const fullNode = "node-5"
const jobs = resourceOf(namesOf("ImagePullJob"))
const nodeImages = resourceOf(namesOf("NodeImage"))
const gibibyte = 2 ** 30

/** An image is brought to six nodes before a rollout; one has no room for it. Then the rollout needs no registry. */
export const prePull: Story = {
  name: "pre-pull",
  title: "an image is brought to the nodes first, and the rollout needs no registry",
  nodes,
  registries: parseRegistries(
    `registries: { ${registry}: { bandwidth: 200MB/s, images: { shop/web: { v1: {}, v2: { size: 2GB } } } } }`,
  ),
  operators: [],
  async tellWith(stage) {
    const { world } = stage
    const disk = world.cluster.node(fullNode)!.runtime.images.disk
    disk.set({ otherBytes: 84 * gibibyte })
    await world.apply(shop(nodes, [{ name: "web", image: v1 }], { topologySpreadConstraints: [onePerNode] }))
    stage.tell(`A shop: a pod of v1 on each of ${nodes} nodes. v2 is large: 2 GB, ten seconds for each node.`)
    await stage.show(() => pods(stage, v1), 300)

    stage.tell("An ImagePullJob brings v2 to the nodes on which pods of the shop run, to two at a time.")
    await world.apply(job)
    await stage.show(() => pulls(stage, "BackoffLimitExceeded"), 600)
    stage.tell(`${nodes - 1} nodes have it. ${fullNode} does not, and the job has ended; what is on the nodes stays.`)
    await stage.type(`why ipj/${web.name} -n default`)
    await stage.pause(3)

    stage.tell(
      `Files are removed from ${fullNode}, and the job is made anew. Nodes that have the image answer at once.`,
    )
    disk.set({ otherBytes: 40 * gibibyte })
    await world.client.delete(jobs, web)
    await world.apply(job)
    await stage.show(() => pulls(stage, "Completed"), 600)

    world.registries.setFault(registry, { kind: "refused" })
    stage.tell(`${registry} goes down, and v2 is rolled out all the same.`)
    await change(stage, imageChange(v2))
    await stage.show(() => pods(stage, v2), 600)
    const { present, said, pulled } = await pullsOf(stage)
    stage.tell(`${(await runningOf(stage, v2)).length} of ${nodes} pods run v2. The kubelets say of it:
  ${present} times: ${said}
  ${pulled} times: pulled, or tried to pull
Pods may be placed on nodes that were not selected: a pull job does not hold pods back.`)
  },
  next: [
    "docs/guides/restart-and-pre-pull.md  do it yourself",
    "docs/kinds/imagepulljob.md           which nodes, how much at once, private images",
    "aim demo --list                      other stories",
  ],
}

const onePerNode = {
  maxSkew: 1,
  topologyKey: "kubernetes.io/hostname",
  whenUnsatisfiable: "DoNotSchedule",
  labelSelector: { matchLabels: labels },
}

const job: Json = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: jobs.kind,
  metadata: web,
  spec: { image: v2, podSelector: { matchLabels: labels }, parallelism: 2, pullPolicy: { backoffLimit: 0 } },
}

const runningOf = async (stage: Stage, image: string) =>
  (await podsOf(stage)).filter(pod => isReady(pod) && pod.spec.containers[0].image === image)

/** The pods, until all of them run the image. */
async function pods(stage: Stage, image: string): Promise<{ text: string; isSo: boolean }> {
  const all = await podsOf(stage)
  const { length } = await runningOf(stage, image)
  const tag = image.slice(image.lastIndexOf(":") + 1)
  return {
    text: `  deploy/web  ${length} of ${nodes} pods run ${tag}\n`,
    isSo: length === nodes && all.length === nodes,
  }
}

/** What the job reports and what the agents answer, until the job has ended so. */
async function pulls({ world }: Stage, end: string): Promise<{ text: string; isSo: boolean }> {
  const { status } = (await world.client.get(jobs, web)) as Json
  const ready = status?.conditions?.find(({ type }: Json) => type === "Ready")
  const said = ready ? `${ready.reason}: ${ready.message}` : "not observed yet"
  const all = (await world.client.list(nodeImages)).items as Json[]
  const places = all.map(({ metadata, status: answers }) => {
    const tag = answers?.imageStatuses?.[`${registry}/shop/web`]?.tags?.find((each: Json) => each.tag === "v2")
    return `${metadata.name} ${phaseOf(tag)}`
  })
  const text = `  ipj/web  ${said}\n  nodes    ${places.join(", ")}\n`
  return { text, isSo: ready?.reason === end }
}

function phaseOf(tag: Json | undefined): string {
  if (!tag) return "-"
  if (tag.phase === "Pulling") return tag.progress === undefined ? "at work" : `${tag.progress} %`
  return tag.phase === "Succeeded" ? "has it" : (tag.reason ?? tag.phase)
}

const isPresent = ({ message }: Json) => message.startsWith(`Container image "${v2}" already present`)

/** What the kubelets wrote about v2. */
async function pullsOf({ world }: Stage): Promise<{ present: number; said: string; pulled: number }> {
  const all = (await world.client.list(events, { namespace: web.namespace })).items as Json[]
  const about = all.filter(({ message }) => message.includes(`"${v2}"`))
  const times = (some: readonly Json[]) => some.reduce((sum, { count }) => sum + (count ?? 1), 0)
  const present = about.filter(isPresent)
  return { present: times(present), said: present[0]?.message, pulled: times(about) - times(present) }
}
