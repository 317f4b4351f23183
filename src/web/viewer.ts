import type { Client } from "#runtime/client/client.ts"

/** A user of the dashboard, with the credentials that everything is read and written with. */
export type Viewer = {
  readonly client: Client
  /** Where a user with rights in one namespace alone probably has them. */
  readonly namespace: string
}
