import { parseRegistries } from "#cluster-sim/index.ts"
import { countServing, type Facts, factsOf, isReady, podsOf, shop, web } from "./shop.ts"
import type { Stage, Story } from "./story.ts"

const registry = "registry.example.com"
const replicas = 4

/** One container of every pod is restarted in place, pod by pod; then once more, and the kubelet waits with it. */
export const restart: Story = {
  name: "restart",
  title: "one container of every pod is restarted in place, pod by pod, while the shop serves",
  nodes: 3,
  registries: parseRegistries(
    `registries: { ${registry}: { images: { shop/web: { v1: { readyAfter: 4s } }, shop/proxy: { v1: {} } } } }`,
  ),
  operators: [],
  async tellWith(stage) {
    const readinessProbe = { httpGet: { path: "/", port: 80 }, periodSeconds: 1 }
    const app = { name: "app", image: `${registry}/shop/web:v1`, readinessProbe }
    await stage.world.apply(shop(replicas, [app, { name: "proxy", image: `${registry}/shop/proxy:v1` }]))
    stage.tell(
      `A shop: ${replicas} pods, each with the containers app and proxy. On each of three nodes an agent runs.`,
    )
    await stage.show(() => look(stage), 120)

    const before = await factsOf(stage)
    const serving = countServing(stage)
    stage.tell(
      "The app is to read its settings anew. No image changes, and proxy holds connections that must not break.",
    )
    await stage.type("restart deploy/web -c app -n default")
    const fewest = serving.end()
    const after = await factsOf(stage)
    const same = (of: (facts: Facts) => string) => after.filter((each, i) => of(each) === of(before[i]!)).length
    stage.tell(`What stayed, read from the pods before and after:
  ${same(({ uid }) => uid)} of ${replicas} pods are the same ones, ${same(({ address }) => address)} with the same address
  ${same(({ proxy }) => proxy)} of ${replicas} proxies are the same containers, never stopped
  ${replicas - same(({ app }) => app)} of ${replicas} apps are new containers; each was restarted ${[...new Set(after.map(({ restarts }) => restarts))].join(" or ")} time
At every moment at least ${fewest} of ${replicas} pods were ready.`)
    await stage.pause(3)

    stage.tell(
      "Again, for one pod. A second restart within ten minutes has to wait: the kubelet starts the container with a delay, as after a crash. aim reports that and waits too.",
    )
    await stage.type(`restart pod/${before[0]!.name} -c app -n default`)
    stage.tell(`The shop serves: ${(await podsOf(stage)).filter(isReady).length} of ${replicas} pods are ready.`)
  },
  next: [
    "docs/guides/restart-and-pre-pull.md  do it yourself",
    "aim restart --help                   several at a time, budgets, and how an interrupted restart goes on",
    "aim demo pre-pull                    images on the nodes before pods need them",
  ],
}

async function look(stage: Stage): Promise<{ text: string; isSo: boolean }> {
  const ready = (await podsOf(stage)).filter(isReady).length
  return { text: `  deploy/${web.name}  ${ready} of ${replicas} pods ready\n`, isSo: ready === replicas }
}
