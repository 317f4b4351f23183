import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { policies } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { deployments } from "#controllers/canary/resources.ts"
import { createInPlaceController } from "#controllers/in-place/controller.ts"
import { endedLabel } from "#core/canary/run-object.ts"
import { grantName } from "#core/grant.ts"
import { decisionAnnotation } from "#core/image/record.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, uidsOf, v1, v2, v3 } from "#test/support/canary-story.ts"
import { failOver, mirrored, rollOut } from "#test/support/together-story.ts"
import { printed, typeInto } from "#test/support/typed.ts"

// A Canary beside the other kinds: one part of aim has a workload at a time.

/** With the policy, and without it: then the pause stands between runs. */
const servers = { "by the policy": { hasPolicy: true }, "by a standing pause": { hasPolicy: false } }

const grant: Json = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: grantName, namespace: "default" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: grantName },
  subjects: [],
}

const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
const analysis = { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics }

async function begun({ spec = {}, ...options }: CanaryOptions = {}): Promise<CanaryStory> {
  const story = await canaryStory({ ...options, spec: { analysis, ...spec } })
  await story.until("Initialized")
  await story.world.settle("1m")
  return story
}

const weightOf = (story: CanaryStory, weight: number) =>
  story.world.until(`a weight of ${weight}`, () => story.weights().includes(weight), "30m")

const trialOf = async ({ world }: CanaryStory): Promise<Json | undefined> =>
  (await world.list(deployments)).find(({ metadata }) => metadata.name !== "web")

const imagesIn = (all: readonly Json[]) => all.map(({ spec }) => spec.containers[0].image as string).sort()

const bad = [{ name: "request-success-rate", verdict: "Bad", why: "12 % of the requests failed" }] as const

