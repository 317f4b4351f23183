/** Every metric of the NodeImage controller, without the prefix `aim_`. */
export const nodeImageMetrics = {
  registry_pulls_in_flight: {
    type: "gauge",
    unit: "pulls",
    labels: ["registry"],
    help: "Pulls that nodes were given by ImagePullJobs and that have not ended, by registry host.",
  },
} as const
