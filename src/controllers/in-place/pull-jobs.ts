import { nameAfter } from "#core/in-place/operation.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { imagesOf, type PodTemplate, type Touched } from "#core/in-place/template.ts"
import type { Workload } from "./facts.ts"
import type { Action, Snapshot } from "./plan.ts"

/** One job for each image that some pod still lacks; it stays until the end of the operation. */
export function jobActions({ workload, pods, jobs }: Snapshot, touched: Touched): Action[] {
  const images = imagesOf(workload.template)
  const targets = new Map(touched.containers.flatMap(name => (images.has(name) ? [[images.get(name)!, name]] : [])))
  const isLacking = (image: string, name: string) =>
    pods.some(({ containers }) => containers.has(name) && containers.get(name)!.image !== image)
  const pullSecrets = pullSecretsOf(workload.template, pods)
  const created = [...targets].flatMap(([image, name]): Action[] => {
    if (jobs.some(job => job.image === image) || !isLacking(image, name)) return []
    const pullPolicy = pullPolicyOf(workload.template, name)
    return [{ do: "createJob", name: jobName(workload, image), image, pullPolicy, pullSecrets }]
  })
  return [
    ...created,
    ...jobs.filter(({ image }) => !targets.has(image)).map((job): Action => ({ do: "deleteJob", job })),
  ]
}

/** As many as a job may name. */
const secretsMost = 16

/** A ServiceAccount adds its own to pods, and not to their template. */
function pullSecretsOf({ spec }: PodTemplate, pods: readonly PodFacts[]): string[] {
  const own = (spec?.imagePullSecrets ?? []) as readonly { name: string }[]
  return [...new Set([...own.map(({ name }) => name), ...pods.flatMap(pod => pod.pullSecrets)])].slice(0, secretsMost)
}

function pullPolicyOf(template: PodTemplate, name: string): "Always" | "IfNotPresent" {
  const { containers = [], initContainers = [] } = (template.spec ?? {}) as Record<
    string,
    { name: string; imagePullPolicy?: string }[]
  >
  const found = [...containers, ...initContainers].find(container => container.name === name)
  return found?.imagePullPolicy === "Always" ? "Always" : "IfNotPresent"
}

const jobName = ({ name, uid, hold }: Workload, image: string) => nameAfter(name, [uid, hold!.generation, image])
