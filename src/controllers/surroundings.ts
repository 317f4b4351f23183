import type { RegistryClient } from "#registry/index.ts"

/** What controllers reach beside the cluster. */
export type Surroundings = {
  registry?: Pick<RegistryClient, "resolve"> | undefined
  /** Pulls of ImagePullJobs that may be under way at one registry host, over all jobs and nodes. */
  pullsPerRegistry?: number | undefined
}
