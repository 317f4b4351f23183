import { parseImageReference } from "#core/image/reference.ts"
import { systemDial } from "#egress/connect.ts"
import { systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createRegistryClient } from "./client.ts"

export const hosts = 150

/** As a controller would: asks that many hosts at once, all of them played by one server, each for a tenant of its own. */
export async function askAll(port: number): Promise<{ classes: string[]; peakMiB: number }> {
  const real = systemDial()
  const { resolve } = createRegistryClient({
    clock: systemClock,
    random: seededRandom(1),
    lookup: async () => ["1.1.1.1"],
    dial: (_, signal) => real({ address: "127.0.0.1", port }, signal),
    limits: { wholeMs: 3000 },
  })
  const answers = await Promise.all(
    Array.from({ length: hosts }, async (_, at) => {
      const parsed = parseImageReference(`h${at}.example.com/app:v1`)
      if (!parsed.ok) throw new Error(parsed.error)
      const said = await resolve(parsed.reference, { tenant: `tenant-${at}` })
      return said.ok ? "resolved" : said.class
    }),
  )
  return { classes: [...new Set(answers)], peakMiB: process.resourceUsage().maxRSS / 1024 }
}
