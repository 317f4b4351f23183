import type { Json, RegistriesDescription } from "#cluster-sim/index.ts"
import type { Controller } from "#runtime/controller.ts"
import type { LocalCluster } from "../local-cluster.ts"

/** What a story is told with. Time in it is the cluster's, which runs faster than ours. */
export type Stage = {
  readonly world: LocalCluster
  /** A sentence of the narrator. */
  tell(text: string): void
  /** Shows the rollout live until it is so, and at most `seconds` of the cluster's time. */
  watch(name: string, isSo: (serviceImage: Json) => boolean, seconds: number): Promise<Json>
  /** The same with a picture of one's own: lines of text, until it is so. */
  show(picture: () => Promise<{ text: string; isSo: boolean }>, seconds: number): Promise<void>
  /** Lets the reader read. */
  pause(seconds: number): Promise<void>
}

export type Story = {
  name: string
  title: string
  nodes: number
  /** Default: every registry has every image. */
  registries?: RegistriesDescription
  /** Operators of the user's that run beside us. */
  operators: readonly Controller[]
  tellWith(stage: Stage): Promise<void>
  /** Commands to try next. */
  next: readonly string[]
}
