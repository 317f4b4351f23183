import type { RegistryClient } from "#registry/index.ts"

/** What controllers reach beside the cluster. */
export type Surroundings = { registry?: Pick<RegistryClient, "resolve"> | undefined }
