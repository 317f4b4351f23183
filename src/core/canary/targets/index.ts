import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { isOfComponent } from "../provider.ts"
import { componentTarget } from "./component.ts"
import { daemonSetTarget } from "./daemon-set.ts"
import { serviceTarget } from "./service.ts"
import { statefulSetTarget } from "./stateful-set.ts"
import type { Target } from "./target.ts"

const targets: Partial<Record<Canary["spec"]["targetRef"]["kind"], Target>> = {
  DaemonSet: daemonSetTarget,
  Service: serviceTarget,
  StatefulSet: statefulSetTarget,
}

/** Undefined for a Deployment. */
export const targetOf = (canary: Canary): Target | undefined =>
  isOfComponent(canary) ? componentTarget : targets[canary.spec.targetRef.kind]

/** The target is a Service: nothing is held, and no pod is ours to change. */
export const isRoutedOnly = ({ spec }: Canary): boolean => spec.targetRef.kind === "Service"