describe("a ServiceImage over the target", () => {
  for (const [name, options] of Object.entries(servers)) {
    test(`its stamp is held like a user's write, ${name}, and is up to date when the Canary succeeded`, async () => {
      const story = await begun(options)
      const rollout = await rollOut(story, v1)
      const before = uidsOf(await story.pods())
      await rollout.change({ defaultImage: v2 })
      await weightOf(story, 34)
      expect(uidsOf(await story.pods())).toEqual(expect.arrayContaining(before))
      expect((await story.deployment()).metadata.labels[heldMark]).toBe("canary")
      expect(await rollout.condition("Complete")).toMatchObject({ status: "False" })
      await rollout.complete()
      await story.world.settle("1m")
      expect((await story.canary()).status.phase).toBe("Succeeded")
      expect(imagesIn(await story.pods())).toEqual([v2, v2, v2])
      expect((await story.canary()).status.history).toHaveLength(1)
    })

    test(`a run that takes longer than the deadline is progress, ${name}`, async () => {
      const story = await begun(options)
      const rollout = await rollOut(story, v1, {
        tier: { progressDeadlineSeconds: 30 },
        spec: { onFailure: "Rollback" },
      })
      await rollout.change({ defaultImage: v2 })
      await rollout.complete()
      const failed = rollout
        .statuses()
        .flatMap(({ tierStatus = [] }) => tierStatus.flatMap((each: Json) => each.failures))
      expect(failed).toEqual([])
      expect((await story.canary()).status.phase).toBe("Succeeded")
    })

    test(`a rejected image has failed, ${name}, with the Canary's words`, async () => {
      const story = await begun(options)
      const rollout = await rollOut(story, v1)
      story.says.checks = bad
      await rollout.change({ defaultImage: v2 })
      await rollout.until("Complete", "AllFailed")
      const { failures } = await rollout.tier("")
      expect(failures).toMatchObject([{ reason: "CanaryFailed", count: 1, examples: ["default/web"] }])
      expect(failures[0].message).toMatch(/^Canary web, run .*AnalysisFailed, .*12 % of the requests failed/)
      expect((await story.canary()).status.phase).toBe("Failed")
    })

    test(`a rollback gives the running image back, ${name}, and no pod was touched`, async () => {
      const story = await begun(options)
      const rollout = await rollOut(story, v1, { spec: { onFailure: "Rollback" } })
      const before = uidsOf(await story.pods())
      story.says.checks = bad
      await rollout.change({ defaultImage: v2 })
      await rollout.until("Complete", "RolledBack")
      await story.world.settle("2m")
      expect((await story.deployment()).spec.template.spec.containers[0].image).toBe(v1)
      expect(uidsOf(await story.pods())).toEqual(before)
      const ready = (await story.canary()).status.conditions.find(({ type }: Json) => type === "Ready")
      expect(ready).toMatchObject({ status: "True" })
    })
  }

  test("a run that waits for an approval does not hold up the tier for ever", async () => {
    const story = await begun({ spec: { requireApproval: ["Rollout"] } })
    const rollout = await rollOut(story, v1, { tier: { progressDeadlineSeconds: 30 } })
    await rollout.change({ defaultImage: v2 })
    await rollout.until("Complete", "AllFailed")
    const { failures } = await rollout.tier("")
    expect(failures).toMatchObject([{ reason: "CanaryFailed", count: 1, examples: ["default/web"] }])
    expect(failures[0].message).toContain("AwaitingApproval")
    expect((await story.canary()).status.phase).toBe("Waiting")
  })

  for (const kind of ["StatefulSet", "DaemonSet"] as const) {
    test(`a ${kind} is up to date when its Canary succeeded, and not when its counts are complete`, async () => {
      const story = await begun({ kind })
      const rollout = await rollOut(story, v1, { kind })
      await rollout.change({ defaultImage: v2 })
      await weightOf(story, 34)
      expect(await rollout.condition("Complete")).toMatchObject({ status: "False" })
      await rollout.complete()
      expect((await story.canary()).status.phase).toBe("Succeeded")
      await story.world.settle("1m")
      expect(imagesIn(await story.pods())).toEqual([v2, v2, v2])
    })

    test(`a ${kind} whose image was rejected is not stamped again`, async () => {
      const story = await begun({ kind })
      const rollout = await rollOut(story, v1, { kind })
      story.says.checks = bad
      await rollout.change({ defaultImage: v2 })
      await rollout.until("Complete", "AllFailed")
      await story.until("Failed")
      await story.world.settle("5m")
      expect((await rollout.tier("")).failures).toMatchObject([{ reason: "CanaryFailed", count: 1 }])
      expect((await story.canary()).status.history).toHaveLength(1)
      expect(imagesIn(await story.pods())).toEqual([v1, v1, v1])
    })
  }

  test("the Deployment of a run is neither counted nor stamped", async () => {
    const story = await begun({ hasPolicy: true })
    const rollout = await rollOut(story, v1)
    await rollout.change({ defaultImage: v2 })
    await weightOf(story, 34)
    expect((await rollout.tier("")).total).toBe(1)
    await rollout.complete()
    const runs = story.world.history.filter(
      ({ object }) => object.kind === "Deployment" && object.metadata.name !== "web",
    )
    expect(runs.length).toBeGreaterThan(0)
    expect(runs.filter(({ object }) => object.metadata.annotations?.[decisionAnnotation])).toEqual([])
    expect(rollout.statuses().every(({ tierStatus = [] }) => tierStatus.every((each: Json) => each.total <= 1))).toBe(
      true,
    )
  })

  test("a tier's updateStrategy leaves the target alone: the Canary proves the image", async () => {
    const story = await begun({ hasPolicy: true })
    const rollout = await rollOut(story, v1)
    await rollout.change({
      defaultImage: v2,
      tiers: [{ upgradeTier: "", settleSeconds: 0, updateStrategy: "InPlaceIfPossible" }],
    })
    await rollout.complete()
    const holds = story.world.history.flatMap(({ object }) => {
      const is = object.kind === "Deployment" && object.metadata.name === "web"
      return is ? (object.metadata.labels?.[heldMark] ?? []) : []
    })
    expect([...new Set(holds)]).toEqual(["canary"])
    const { metadata } = await story.deployment()
    expect(metadata.annotations[strategyAnnotation]).toBeUndefined()
    expect((await story.canary()).status.phase).toBe("Succeeded")
  })

  test("InPlaceOnly keeps the tier from stamping it, and says why", async () => {
    const story = await begun({ hasPolicy: true })
    const rollout = await rollOut(story, v1)
    const tiers = [{ upgradeTier: "", settleSeconds: 0, updateStrategy: "InPlaceOnly" }]
    await rollout.change({ defaultImage: v2, tiers })
    await story.world.settle("1m")
    const { failures } = await rollout.tier("")
    expect(failures).toMatchObject([{ reason: "NotInPlace", count: 1 }])
    expect(failures[0].message).toContain("Canary web proves each change")
    expect((await story.deployment()).spec.template.spec.containers[0].image).toBe(v1)
  })
})

