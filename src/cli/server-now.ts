import type { Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import type { World } from "./command.ts"

/** The time by the cluster's own clock when it last answered: ages are counted from the times that it wrote. */
export const serverNow = (client: Pick<Client, "serverTime">, { clock }: Pick<World, "clock">): Instant =>
  client.serverTime?.() ?? clock.now()
