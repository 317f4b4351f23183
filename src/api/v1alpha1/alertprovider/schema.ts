import { z } from "zod"
import { ageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { rules, statusBase } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { httpAddress, secretRef } from "../delivery-fields.ts"
import type { ConditionType, Reason } from "./reasons.ts"

const spec = z
  .object({
    type: z
      .enum(["slack", "msteams", "discord", "rocket", "gchat"])
      .meta({ hint: "write where alerts are sent, such as type: slack" })
      .describe("What receives the alerts."),
    channel: z.string().max(253).describe("The channel.").default("general"),
    username: z.string().max(253).describe("The name that the alerts come from.").default("flagger"),
    address: httpAddress()
      .describe("Where alerts are sent. An address with a token in it belongs into a Secret.")
      .optional(),
    secretRef: secretRef()
      .describe(
        "Instead of address: a Secret of the same namespace with the key `address`, and perhaps `token`. Its author needs the right to read it.",
      )
      .optional(),
    proxy: z
      .string()
      .max(2048)
      .regex(/^((https?|socks5):[/][/][^ ]+)?$/)
      .meta({ hint: "write an address that begins with http://, https:// or socks5://" })
      .describe("The proxy that leads there.")
      .optional(),
  })
  .meta(
    rules({
      rule: "has(self.address) != has(self.secretRef)",
      message: "write either address, or secretRef: {name: SECRET} with the key address in that Secret",
    }),
  )

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 2, message: 512 }),
})

export const AlertProvider = defineKind({
  ...namesOf("AlertProvider"),
  categories: ["all"],
  description: "An AlertProvider is a place that Canaries send alerts to.",
  printerColumns: [{ name: "Type", type: "string", jsonPath: ".spec.type" }, readyColumn, reasonColumn, ageColumn],
  spec,
  status,
})

export type AlertProvider = ObjectOf<typeof AlertProvider>
export type AlertProviderSpec = AlertProvider["spec"]
export type AlertProviderStatus = NonNullable<AlertProvider["status"]>
