import type { RegistryClient } from "#registry/index.ts"

/** What controllers reach beside the cluster. */
export type Surroundings = {
  registry?: Pick<RegistryClient, "resolve"> | undefined
  /** Pulls of ImagePullJobs that may be under way at one registry host, over all jobs and nodes. */
  pullsPerRegistry?: number | undefined
  /** Where objects of a namespace may have us connect on any address: `NAMESPACE=HOST:PORT`. */
  allowEgress?: readonly string[] | undefined
  /** Namespaces whose MetricTemplates and AlertProviders all others may use. */
  sharedNamespaces?: readonly string[] | undefined
  /** Providers of Canaries that are off otherwise. */
  allowProviders?: readonly string[] | undefined
  /** The Prometheus of metrics that name none. */
  metricsServer?: string | undefined
}
