import { agentPermissions } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { kinds } from "#api/kinds.ts"
import { controllers } from "#controllers/all.ts"
import type { Permission } from "#runtime/controller.ts"
import { events } from "#runtime/events.ts"
import { electionPermissions } from "#runtime/leader.ts"
import type { Sources } from "./all.ts"

/** What every controller's recorder does. */
const recording: readonly Permission[] = [{ resource: events, verbs: ["create", "patch"] }]

/** What the code of this version declares: its kinds, and what its controllers need. */
export const sources = (): Sources => ({
  crds: kinds.map(crdOf),
  controllers: [...controllers.flatMap(controller => controller.permissions), ...recording],
  election: electionPermissions,
  agent: agentPermissions,
})
