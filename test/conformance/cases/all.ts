import type { Case } from "../harness/script.ts"
import { autoscalers } from "./autoscalers.ts"
import { crds, deliveryKinds, nodeKinds, serviceImages } from "./crds.ts"
import { endpointSlices } from "./endpoints.ts"
import { gateways } from "./gateway.ts"
import { handOvers } from "./hand-over.ts"
import { authentication, impersonation } from "./identity.ts"
import { inPlaceOfDeployments } from "./in-place-deployments.ts"
import { inPlaceHoldsOfWorkloads } from "./in-place-hold.ts"
import { inPlaceOfPods } from "./in-place-pods.ts"
import { inPlaceOfSets } from "./in-place-sets.ts"
import { discovery, kinds } from "./kinds.ts"
import { kubectl } from "./kubectl.ts"
import { kubectlOfWorkloads } from "./kubectl-workloads.ts"
import { limitRanges, quotas, quotasOfWorkloads } from "./limits.ts"
import { lists, tables } from "./lists.ts"
import { finalizers, garbage, namespaces } from "./lives.ts"
import { mutatingPolicies } from "./mutating-policies.ts"
import { applies, patches } from "./patches.ts"
import { podLives } from "./pods.ts"
import { references } from "./references.ts"
import { accessQuestions, escalation, kubectlRights, refusals, rights } from "./rights.ts"
import { policyObjects, validatingPolicies } from "./validating-policies.ts"
import { errors, verbs } from "./verbs.ts"
import { watches } from "./watches.ts"
import { daemonSets, deployments, jobs, statefulSets } from "./workloads.ts"

/** Every case; those that wait longest come first, so that the others run beside them. */
export const cases: readonly Case[] = [
  ...jobs,
  ...podLives,
  ...references,
  ...deployments,
  ...statefulSets,
  ...daemonSets,
  ...inPlaceOfDeployments,
  ...inPlaceOfSets,
  ...handOvers,
  ...autoscalers,
  ...endpointSlices,
  ...quotasOfWorkloads,
  ...kubectl,
  ...kubectlOfWorkloads,
  ...namespaces,
  ...garbage,
  ...watches,
  ...validatingPolicies,
  ...mutatingPolicies,
  ...inPlaceHoldsOfWorkloads,
  ...crds,
  ...gateways,
  ...verbs,
  ...errors,
  ...lists,
  ...tables,
  ...inPlaceOfPods,
  ...patches,
  ...applies,
  ...finalizers,
  ...limitRanges,
  ...quotas,
  ...kinds,
  ...policyObjects,
  ...discovery,
  ...serviceImages,
  ...nodeKinds,
  ...deliveryKinds,
  ...authentication,
  ...impersonation,
  ...refusals,
  ...rights,
  ...escalation,
  ...accessQuestions,
  ...kubectlRights,
]
