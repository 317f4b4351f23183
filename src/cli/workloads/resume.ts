import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { parseNote } from "#core/in-place/marks.ts"
import { inPlaceAnnotation } from "#core/in-place/names.ts"
import { isOfTemplate } from "#core/in-place/operation.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, type Input, UsageError, type World } from "../command.ts"
import { shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { doneWords, dryRunOf, nextWords } from "../operate.ts"
import type { Workloads } from "./words.ts"

type Workload = KubeObject & { spec: { template: PodTemplate } }

/** `aim resume deploy/web`: a template that failed in place and was rolled back may be tried again. */
export async function resumeWorkload(input: Input, world: World, { resource, names }: Workloads): Promise<Answer> {
  const [name] = names
  if (name === undefined) throw new UsageError(`which one? Write ${shortOf(resource)}/NAME`)
  const dryRun = dryRunOf(input)
  const target = { name, namespace: await namespaceOf(input, world) }
  const client = await world.connect(connectionOf(input))
  try {
    const { metadata, spec } = await client.get<Workload>(resource, target)
    const { annotations = {}, resourceVersion } = metadata
    const failed = parseNote(annotations[inPlaceAnnotation])?.failed
    const title = `${shortOf(resource)}/${name}`
    if (failed === undefined) return { text: `not rolled back: ${title}\n`, exitCode: 0 }
    const what = `${title}, operation ${failed} once more`
    if (annotations[retryAnnotation] === failed) return { text: `already resumed: ${what}\n`, exitCode: 0 }
    const body = { metadata: { resourceVersion, annotations: { [retryAnnotation]: failed } } }
    await client.patch(resource, target, { type: "merge", body }, { dryRun })
    const next = isOfTemplate(failed, spec.template)
      ? "It was rolled back, and starts again with the same template."
      : "It was rolled back, and has the template of before: write the other one again."
    return { text: `${doneWords(`resumed: ${what}`, dryRun)}\n`, exitCode: 0, next: nextWords(next, dryRun) }
  } finally {
    client.close()
  }
}