describe("an AlternateImageSource for the target", () => {
  for (const [name, options] of Object.entries(servers))
    test(`it repairs the pods of the run too, ${name}, and the run goes on`, async () => {
      const story = await begun(options)
      await failOver(story, [v1, v2])
      story.registries.setFault(v2, { kind: "refused" })
      await story.setImage(v2)
      await story.until("Succeeded")
      await story.world.settle("1m")
      expect(imagesIn(await story.pods())).toEqual([v2, v2, v2].map(mirrored))
      expect((await story.deployment()).spec.template.spec.containers[0].image).toBe(v2)
    })

  for (const [name, options] of Object.entries(servers))
    test(`with apply: Template neither the target nor the Deployment of the run is changed, ${name}`, async () => {
      const story = await begun(options)
      await failOver(story, [v1, v2], { apply: "Template", templateShare: "1%" })
      story.registries.setFault(v2, { kind: "refused" })
      await story.setImage(v2)
      await story.until("Succeeded")
      const templates = story.world.history.flatMap(({ object }) =>
        object.kind === "Deployment" ? [object.spec.template.spec.containers[0].image as string] : [],
      )
      expect([...new Set(templates)].sort()).toEqual([v1, v2])
      expect((await story.canary()).status.history).toHaveLength(1)
    })

  test("during an abort no pod of the run is repaired", async () => {
    const story = await canaryStory({ hasPolicy: true, isAlone: true })
    const process = story.run()
    await story.until("Initialized")
    await story.world.settle("1m")
    story.registries.setFault(v2, { kind: "refused" })
    await story.setImage(v2)
    const waits = async () => (await story.pods()).some(pod => pod.spec.containers[0].image === v2)
    await story.world.until("a pod of the run", waits, "5m")
    process.die()
    // As the Canary says it while its way back has to wait.
    const { name } = (await trialOf(story))!.metadata
    const body = { metadata: { labels: { [endedLabel]: "true" } } }
    await story.world.client.patch(deployments, { name, namespace: "default" }, { type: "merge", body })
    await failOver(story, [v1, v2])
    await story.world.advance("5m")
    expect(imagesIn(await story.pods())).not.toContain(mirrored(v2))
  })
})

describe("update-strategy on the target, written later", () => {
  const conditionOf = async (story: CanaryStory, type: string): Promise<Json> =>
    (await story.canary()).status.conditions.find((each: Json) => each.type === type)
  const annotate = (story: CanaryStory, value: string | null) =>
    story.world.client.patch(
      deployments,
      { name: "web", namespace: "default" },
      { type: "merge", body: { metadata: { annotations: { [strategyAnnotation]: value } } } },
    )

  for (const [name, options] of Object.entries(servers))
    test(`the Canary is Stalled (Conflict), held ${name}, and no update in place begins`, async () => {
      const story = await begun(options)
      await story.world.apply(...(policies() as Json[]), grant)
      story.world.run([createInPlaceController()])
      const before = uidsOf(await story.pods())
      await annotate(story, "InPlaceIfPossible")
      const isStalled = async () => (await conditionOf(story, "Stalled")).reason === "Conflict"
      await story.world.until("Stalled", isStalled, "1m")
      expect((await conditionOf(story, "Stalled")).message).toContain("remove the annotation, or delete the Canary")
      await story.setImage(v2)
      await story.world.settle("10m")
      const { metadata, spec } = await story.deployment()
      expect([metadata.labels[heldMark], spec.paused]).toEqual(["canary", true])
      expect(uidsOf(await story.pods())).toEqual(before)
      expect(imagesIn(await story.pods())).toEqual([v1, v1, v1])
      // Without the annotation the change that waited is proven.
      await annotate(story, null)
      await story.until("Succeeded")
      await story.world.settle("1m")
      expect(imagesIn(await story.pods())).toEqual([v2, v2, v2])
    })
})

