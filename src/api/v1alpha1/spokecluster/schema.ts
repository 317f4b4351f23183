import { z } from "zod"
import { ageColumn, messageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { plainText, rules, statusBase, text, timestamp } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { imageMapping, windowFields } from "../cluster-fields.ts"
import { objectName } from "../delivery-fields.ts"
import { group, version } from "../group.ts"
import type { ConditionType, Reason } from "./reasons.ts"

const spec = z
  .object({
    transport: z
      .enum(["Direct", "OCM"])
      .describe("How the hub reaches it: with a kubeconfig, or by Open Cluster Management.")
      .default("Direct"),
    direct: z
      .object({
        secretRef: z
          .object({
            name: objectName("write the name of a Secret in the controller's namespace").describe("Its name."),
          })
          .describe("The Secret with the kubeconfig, in the controller's namespace."),
      })
      .describe("For Direct: how the cluster is reached.")
      .optional(),
    windows: z
      .object(windowFields)
      .describe("When something may begin on this cluster; they narrow the windows of a run.")
      .prefault({}),
    imageMapping: imageMapping(),
  })
  .meta(
    rules({
      rule: "self.transport != 'Direct' || has(self.direct)",
      message: "a cluster that is reached directly needs a kubeconfig: write direct: {secretRef: {name: SECRET}}",
      fieldPath: ".direct",
    }),
  )

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 2, message: 512 }),
  lastContact: timestamp().describe("When the cluster was last reached.").optional(),
  version: plainText(64).describe("Kubernetes' version there.").optional(),
  warning: text(256).describe("Something that a person should know, such as a credential that expires.").optional(),
})

// Not registered in src/api/names.ts before its controller is there: a definition without one must not be installed.
export const SpokeCluster = defineKind({
  group,
  version,
  kind: "SpokeCluster",
  plural: "spokeclusters",
  scope: "Cluster",
  shortNames: ["spoke"],
  description: "A SpokeCluster is a cluster that a hub upgrades, and how the hub reaches it.",
  printerColumns: [
    readyColumn,
    reasonColumn,
    { name: "Transport", type: "string", jsonPath: ".spec.transport" },
    { name: "Version", type: "string", jsonPath: ".status.version" },
    { name: "Last-Contact", type: "date", jsonPath: ".status.lastContact" },
    ageColumn,
    messageColumn,
  ],
  spec,
  status,
})

export type SpokeCluster = ObjectOf<typeof SpokeCluster>
export type SpokeClusterSpec = SpokeCluster["spec"]
export type SpokeClusterStatus = NonNullable<SpokeCluster["status"]>
