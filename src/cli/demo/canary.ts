import { rollbackAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { type Json, parseRegistries } from "#cluster-sim/index.ts"
import { parseInstant } from "#lib/instant.ts"
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

const [v1, v2, fixed] = [imageOf("v1"), imageOf("v2"), imageOf("v2.1")]
const fleetSize = 40

/** A rollout in steps has an image that was never pushed, halts at the first step, is rolled back, and is tried again. */
export const canary: Story = {
  name: "canary",
  title: "one in ten tenants goes first; the image is not there, and the others are not touched",
  nodes: 3,
  // v2 was never pushed.
  registries: parseRegistries(
    `registries: { registry.example.com: { images: { dicom-service: { v1: {}, v2.1: {} } } } }`,
  ),
  operators: [dicomController()],
  async tellWith(stage) {
    const { world } = stage
    await world.apply(dicomDefinition)
    const names = Array.from({ length: fleetSize }, (_, index) => `tenant-${index + 1}`)
    await world.apply(...names.map(name => tenant(name, "")), serviceImage({ defaultImage: v1 }))
    stage.tell(`${fleetSize} tenants sign up, and a ServiceImage gives them v1.`)
    await stage.watch("dicom", isComplete, 300)

    stage.tell(`The fleet is to run v2: a tenth of the tenants, then half, then all. Each step must stay healthy for a minute
before the next begins. But v2 was never pushed.`)
    await change(stage, { spec: { defaultImage: v2, tiers: [{ upgradeTier: "", steps, settleSeconds: 0 }] } })
    const halted = await stage.watch("dicom", isHalted, 300)
    const first = withImage(await tenants(stage), v2)
    const [failure] = halted.status.tierStatus[0].failures
    stage.tell(`Halted after ${secondsToHalt(halted)} s, not at a deadline: no tenant of the first step can pull the image.
The ${fleetSize - first.length} others were not touched, and ${inWords(first)} still serve with their old pods.
The diagnosis (${failure?.reason}, ${failure?.scope}) is in the status; a pod says:
  ${await pullingPod(stage, first[0]!)}`)
    await stage.pause(3)

    stage.tell("aim rollback: the tenants that this rollout changed go back to v1, and no others.")
    await change(stage, { metadata: { annotations: { [rollbackAnnotation]: halted.status.operation.id } } })
    await stage.watch("dicom", isRolledBack, 300)
    const back = withImage(await tenants(stage), v1).length
    stage.tell(`All ${back} tenants have v1, and the history shows what was tried.`)
    await stage.pause(2)

    stage.tell("v2.1 is v2, and is in the registry. Again a tenth goes first.")
    await change(stage, { spec: { defaultImage: fixed } })
    await stage.watch("dicom", isSoaking, 300)
    const again = withImage(await tenants(stage), fixed)
    const same = again.join() === first.join() ? "the same ones as before" : "other ones than before"
    stage.tell(`${inWords(again)}: ${same}, because a hash of each tenant decides. They are healthy, and soak.`)
    await stage.watch("dicom", isComplete, 600)
    const all = await tenants(stage)
    stage.tell(`Complete: ${withImage(all, fixed).length} of ${all.length} tenants run v2.1.`)
  },
  next: ["docs/guides/upgrade-a-fleet.md  do it yourself", "aim up --help", "aim demo --list  other stories"],
}

const steps = [{ percent: 10, soakSeconds: 60 }, { percent: 50, soakSeconds: 60 }, { percent: 100 }]

function secondsToHalt({ status }: Json): number {
  const { lastTransitionTime } = status.conditions.find(({ type }: Json) => type === "Halted")
  return Math.round((parseInstant(lastTransitionTime)! - parseInstant(status.operation.startedAt)!) / 1000)
}

async function pullingPod(stage: Stage, name: string): Promise<string> {
  const waiting = (await podsOf(stage, name)).flatMap(({ status }) => status?.containerStatuses ?? [])
  return waiting.map(({ state }: Json) => state?.waiting?.message).find(Boolean) ?? "nothing yet"
}

const isRolledBack = ({ status }: Json) => status?.operation?.phase === "RolledBack"
const isSoaking = ({ status, metadata }: Json) =>
  status?.observedGeneration === metadata.generation &&
  status.conditions.some(({ type, reason }: Json) => type === "InProgress" && reason === "Soaking")

const inWords = (names: readonly string[]) =>
  names.length === 1 ? names[0]! : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`