describe("as it is typed", () => {
  test("aim release ends the hold of a run, and says what follows", async () => {
    const story = await begun({ hasPolicy: true })
    await story.setImage(v2)
    await weightOf(story, 34)
    const said = await printed(story.world, "aim release deploy/web -n default")
    expect(said).toMatch(
      /^deploy\/web of namespace default is released: its own controller goes on with its template; /,
    )
    expect(said).toMatch(
      /; run r\w+ of canary\/web ends, .*; canary\/web holds the next change again; if no controller/,
    )
    await story.world.settle("10m")
    expect(imagesIn(await story.pods())).toEqual([v2, v2, v2])
    expect(await trialOf(story)).toBeUndefined()
    expect((await story.canary()).status.history[0]).toMatchObject({ result: "Cancelled", reason: "Released" })
    await story.setImage(v1)
    expect((await story.deployment()).metadata.labels[heldMark]).toBe("canary")
  })

  test("aim release of a standing hold: the Canary proves no further change, as it says", async () => {
    const story = await begun()
    const said = await printed(story.world, "aim release --all")
    expect(said).toContain("no policy holds it, so canary/web proves no further change of it")
    await story.setImage(v2)
    await story.world.settle("10m")
    expect(imagesIn(await story.pods())).toEqual([v2, v2, v2])
    expect((await story.canary()).status.history).toEqual([])
  })

  test("aim set-image canary/NAME sets the image of the target, and --wait waits for the Canary", async () => {
    const story = await begun({ hasPolicy: true })
    const ask = (words: string) => printed(story.world, `aim set-image canary/web ${words} -n default`)
    expect(await ask(`${v1}`)).toBe("deploy/web: nothing changes, it has these images already\n")
    const type = (words: string) => typeInto(story.world, `aim set-image canary/web ${words} -n default --wait`)
    const good = await type(`web=${v2}`)
    expect(await good.outcome()).toMatchObject({ exitCode: 0 })
    expect(good.written.join("")).toContain(`deploy/web container web: ${v1} → ${v2}\n`)
    expect((await story.canary()).status.phase).toBe("Succeeded")
    story.says.checks = bad
    expect(await (await type(v3)).outcome()).toMatchObject({
      error: { message: expect.stringContaining("AnalysisFailed") },
    })
  })

  test("aim set-image is refused while a run is under way, and overtakes it when asked to", async () => {
    const story = await begun({ hasPolicy: true })
    await story.setImage(v2)
    await weightOf(story, 34)
    expect(await printed(story.world, `aim set-image canary/web ${v3} -n default`)).toMatch(/run r\w+ is under way/)
    expect((await story.deployment()).spec.template.spec.containers[0].image).toBe(v2)
    await printed(story.world, `aim set-image canary/web ${v3} -n default --supersede`)
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(imagesIn(await story.pods())).toEqual([v3, v3, v3])
  })

  test("aim why pod/NAME says of which revision a pod is, its share of the requests, and how the run stands", async () => {
    const story = await begun({ hasPolicy: true })
    await story.world.apply(crdOf(AlternateImageSource) as Json)
    await story.setImage(v2)
    await weightOf(story, 34)
    await story.world.settle("10s")
    const why = async (image: string) => {
      const { metadata } = (await story.pods()).find(pod => pod.spec.containers[0].image === image)!
      return printed(story.world, `aim why pod/${metadata.name} -n default`)
    }
    expect(await why(v2)).toMatch(
      /revision \w+ of Deployment web, which run r\w+ of canary\/web proves\.[\s\S]*have 34 % of the requests since/,
    )
    expect(await why(v1)).toMatch(
      /which runs while run r\w+ of canary\/web proves .*web:2\.[\s\S]*have 66 % of the requests/,
    )
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(await why(v2)).toMatch(/canary\/web has no run\.[\s\S]*Promoted \(Promoted\)/)
  })
})
