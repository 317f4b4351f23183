// Generated from src/api/names.ts and the folders of the kinds by npm run generate.
import * as serviceimage from "#api/v1alpha1/serviceimage/index.ts"
import * as alternateimagesource from "#api/v1alpha1/alternateimagesource/index.ts"
import * as containerrecreaterequest from "#api/v1alpha1/containerrecreaterequest/index.ts"
import * as nodeimage from "#api/v1alpha1/nodeimage/index.ts"
import * as imagepulljob from "#api/v1alpha1/imagepulljob/index.ts"
import * as imagelistpulljob from "#api/v1alpha1/imagelistpulljob/index.ts"
import * as canary from "#api/v1alpha1/canary/index.ts"
import * as metrictemplate from "#api/v1alpha1/metrictemplate/index.ts"
import * as alertprovider from "#api/v1alpha1/alertprovider/index.ts"
import { serviceImageMetrics } from "#controllers/serviceimage/metrics.ts"
import { alternateImageSourceMetrics } from "#controllers/alternateimagesource/metrics.ts"
import { containerRecreateRequestMetrics } from "#controllers/containerrecreaterequest/metrics.ts"
import { nodeImageMetrics } from "#controllers/nodeimage/metrics.ts"
import { imagePullJobMetrics } from "#controllers/imagepulljob/metrics.ts"
import { imageListPullJobMetrics } from "#controllers/imagelistpulljob/metrics.ts"
import { canaryMetrics } from "#controllers/canary/metrics.ts"
import { inPlaceMetrics } from "#controllers/in-place/metrics.ts"
import { pullMetrics } from "#agent/pull/metrics.ts"
import { recreateMetrics } from "#agent/recreate/metrics.ts"
import { serviceImageDashboard } from "./monitoring/serviceimage.ts"
import { alternateImageSourceDashboard } from "./monitoring/alternateimagesource.ts"
import { canaryDashboard } from "./monitoring/canary.ts"
import { inPlaceDashboard } from "./monitoring/in-place.ts"

/** What each kind exports, for its page. */
export const declared = {
  serviceimage,
  alternateimagesource,
  containerrecreaterequest,
  nodeimage,
  imagepulljob,
  imagelistpulljob,
  canary,
  metrictemplate,
  alertprovider,
}

/** The metrics of each controller. */
export const metrics = {
  serviceimage: serviceImageMetrics,
  alternateimagesource: alternateImageSourceMetrics,
  containerrecreaterequest: containerRecreateRequestMetrics,
  nodeimage: nodeImageMetrics,
  imagepulljob: imagePullJobMetrics,
  imagelistpulljob: imageListPullJobMetrics,
  canary: canaryMetrics,
  "in-place": inPlaceMetrics,
}

/** The metrics of each controller of the agents: every node has a process that exports them. */
export const agentMetrics = {
  pull: pullMetrics,
  recreate: recreateMetrics,
}

/** Dashboards that people drew. The others follow from the metrics. */
export const dashboards = {
  serviceimage: serviceImageDashboard,
  alternateimagesource: alternateImageSourceDashboard,
  canary: canaryDashboard,
  "in-place": inPlaceDashboard,
}
