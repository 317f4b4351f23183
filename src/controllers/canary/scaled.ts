import type { RouteObject } from "#core/canary/router.ts"
import { notedBy } from "#core/canary/scaler.ts"
import { isSame } from "#lib/same.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"

const targetOf = (object: KubeObject) =>
  (object as unknown as { spec?: { scaleTargetRef?: { name?: string } } }).spec?.scaleTargetRef?.name

const noteOf = (object: KubeObject) => notedBy(object as unknown as RouteObject)

const names = (...all: (string | undefined)[]) => all.filter(name => name !== undefined)

/** By the name of the workload that they scale, and of the Canary whose note they have. */
export const scalerIndexes = {
  target: ({ object }: Held<KubeObject>) => names(targetOf(object)),
  noted: ({ object }: Held<KubeObject>) => names(noteOf(object)),
}

type Change = { readonly before?: Held<KubeObject> | undefined; readonly after?: Held<KubeObject> | undefined }

/** What an event of an autoscaler concerns: the workload before and after, and the Canary of our note. A status is nothing new. */
export function concernedBy({ before, after }: Change): { targets: string[]; canaries: string[] } {
  const said = (each: Held<KubeObject> | undefined) =>
    each && { spec: (each.object as { spec?: unknown }).spec, annotations: each.object.metadata.annotations }
  if (isSame(said(before), said(after))) return { targets: [], canaries: [] }
  const all = [before, after].flatMap(each => (each ? [each.object] : []))
  const named = ({ metadata: { namespace } }: KubeObject, name: string | undefined) =>
    name === undefined ? [] : [keyOf({ namespace, name })]
  return {
    targets: all.flatMap(object => named(object, targetOf(object))),
    canaries: all.flatMap(object => named(object, noteOf(object))),
  }
}
