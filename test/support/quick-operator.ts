import { formatInstant, parseInstant } from "#lib/instant.ts"
import type { Controller } from "#runtime/controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"

type Dicom = KubeObject & {
  spec: { image?: string }
  status?: { conditions?: { type: string; status: string; observedGeneration: number; lastTransitionTime: string }[] }
}

const takesMs = 3000

/**
 * An operator without pods: every Dicom is up to date three seconds after it was given an image, unless the image's tag
 * says `bad` or the Dicom has the label `sick`. It keeps the contract, and lets a whole rollout take a hundred events
 * instead of ten thousand.
 */
export const quickOperator: Controller = {
  name: "quick-operator",
  permissions: [],
  setup({ watch, enqueue, client, clock }) {
    const dicoms = watch(Dicoms, {
      project: object => ({ resourceVersion: object.metadata.resourceVersion ?? "", object: object as Dicom }),
    })
    dicoms.subscribe(({ key }) => enqueue(key))
    return {
      async reconcile(key) {
        const dicom = dicoms.get(key)?.object
        if (!dicom?.spec.image || dicom.metadata.deletionTimestamp) return
        const { generation = 0, resourceVersion, name, namespace } = dicom.metadata
        const now = clock.now()
        const before = dicom.status?.conditions?.find(({ type }) => type === "UpToDate")
        const isKnown = before?.observedGeneration === generation
        const since = isKnown ? (parseInstant(before.lastTransitionTime) ?? now) : now
        const isHopeless = /:bad/.test(dicom.spec.image) || dicom.metadata.labels?.sick !== undefined
        const isDone = isKnown && now - since >= takesMs && !isHopeless
        if (isKnown && (before.status === "True" || !isDone))
          return before.status === "True" || isHopeless ? undefined : since + takesMs
        const condition = (type: string, status: string) => ({
          type, status, reason: "Quick", message: "", observedGeneration: generation, lastTransitionTime: formatInstant(now),
        }) // biome-ignore format: a row
        const wasDeployed = dicom.status?.conditions?.some(
          ({ type, status }) => type === "Deployed" && status === "True",
        )
        const status = {
          observedGeneration: generation,
          conditions: [
            condition("UpToDate", isDone ? "True" : "False"),
            condition("Deployed", isDone || wasDeployed ? "True" : "False"),
          ],
        }
        const body = { metadata: { resourceVersion }, status }
        await client.patch(Dicoms, { name, namespace }, { type: "merge", body }, { subresource: "status" })
        return isDone ? undefined : now + takesMs
      },
    }
  },
}
