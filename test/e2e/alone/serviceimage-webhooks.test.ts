import { beforeAll, expect, onTestFinished, test } from "vitest"
import {
  conditionOf,
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  keepController,
  serviceImagePath,
  startDicomController,
} from "#test/support/fleet.ts"
import { floor, floorWithFaults, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"

// Admission webhooks and policies of one namespace, on a real server: the others must not wait for them.

const image = (tag: string) => `registry.example.com/dicom-service:${tag}`
const [v1, v2] = [image("v1"), image("v2")]

beforeAll(installKinds)

const webhooksPath = (name = "") =>
  `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations${name && `/${name}`}`

/** Without it the server admits no change of a Dicom in this namespace; and its endpoint is dead. */
async function breakWebhook(namespace: string): Promise<void> {
  const { api } = floor()
  await api.create(webhooksPath(), {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: namespace },
    webhooks: [
      {
        name: "dead.example.com",
        clientConfig: { url: "https://127.0.0.1:9/" },
        failurePolicy: "Fail",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        timeoutSeconds: 1,
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        rules: [{ apiGroups: ["services.example.com"], apiVersions: ["*"], resources: ["dicoms"], operations: ["UPDATE"] }],
      },
    ],
  }) // biome-ignore format: a row
  onTestFinished(() => api.remove(webhooksPath(namespace)).catch(() => {}))
}

const imagesIn = async (namespace: string): Promise<string[]> =>
  (await floor().api.get(dicomsPath(namespace))).items.map(({ spec }: Json) => spec.image)

test("a namespace whose webhook is down does not slow the others, and costs few refused writes", async () => {
  const [bad, good] = [await uniqueNamespace(), await uniqueNamespace()]
  const { api, kubeconfig } = floor()
  const [badCount, goodCount] = [300, 100]
  const make = async (namespace: string, count: number) => {
    for (let index = 0; index < count; index += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, offset) =>
          api.create(dicomsPath(namespace), dicom(`t-${index + offset}`, "", { placement: onKwok }, { fleet: bad })),
        ),
      )
  }
  await make(bad, badCount)
  await make(good, goodCount)
  // Health is not what is measured here.
  await createServiceImage(bad, { defaultImage: v1, pace: { podsPerSecond: 0 } })
  startDicomController(kubeconfig)
  const proxy = await floorWithFaults()
  keepController(proxy.kubeconfig)
  const allHave = (namespace: string, wanted: string) => async () =>
    (await imagesIn(namespace)).every(each => each === wanted)
  for (const namespace of [bad, good])
    await until(`${namespace} to have v1`, allHave(namespace, v1), { withinMs: 240_000, everyMs: 200 })

  const upgrade = async (to: string) => {
    proxy.forget()
    const from = performance.now()
    await api.patch(serviceImagePath(bad), { spec: { defaultImage: to } })
    await until(`the others to have ${to}`, allHave(good, to), { withinMs: 240_000, everyMs: 20 })
    return performance.now() - from
  }
  const calmMs = await upgrade(v2)
  await until("all to have v2", allHave(bad, v2), { withinMs: 240_000, everyMs: 200 })
  await breakWebhook(bad)
  await until("the server to have heard of it", async () => {
    const path = `${dicomsPath(bad, "t-0")}?dryRun=All`
    return api.patch(path, { metadata: { annotations: { a: String(Math.random()) } } }).then(
      () => false,
      () => true,
    )
  })
  const besideMs = await upgrade(image("v3"))
  const refused = () => proxy.writes(/\/dicoms\//).filter(each => (each.status ?? 0) >= 500)
  process.stderr.write(
    `webhooks: calm ${Math.round(calmMs)} ms, beside a dead one ${Math.round(besideMs)} ms, ${refused().length} refused\n`,
  )
  // Calm, the writes of the other namespace stand in between. Where its refused writes fill the window, the others
  // stand still until the webhook is back.
  expect(besideMs).toBeLessThan(calmMs * 2 + 5000)
  expect(new Set(await imagesIn(bad))).toEqual(new Set([v2]))
  expect(refused().length).toBeLessThan(40)

  const now = await until("the failure of all of them to be told", async () => {
    const found = await api.get(serviceImagePath(bad))
    return found.status.tierStatus[0].failures[0]?.count === badCount && found
  })
  const [failure] = now.status.tierStatus[0].failures
  expect(failure).toMatchObject({ reason: "WriteFailed", scope: "Partial", count: badCount })
  expect(failure.message).toMatch(/^Internal error occurred: failed calling/)
  expect(now.status.inflight ?? []).not.toContain(`${bad}/t-0`)
  expect(conditionOf(now, "Complete")).toMatchObject({ status: "False" })

  await api.remove(webhooksPath(bad))
  await until("the rest to have v3", allHave(bad, image("v3")), { withinMs: 240_000, everyMs: 200 })
}, 900_000)

const policyPath = (kind: string, name = "") => `/apis/admissionregistration.k8s.io/v1/${kind}${name && `/${name}`}`

test("a policy that changes the image in the same write is reported as Contested, and answered slowly", async () => {
  const namespace = await uniqueNamespace()
  const { api, kubeconfig } = floor()
  await api.create(dicomsPath(namespace), dicom("a", "", { placement: onKwok }, { fleet: namespace }))
  await createServiceImage(namespace, { defaultImage: v1, pace: { podsPerSecond: 0 } })
  startDicomController(kubeconfig)
  const proxy = await floorWithFaults()
  keepController(proxy.kubeconfig)
  await until("v1 to be there", async () => (await imagesIn(namespace))[0] === v1)
  const policy = { apiVersion: "admissionregistration.k8s.io/v1", metadata: { name: namespace } }
  await api.create(policyPath("mutatingadmissionpolicies"), {
    ...policy,
    kind: "MutatingAdmissionPolicy",
    spec: {
      reinvocationPolicy: "Never",
      failurePolicy: "Fail",
      matchConstraints: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        resourceRules: [{ apiGroups: ["services.example.com"], apiVersions: ["*"], resources: ["dicoms"], operations: ["UPDATE"] }],
      },
      mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: `[JSONPatch{op: "replace", path: "/spec/image", value: "${v1}"}]` } }],
    },
  }) // biome-ignore format: rows
  onTestFinished(() => api.remove(policyPath("mutatingadmissionpolicies", namespace)))
  await api.create(policyPath("mutatingadmissionpolicybindings"), {
    ...policy,
    kind: "MutatingAdmissionPolicyBinding",
    spec: { policyName: namespace },
  })
  onTestFinished(() => api.remove(policyPath("mutatingadmissionpolicybindings", namespace)))
  await until("the policy to be at work", async () => {
    const tried = await api.patch(`${dicomsPath(namespace, "a")}?dryRun=All`, { spec: { image: v2 } })
    return tried.spec.image === v1
  })
  proxy.forget()
  await api.patch(serviceImagePath(namespace), { spec: { defaultImage: v2 } })
  const now = await until("the contest to be told", async () => {
    const found = await api.get(serviceImagePath(namespace))
    return conditionOf(found, "Complete")?.reason === "Contested" && found
  })
  expect(conditionOf(now, "Complete").message).toContain("an admission webhook changes it in the same write")
  expect(now.status.tierStatus[0].failures).toMatchObject([{ reason: "Contested", examples: [`${namespace}/a`] }])
  expect(proxy.writes(/\/dicoms\//).length).toBeLessThanOrEqual(2)
})
