import { type ContainerRecreateRequest, containerMessageMax } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { clip } from "#lib/text.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { Plan, Snapshot } from "./plan.ts"

/** The agent's part of the status: how far each container is. All else is the manager's. */
export function report(
  { request }: Snapshot,
  { states }: Plan,
): Report<ContainerRecreateRequest["status"]> | undefined {
  if (!request.status) return undefined
  const containerRecreateStates = states.map(state =>
    state.message === undefined ? state : { ...state, message: clip(state.message, containerMessageMax) },
  )
  return { status: { ...request.status, containerRecreateStates } }
}
