import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { maxTiers, ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { serviceImageAuthor } from "#policies/serviceimage-author.ts"
import { type Answer, ask } from "#test/support/ask.ts"
import { installKinds, serviceImagePath } from "#test/support/fleet.ts"
import {
  type Access,
  floor,
  type Json,
  type Rules,
  serviceAccountAccess,
  uniqueNamespace,
  until,
  untilAllowed,
} from "#test/support/floor.ts"

const manifests = policyManifests(serviceImageAuthor)
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`
const paths = manifests.map(pathOf)

beforeAll(async () => {
  await installKinds()
  for (const manifest of manifests) await floor().api.apply(pathOf(manifest), manifest)
})
afterAll(async () => {
  for (const path of paths.toReversed()) await floor().api.remove(path)
})

test("the server finds nothing wrong with the expressions and the types they meet", async () => {
  const { status } = await until("the policy to be checked", async () => {
    const policy = await floor().api.get(paths[0]!)
    return policy.status?.observedGeneration === policy.metadata.generation && policy
  })
  expect(status.typeChecking).toEqual({})
})

const image = (tag: string) => `registry.example.com/app:${tag}`
const dicoms = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
const workload = (kind: string) => ({ apiVersion: "apps/v1", kind, image: { container: "app" } })
const serviceImage = (name: string, spec: Json = {}): Json => ({
  apiVersion: ServiceImage.apiVersion,
  kind: ServiceImage.kind,
  metadata: { name },
  spec: { target: dicoms, defaultImage: image("v1"), ...spec },
})

const manage: Rules = [
  { apiGroups: ["autoimagemanager.io"], resources: ["serviceimages"], verbs: ["create", "get", "update", "patch"] },
  { apiGroups: ["autoimagemanager.io"], resources: ["serviceimages/status"], verbs: ["patch"] },
]
const mayPatch = (resource: string): Rules => {
  const [plural, ...group] = resource.split(".")
  return [{ apiGroups: [group.join(".")], resources: [plural!], verbs: ["patch"] }]
}

const collection = `/apis/${ServiceImage.apiVersion}/${ServiceImage.plural}`
const tryCreate = (access: Access, object: Json) => ask("POST", `${collection}?dryRun=All`, object, { access })

/** It would claim every Dicom of the tests that come after. */
async function createHere(object: Json): Promise<void> {
  await floor().api.create(collection, object)
  onTestFinished(() => floor().api.remove(serviceImagePath(object.metadata.name)))
}

function outcome({ status, body }: Answer): string {
  if (status < 300) return "accepted"
  const isOurs = body.message.includes("ValidatingAdmissionPolicy 'aim-serviceimage-author'")
  return status === 403 && isOurs ? "refused" : `${status}: ${body.message}`
}

/** Stored is not yet in force: the server learns of its own policies, and of roles, by a watch. */
const inForce = (unauthorized: Access, authorized: Access) =>
  until("the policy and the roles to be in force", async () => {
    const object = serviceImage("any")
    return (
      outcome(await tryCreate(unauthorized, object)) === "refused" &&
      outcome(await tryCreate(authorized, object)) === "accepted"
    )
  })

test("the target's kind must be the author's to patch in all namespaces", async () => {
  const namespace = await uniqueNamespace()
  const dicom = "dicoms.services.example.com"
  const targets: Record<string, Json> = {
    [dicom]: dicoms,
    "deployments.apps": workload("Deployment"),
    "statefulsets.apps": workload("StatefulSet"),
    "daemonsets.apps": workload("DaemonSet"),
    "policies.shop.test": { apiVersion: "shop.test/v1", kind: "Policy" },
    "gateways.shop.test": { apiVersion: "shop.test/v1", kind: "Gateway" },
    "indexes.shop.test": { apiVersion: "shop.test/v1beta1", kind: "Index" },
    "busses.shop.test": { apiVersion: "shop.test/v1", kind: "Buss" },
  }
  const resources = Object.keys(targets)
  const accounts = new Map<string, Access>()
  for (const [i, resource] of resources.entries())
    accounts.set(resource, await serviceAccountAccess(namespace, `a-${i}`, [...manage, ...mayPatch(resource)]))
  await inForce(await serviceAccountAccess(namespace, "stranger", manage), accounts.get(dicom)!)
  for (const [of, target] of Object.entries(targets))
    for (const resource of resources) {
      const answer = await tryCreate(accounts.get(resource)!, serviceImage("any", { target }))
      const case_ = `${of} by an author who may patch ${resource}`
      expect({ [case_]: outcome(answer) }).toEqual({ [case_]: of === resource ? "accepted" : "refused" })
      if (of !== resource) expect(answer.body.message).toContain(`you may not patch ${of} in all namespaces`)
    }
})

test("a right in one namespace is not enough", async () => {
  const namespace = await uniqueNamespace()
  const local = await serviceAccountAccess(namespace, "local", manage)
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
  await floor().api.create(`${rbac}/roles`, {
    metadata: { name: "local" },
    rules: mayPatch("dicoms.services.example.com"),
  })
  await floor().api.create(`${rbac}/rolebindings`, {
    metadata: { name: "local" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "local" },
    subjects: [{ kind: "ServiceAccount", namespace, name: "local" }],
  })
  const right = { verb: "patch", group: "services.example.com", resource: "dicoms", namespace }
  await untilAllowed({ namespace, name: "local" }, right)
  const wide = [...manage, ...mayPatch("dicoms.services.example.com")]
  await inForce(local, await serviceAccountAccess(namespace, "wide", wide))
  const selected = { ...dicoms, namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } } }
  expect(outcome(await tryCreate(local, serviceImage("any", { target: selected })))).toBe("refused")
})

test("an update is judged where it changes target or images; pausing, approving and statuses need no more", async () => {
  const namespace = await uniqueNamespace()
  const operator = await serviceAccountAccess(namespace, "operator", manage)
  const author = await serviceAccountAccess(namespace, "author", [
    ...manage,
    ...mayPatch("dicoms.services.example.com"),
  ])
  await inForce(operator, author)
  const tiers = [{ upgradeTier: "early", image: image("v1"), priority: 1 }, { upgradeTier: "late" }]
  const path = serviceImagePath(namespace)
  await createHere(serviceImage(namespace, { tiers }))
  const patch = (access: Access, body: Json, at = path) => ask("PATCH", at, body, { access })

  const free: Record<string, Json> = {
    labels: { metadata: { labels: { team: "a" } } },
    pause: { spec: { paused: true } },
    resume: { spec: { paused: false } },
    approval: { metadata: { annotations: { "autoimagemanager.io/approved": "{}" } } },
    "a rollback": { metadata: { annotations: { "autoimagemanager.io/rollback": "g1" } } },
    pace: { spec: { pace: { podsPerSecond: 1 } } },
    steps: {
      spec: {
        tiers: [
          { ...tiers[0], steps: [{ percent: 10 }] },
          { ...tiers[1], priority: -7 },
        ],
      },
    },
  }
  for (const [name, body] of Object.entries(free))
    expect({ [name]: outcome(await patch(operator, body)) }).toEqual({ [name]: "accepted" })
  expect(outcome(await patch(operator, { status: { unmatched: 7 } }, `${path}/status`))).toBe("accepted")
  expect((await floor().api.get(path)).status.unmatched).toBe(7)

  const guarded: Record<string, Json> = {
    "the default image": { spec: { defaultImage: image("v2") } },
    "a tier's image": { spec: { tiers: [{ ...tiers[0], image: image("v2") }, tiers[1]] } },
    "another tier": { spec: { tiers: [...tiers, { upgradeTier: "new" }] } },
    "the selector": { spec: { target: { selector: { matchLabels: { a: "b" } } } } },
    "an image and a pause": { spec: { paused: true, defaultImage: image("v2") } },
  }
  for (const [name, body] of Object.entries(guarded)) {
    expect({ [name]: outcome(await patch(operator, body)) }).toEqual({ [name]: "refused" })
    expect({ [name]: outcome(await patch(author, body, `${path}?dryRun=All`)) }).toEqual({ [name]: "accepted" })
  }
})

test("as many tiers as there may be, of the longest names and images, can be afforded", async () => {
  const namespace = await uniqueNamespace()
  const operator = await serviceAccountAccess(namespace, "operator", manage)
  const author = await serviceAccountAccess(namespace, "author", [
    ...manage,
    ...mayPatch("dicoms.services.example.com"),
  ])
  await inForce(operator, author)
  const long = (i: number, tag: string) => `registry.example.com/${"a".repeat(180)}:${tag}-${"t".repeat(100)}-${i}`
  const tiers = (tag: string) =>
    Array.from({ length: maxTiers }, (_, i) => ({
      upgradeTier: i ? `${"t".repeat(59)}-${i}` : "",
      image: long(i, tag),
    }))
  await createHere(serviceImage(namespace, { tiers: tiers("v1") }))
  const path = serviceImagePath(namespace)
  const body = { spec: { tiers: tiers("v2") } }
  expect(outcome(await ask("PATCH", path, body, { access: operator }))).toBe("refused")
  expect(outcome(await ask("PATCH", path, body, { access: author }))).toBe("accepted")
})
