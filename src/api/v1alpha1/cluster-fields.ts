import { z } from "zod"
import { listAtomic, listMap, rules } from "../fields.ts"

/** What ClusterGroupUpgrade, SpokeCluster and ClusterUpgrade have in common. */

/** The name of a cluster. Open Cluster Management keeps each cluster in a namespace of its name. */
export const clusterName = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .meta({ hint: "write the name of a cluster: at most 63 lower-case letters, digits and '-'" })

const maxWindows = 16

const window = z.object({
  schedule: z
    .string()
    .min(1)
    .max(128)
    .meta(
      rules({
        rule: "self.matches('^@[a-z]+$') || self.matches('^ *[^ ]+( +[^ ]+){4} *$')",
        message: "write a schedule of five fields as in cron, such as 0 1 * * 6 for Saturdays at one o'clock",
      }),
    )
    .describe("When it opens: minute, hour, day of the month, month and day of the week, as in cron."),
  durationMinutes: z
    .int()
    .min(1)
    .max(10_080)
    .meta({ format: "int32", hint: "write minutes, from 1 to 10080 (a week)" })
    .describe("How long it stays open."),
  timeZone: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9_+/-]+$/)
    .meta({ hint: "write a time zone, such as Europe/Berlin or UTC" })
    .describe("The time zone of the schedule. Summer time is considered.")
    .default("UTC"),
})

const windowList = (what: string) =>
  z
    .array(window)
    .max(maxWindows)
    .meta({ ...listAtomic, hint: `write at most ${maxWindows} windows` })
    .describe(what)
    .default([])

/** When something may begin. No window: always. */
export const windowFields = {
  preCaching: windowList("When images may be brought to nodes. None: always."),
  upgrade: windowList("When clusters may be upgraded. None: always."),
}

/** An image reference that begins with `from` is pulled from `to` on a cluster. */
export const imageMapping = () =>
  z
    .array(
      z.object({
        from: prefix("How a reference begins, such as registry.example.com/."),
        to: prefix("What that beginning becomes on this cluster."),
      }),
    )
    .max(32)
    .meta({ ...listMap("from"), hint: "write at most 32 mappings, each beginning once" })
    .describe("References of images that begin with `from` begin with `to` on this cluster; the longest match counts.")
    .default([])

const prefix = (what: string) =>
  z
    .string()
    .min(1)
    .max(255)
    .regex(/^[A-Za-z0-9][-A-Za-z0-9._:/]*[/]$/)
    .meta({ hint: "write how references begin, with a slash at the end, such as registry.example.com/" })
    .describe(what)
