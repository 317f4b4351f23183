import { agentNode } from "./agent-node.ts"
import { alternateImageSourceAuthor } from "./alternateimagesource-author.ts"
import { alternateImageSourceNewPods } from "./alternateimagesource-new-pods.ts"
import { canaryApproval } from "./canary-approval.ts"
import { alertProviderAuthor, canaryAuthor, metricTemplateAuthor } from "./canary-author.ts"
import { canaryHold } from "./canary-hold.ts"
import { canarySnapshots } from "./canary-snapshots.ts"
import { containerRecreateRequestAuthor } from "./containerrecreaterequest-author.ts"
import { imagePullJobAuthor } from "./imagepulljob-author.ts"
import { inPlaceHolds } from "./in-place-hold.ts"
import { inPlaceOnly } from "./in-place-only.ts"
import { inPlaceSettings } from "./in-place-settings.ts"
import { nodeImageAgent } from "./nodeimage-agent.ts"
import type { Policy } from "./policy.ts"
import { serviceImageAuthor } from "./serviceimage-author.ts"
import { serializeEnforce, serializeWarn } from "./serviceimage-serialize.ts"

/** Every admission policy of the product; last those that servers before 1.36 do not know. */
export const policies: readonly Policy[] = [
  serializeEnforce,
  serializeWarn,
  serviceImageAuthor,
  alternateImageSourceAuthor,
  containerRecreateRequestAuthor,
  agentNode,
  imagePullJobAuthor,
  nodeImageAgent,
  canaryAuthor,
  canaryApproval,
  metricTemplateAuthor,
  alertProviderAuthor,
  inPlaceSettings,
  inPlaceOnly,
  alternateImageSourceNewPods,
  ...inPlaceHolds,
  // Of two that would hold, the one before it does: this one leaves alone what is held.
  canaryHold,
  canarySnapshots,
]
