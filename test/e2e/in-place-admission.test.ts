import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { policyManifests } from "#cli/manifests/policies.ts"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { inPlaceOnly } from "#policies/in-place-only.ts"
import { inPlaceSettings } from "#policies/in-place-settings.ts"
import { ask } from "#test/support/ask.ts"
import { floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import {
  type AdmissionPlace,
  inPlaceKinds,
  tryAnnotations,
  tryOldAnnotations,
  tryTemplates,
  tryToTakeBack,
  workloadOf,
} from "#test/support/in-place-admission.ts"

const manifests = [inPlaceSettings, inPlaceOnly].flatMap(policyManifests) as Json[]
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`

const install = async () => {
  for (const manifest of manifests) await floor().api.apply(pathOf(manifest), manifest)
}
const remove = async () => {
  for (const manifest of manifests.toReversed()) await floor().api.remove(pathOf(manifest))
}
beforeAll(install)
afterAll(remove)

test("the server finds nothing wrong with the expressions and the types they meet", async () => {
  for (const { name } of [inPlaceSettings, inPlaceOnly]) {
    const path = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${name}`
    const { status } = await until(`${path} to be checked`, async () => {
      const policy = await floor().api.get(path)
      return policy.status?.observedGeneration === policy.metadata.generation && policy
    })
    expect(status.typeChecking, name).toEqual({})
  }
})

async function place(kind: string): Promise<AdmissionPlace> {
  const namespace = await uniqueNamespace()
  const path = `/apis/apps/v1/namespaces/${namespace}/${workloadKind(kind)!.plural}`
  const here = (object: Json): Json => ({ ...object, metadata: { ...object.metadata, namespace } })
  const answerOf = async (sent: ReturnType<typeof ask>) => {
    const { status, body } = await sent
    return status < 300 ? "" : body.message
  }
  return {
    create: async object => void (await floor().api.create(path, here(object))),
    wouldPut: object => answerOf(ask("PUT", `${path}/${object.metadata.name}?dryRun=All`, here(object))),
    wouldCreate: object => answerOf(ask("POST", `${path}?dryRun=All`, here(object))),
  }
}

/** The settings' policy is the first to be installed and the last to be removed. */
const judgesSettings = async ({ wouldCreate }: AdmissionPlace, kind: string) =>
  (await wouldCreate(workloadOf(kind, "new", { [strategyAnnotation]: "none" }))) !== ""

/** A server reads its policies about once a second, so that it may have one of two that were just installed. */
async function untilInForce(here: AdmissionPlace, kind: string): Promise<void> {
  const tried = workloadOf(kind, "tried", { [strategyAnnotation]: "InPlaceOnly" })
  await here.create(tried)
  const changed = structuredClone(tried)
  changed.spec.template.spec.containers[0].args = ["-v"]
  await until(
    "the policies to be in force",
    async () => (await judgesSettings(here, kind)) && (await here.wouldPut(changed)) !== "",
  )
}

for (const kind of inPlaceKinds)
  describe(kind, () => {
    test("under InPlaceOnly a change of a common field is refused by its name", async () => {
      const here = await place(kind)
      await untilInForce(here, kind)
      const object = workloadOf(kind, "web", { [strategyAnnotation]: "InPlaceOnly" })
      await here.create(object)
      await tryTemplates(here, object)
      await tryToTakeBack(here, workloadOf(kind, "stuck", { [strategyAnnotation]: "InPlaceOnly" }))
    })

    test("an annotation that cannot be read is refused with what to write", async () => {
      const here = await place(kind)
      const object = workloadOf(kind, "old", { [settingAnnotations.onFailure]: "Retry" })
      await remove()
      await until("the policies to be gone", async () => !(await judgesSettings(here, kind)))
      await here.create(object)
      await install()
      await untilInForce(here, kind)
      await tryAnnotations(here, kind)
      await tryOldAnnotations(here, object, settingAnnotations.onFailure)
    })
  })
