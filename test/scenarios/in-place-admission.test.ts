import { describe, test } from "vitest"
import { policyManifests } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { inPlaceOnly } from "#policies/in-place-only.ts"
import { inPlaceSettings } from "#policies/in-place-settings.ts"
import { resourceOf } from "#runtime/resource.ts"
import {
  type AdmissionPlace,
  inPlaceKinds,
  tryAnnotations,
  tryOldAnnotations,
  tryTemplates,
  tryToTakeBack,
  workloadOf,
} from "#test/support/in-place-admission.ts"
import { scenario } from "#test/support/scenario.ts"

// The server itself refuses what cannot be read, and under InPlaceOnly what cannot go in place. The same on a real server:
// test/e2e/in-place-admission.test.ts.

async function place(kind: string): Promise<AdmissionPlace & { install(): Promise<void> }> {
  const world = await scenario()
  const resource = resourceOf(workloadKind(kind)!)
  const answerOf = async (write: Promise<unknown>): Promise<string> => {
    let answer: string | undefined
    write.then(
      () => {
        answer = ""
      },
      (error: Error) => {
        answer = error.message
      },
    )
    await world.until("the answer", () => answer !== undefined)
    return answer!
  }
  const dryRun = { dryRun: true } as const
  return {
    install: () => world.apply(...([inPlaceSettings, inPlaceOnly].flatMap(policyManifests) as Json[])),
    async create(object) {
      const refusal = await answerOf(world.client.create(resource, object))
      if (refusal) throw new Error(refusal)
    },
    wouldPut: object => answerOf(world.client.replace(resource, object, dryRun)),
    wouldCreate: object => answerOf(world.client.create(resource, object, dryRun)),
  }
}

for (const kind of inPlaceKinds)
  describe(kind, () => {
    test("under InPlaceOnly a change of a common field is refused by its name", async () => {
      const here = await place(kind)
      await here.install()
      const object = workloadOf(kind, "web", { [strategyAnnotation]: "InPlaceOnly" })
      await here.create(object)
      await tryTemplates(here, object)
      await tryToTakeBack(here, workloadOf(kind, "stuck", { [strategyAnnotation]: "InPlaceOnly" }))
    })

    test("an annotation that cannot be read is refused with what to write", async () => {
      const here = await place(kind)
      const object = workloadOf(kind, "old", { [settingAnnotations.onFailure]: "Retry" })
      await here.create(object)
      await here.install()
      await tryAnnotations(here, kind)
      await tryOldAnnotations(here, object, settingAnnotations.onFailure)
    })
  })
