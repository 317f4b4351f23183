import { expect, test } from "vitest"
import { manifests } from "#cli/manifests/all.ts"
import { controllerName, controllerSubject, targetRole, targetRoleRef } from "#cli/manifests/names.ts"
import { sources } from "#cli/manifests/sources.ts"
import { bootstrapRoles } from "#cluster-sim/auth/index.ts"
import type { Fault } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { clusterRoleAggregation } from "#cluster-sim/physics/kube-controllers/cluster-role.ts"
import { dicom, tell } from "#test/support/rollout-story.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"

// The controller with the account and the roles that `aim manifests` prints, and no others.

const namespace = "aim-system"
const rbac = "rbac.authorization.k8s.io/v1"
const space = (name: string): Json => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })
const grant = (where: string): Json => ({
  apiVersion: rbac,
  kind: "RoleBinding",
  metadata: { name: targetRole, namespace: where },
  roleRef: targetRoleRef,
  subjects: [controllerSubject(namespace)],
})

async function installed(): Promise<World> {
  const world = await scenario({ parts: [clusterRoleAggregation] })
  bootstrapRoles(world.cluster.storage)
  const foreign = [
    { group: "services.example.com", version: "v1alpha1", plural: "dicoms", kind: "Dicom", namespaced: true },
  ]
  const wanted = { namespace, image: "aim:1", foreign }
  const printed = manifests({ ...wanted, section: "all" }, sources()).filter(({ apiVersion }) => apiVersion === rbac)
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: controllerName, namespace } }
  await world.apply(
    ...["charts/aim/crds/serviceimages.yaml", "examples/dicom/crd.yaml"].map(manifest),
    ...[namespace, "open", "closed"].map(space),
    account,
    ...printed,
  )
  await world.advance("1s")
  return world
}

/** Sends what passes with a token of the controllers' account. */
function asController({ cluster }: World): Fault {
  const asked = async (): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${controllerName}/token`
    const body = JSON.stringify({ spec: { expirationSeconds: 86_400 } })
    const signal = new AbortController().signal
    const answer = await cluster.transport.send({ method: "POST", path, headers: {}, body, signal })
    return JSON.parse((await Array.fromAsync(answer.body)).map(String).join("")).status.token
  }
  const token = asked()
  return next => ({
    ...next,
    async send(request) {
      const headers = { ...request.headers, authorization: `Bearer ${await token}` }
      return next.send({ ...request, headers })
    },
  })
}

test("objects of a namespace without a grant are counted as forbidden and left alone, until it is granted", async () => {
  const world = await installed()
  const tenants = ["open", "closed"].map(each => dicom(each, { metadata: { namespace: each } }))
  await world.apply(grant("open"))
  const story = await tell(tenants, {
    ...{ world, spec: { tiers: [] }, isUnderWay: true },
    process: () => ({ faults: [asController(world)] }),
  })
  const failures = async (): Promise<Json[]> =>
    (await story.status())?.tierStatus?.flatMap((each: Json) => each.failures ?? []) ?? []
  await world.until("the refusal to be reported", async () => (await failures()).length > 0)
  expect(await story.images()).toEqual({ open: "v1", closed: "" })
  expect(await failures()).toEqual([
    expect.objectContaining({ reason: "Forbidden", count: 1, examples: ["closed/closed"] }),
  ])
  expect((await failures())[0].message).toContain("cannot patch resource 'dicoms'")
  await world.apply(grant("closed"))
  await story.complete()
  expect(await story.images()).toEqual({ open: "v1", closed: "v1" })
})
