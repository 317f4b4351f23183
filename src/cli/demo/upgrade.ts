import { core } from "#runtime/resource.ts"
import { dicomController } from "../../../examples/dicom/controller.ts"
import {
  change,
  dicomDefinition,
  imageOf,
  isComplete,
  isHalted,
  podsOf,
  serviceImage,
  tenant,
  tenants,
  withImage,
} from "./fleet.ts"
import type { Stage, Story } from "./story.ts"

const [v1, v2] = [imageOf("v1"), imageOf("v2")]
const nodes = core("nodes", "Node", false)

const tiers = [
  { upgradeTier: "early", priority: 2 },
  { upgradeTier: "", priority: 1 },
  { upgradeTier: "late", priority: 0 },
]
const tenantsPerTier = 8

/** A fleet is upgraded; one tenant fails and halts its tier; the cause is fixed, and the rollout completes. */
export const upgrade: Story = {
  name: "upgrade",
  title: "a fleet of tenants is upgraded tier by tier, and one of them fails",
  nodes: 3,
  operators: [dicomController()],
  async tellWith(stage) {
    const { world } = stage
    stage.tell(`A cluster is up in this process: three nodes, an API server for kubectl, and aim's controllers.`)
    await world.apply(dicomDefinition)
    await world.apply(...signUp(), rollout())
    stage.tell(
      `${tiers.length * tenantsPerTier} tenants sign up. Each is a Dicom, a custom kind; none names an image. A ServiceImage does: v1.`,
    )
    await stage.watch("dicom", isComplete, 300)

    stage.tell("node-2 is cordoned and forgotten. No tenant is affected: all pods keep running.")
    await world.client.patch(nodes, { name: "node-2" }, { type: "merge", body: { spec: { unschedulable: true } } })
    await stage.pause(1)

    stage.tell(
      "The fleet is to run v2. The tier early goes first, the default tier when early is healthy, late at the end.",
    )
    await change(stage, { spec: { defaultImage: v2 } })
    const halted = await stage.watch("dicom", isHalted, 600)
    const untouched = withImage(await tenants(stage, "upgrade-tier=late"), v1).length
    stage.tell(`Halted: riverside may only run on node-2, its spec says that its failure halts the rollout, and its deadline has passed.
The ${untouched} tenants of the tier late were not touched; riverside itself still serves, with v1. Its new pod says:
  ${await waitingPod(stage)}`)
    if (!isHalted(halted)) return
    await stage.pause(3)

    stage.tell("kubectl uncordon node-2: nothing else is needed, the rollout continues by itself.")
    await world.client.patch(nodes, { name: "node-2" }, { type: "merge", body: { spec: { unschedulable: null } } })
    await stage.watch("dicom", isComplete, 600)
    const all = await tenants(stage)
    stage.tell(`Complete: ${withImage(all, v2).length} of ${all.length} tenants run v2.`)
  },
  next: [
    "aim demo canary  steps, an image that cannot be pulled, and a rollback",
    "aim up           the same cluster, for kubectl",
    "aim --help",
  ],
}

const rollout = () =>
  serviceImage({
    defaultImage: v1,
    // No container of this story crashes later, so the story does not wait for settling.
    tiers: tiers.map(tier => ({ ...tier, maxConcurrent: 3, progressDeadlineSeconds: 60, settleSeconds: 0 })),
    pace: { podsPerSecond: 2 },
  })

function signUp() {
  const names = tiers.flatMap(({ upgradeTier }) =>
    Array.from({ length: tenantsPerTier }, (_, index) => ({
      upgradeTier,
      name: `${upgradeTier || "standard"}-${index + 1}`,
    })),
  )
  names[tenantsPerTier + 2]!.name = "riverside"
  const onNode2 = { failureHaltsUpdate: true, placement: { nodeSelector: { "kubernetes.io/hostname": "node-2" } } }
  return names.map(({ name, upgradeTier }) => tenant(name, upgradeTier, name === "riverside" ? onNode2 : {}))
}

async function waitingPod(stage: Stage): Promise<string> {
  const waiting = (await podsOf(stage, "riverside")).find(({ status }) => status?.phase === "Pending")
  const scheduled = waiting?.status.conditions?.find(({ type }: { type: string }) => type === "PodScheduled")
  return scheduled?.message ?? "nothing yet"
}
