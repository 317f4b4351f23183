import type { Part, PhysicsWorld } from "../world.ts"
import { autoscalerController } from "./autoscaler.ts"
import type { Measured } from "./autoscaler-plan.ts"
import { clusterRoleAggregation } from "./cluster-role.ts"
import { cronJobController } from "./cron-job.ts"
import { daemonSetController } from "./daemon-set.ts"
import { deploymentController } from "./deployment.ts"
import { disruptionController } from "./disruption.ts"
import { endpointSliceController } from "./endpoint-slice.ts"
import { garbageCollector } from "./garbage-collector.ts"
import { jobController } from "./job.ts"
import { ttlController } from "./job-ttl.ts"
import { namespaceController, rootCertificatePublisher, serviceAccountController } from "./namespace.ts"
import { podCollector } from "./pod-gc.ts"
import { replicaSetController } from "./replica-set.ts"
import { resourceQuotaController } from "./resource-quota.ts"
import { statefulSetController, volumeBinder } from "./stateful-set.ts"

/** The controllers of a kube-controller-manager whose effects clients can see here. */
export const controllerManager = ({
  certificate = "",
  measure,
}: {
  certificate?: string
  measure?: Measured | undefined
} = {}): ((world: PhysicsWorld) => Part)[] => [
  deploymentController,
  replicaSetController,
  statefulSetController,
  volumeBinder,
  daemonSetController,
  jobController,
  ttlController,
  cronJobController,
  garbageCollector,
  namespaceController,
  serviceAccountController,
  world => rootCertificatePublisher(world, certificate),
  clusterRoleAggregation,
  disruptionController,
  podCollector,
  endpointSliceController,
  resourceQuotaController,
  world => autoscalerController(world, measure),
]
