import { inPlaceAnnotation } from "#core/in-place/names.ts"
import { type ContainerFacts, type EndingPod, type PodFacts, readEnding, readPod } from "#core/in-place/pod.ts"
import { Interner } from "#lib/interner.ts"
import type { Projected } from "#runtime/cache/cache.ts"
import type { KubeObject } from "#runtime/resource.ts"

/** A pod as the cache has it. `facts` and `ending` are both undefined for one that an update has nothing to do with. */
export type KeptPod = Projected & {
  readonly facts?: PodFacts | undefined
  readonly ending?: EndingPod | undefined
}

/** Enough for pods that follow each other in a list: these have the most in common. */
const sharedMax = 4096

/** Reads pods for a cache. What many pods have in common is kept once for all of them: it is half of a pod. */
export function podKeeper(): (object: KubeObject) => KeptPod {
  const texts = new Interner<string>(sharedMax)
  const names = new Interner<readonly string[]>(sharedMax)
  const maps = new Interner<Readonly<Record<string, string>>>(sharedMax)
  const text = (value: string) => texts.share(value, value)
  const map = (value: Readonly<Record<string, string>>) => maps.share(JSON.stringify(value), value)
  const container = ([name, facts]: [string, ContainerFacts]): [string, ContainerFacts] => [
    text(name),
    { ...facts, image: text(facts.image), digest: text(facts.digest), waiting: text(facts.waiting) },
  ]

  const shared = (facts: PodFacts): PodFacts => ({
    ...facts,
    namespace: text(facts.namespace),
    owner: text(facts.owner),
    ownerName: text(facts.ownerName),
    node: text(facts.node),
    labels: map(facts.labels),
    // The mark of an update names the containers of this one pod.
    annotations: facts.annotations[inPlaceAnnotation] === undefined ? map(facts.annotations) : facts.annotations,
    containers: new Map([...facts.containers].map(container)),
    pullSecrets: names.share(facts.pullSecrets.join(), facts.pullSecrets),
  })

  return object => {
    const facts = readPod(object)
    return {
      resourceVersion: object.metadata.resourceVersion ?? "",
      facts: facts && shared(facts),
      ending: readEnding(object),
    }
  }
}
