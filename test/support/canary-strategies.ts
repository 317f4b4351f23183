import { expect } from "vitest"
import type { Way } from "./data-planes.ts"
import { type AtEnd, type Json, until } from "./floor.ts"
import {
  type Clients,
  expectAnswered,
  expectOrdinary,
  openShop,
  type Shop,
  uidsOf,
  type Version,
  versionsIn,
} from "./real-canary.ts"

/** A way in which a Canary gives requests to a new version. */
export type Strategy = {
  spec: Json
  /** Clients come through a gateway: by an HTTPRoute of Contour, or in the way that is named. */
  isRouted: boolean | Way
  replicas?: number
  /** What some clients send, so that the new version answers them. */
  headers?: Record<string, string>
  /** More clients, once the Canary has adopted its target: those that test the new version, for instance. */
  besides?(shop: Shop): Promise<Clients>
  /** What is seen of the good version while it is judged. */
  during?(shop: Shop, atEnd: AtEnd): Promise<void>
  /** What is seen of it once it was promoted. */
  afterwards?(shop: Shop, atEnd: AtEnd): Promise<void>
  /** Whether the usual clients get answers of the bad version before it is caught. */
  isBadSeen: boolean
}

/**
 * A good version is promoted, a bad one is caught, and the Canary is deleted, all under requests on fresh and on kept
 * connections. None fails but those that the bad version answered, and no pod that was tested is replaced.
 */
export async function playStrategy(strategy: Strategy, atEnd: AtEnd): Promise<void> {
  const { replicas = 2, isRouted, headers, during, besides } = strategy
  const shop = await openShop(atEnd, { isRouted, replicas })
  const clients = [shop.clients()]
  if (headers) clients.push(shop.clients({ headers: { ...shop.through.headers, ...headers } }))
  const more = () => Promise.all(clients.map(each => each.more()))
  await more()

  // The Canary comes while requests come.
  const adopted = uidsOf(await shop.pods())
  await shop.create({ ...strategy.spec, revertOnDeletion: true })
  await shop.until("it has adopted the Deployment", ({ status }) => status?.phase === "Initialized")
  await more()
  expect(uidsOf(await shop.pods())).toEqual(adopted)
  const testers = await besides?.(shop)

  await shop.setVersion("v2")
  const tested = uidsOf(await shop.tested())
  await during?.(shop, atEnd)
  expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
  // A run ends when their ReplicaSet wants them no more: its controller deletes them in its own time.
  await until("the pods before are gone", async () => (await shop.pods()).length === replicas)
  const promoted = uidsOf(await shop.pods())
  expect(promoted).toEqual(expect.arrayContaining(tested))
  await expectOrdinary(shop, 2)
  await strategy.afterwards?.(shop, atEnd)
  await more()

  await shop.setVersion("bad")
  expect(await shop.untilEnded(1)).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  await until("its pods are gone", async () => (await shop.pods()).length === replicas)
  expect(uidsOf(await shop.pods())).toEqual(promoted)
  await more()
  const ofTesters = await testers?.stop()

  await shop.remove()
  await until("it is gone", async () => !(await shop.canary().catch(() => undefined)))
  await more()
  expect(uidsOf(await shop.pods())).toEqual(promoted)
  await expectOrdinary(shop, 2)
  const results = (await Promise.all(clients.map(each => each.stop()))).flat()
  expectAnswered(results, "bad")
  const seen: Version[] = strategy.isBadSeen ? ["bad", "v1", "v2"] : ["v1", "v2"]
  expect(versionsIn(results)).toEqual(seen)
  if (ofTesters) expect(versionsIn(ofTesters)).toContain("bad")
}
