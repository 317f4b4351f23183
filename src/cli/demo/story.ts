import type { Json, RegistriesDescription } from "#cluster-sim/index.ts"
import type { Controller } from "#runtime/controller.ts"
import type { LocalCluster } from "../local-cluster.ts"
import type { TrafficWords } from "../local-traffic.ts"

/** The means of a story. Its time is the cluster's, which runs faster than real time. */
export type Stage = {
  readonly world: LocalCluster
  /** A sentence of the narrator. */
  tell(text: string): void
  /** Shows the rollout live until the condition holds, at most `seconds` of the cluster's time. */
  watch(name: string, isSo: (serviceImage: Json) => boolean, seconds: number): Promise<Json>
  /** The same with another picture: lines of text, until the condition holds. */
  show(picture: () => Promise<{ text: string; isSo: boolean }>, seconds: number): Promise<void>
  /** Types `aim LINE`, with its progress and its result below. A failure is shown too: its message is the result. */
  type(line: string): Promise<void>
  /** Waits, so that people can read. */
  pause(seconds: number): Promise<void>
}

export type Story = {
  name: string
  title: string
  nodes: number
  /** Default: every registry has every image. */
  registries?: RegistriesDescription
  /** Clients outside, through a gateway. */
  traffic?: readonly TrafficWords[]
  /** Operators of the user that run beside ours. */
  operators: readonly Controller[]
  tellWith(stage: Stage): Promise<void>
  /** Commands to try next. */
  next: readonly string[]
}
