import type { Controller } from "#runtime/controller.ts"
import { createMetrics } from "#runtime/metrics.ts"
import type { World } from "./scenario.ts"

/** Controllers that write into a registry of metrics which the test can read. */
export function measured(world: Pick<World, "clock">, controllers: readonly Controller[]) {
  const metrics = createMetrics({ clock: world.clock })
  return {
    controllers: controllers.map(each => ({
      ...each,
      setup: (wiring: Parameters<Controller["setup"]>[0]) => each.setup({ ...wiring, metrics }),
    })),
    /** Every series whose name begins so and that is not 0, without the prefix and the quotes. */
    async shown(prefix: string): Promise<string[]> {
      const lines = (await metrics.text()).split("\n").filter(line => line.startsWith(`aim_${prefix}`))
      return lines.filter(line => !line.endsWith(" 0")).map(line => line.replace("aim_", "").replaceAll('"', ""))
    },
    async has(series: string): Promise<boolean> {
      return (await metrics.text()).includes(`aim_${series}`)
    },
  }
}
