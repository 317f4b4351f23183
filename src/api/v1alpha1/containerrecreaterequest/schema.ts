import { z } from "zod"
import { ageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { condition, count, generation, listMap, rules, text, timestamp, word } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import type { ConditionType, Reason } from "./reasons.ts"

/** More containers than a pod sensibly has. */
const maxContainers = 64
const daySeconds = 86_400
const maxTtlSeconds = 365 * daySeconds
/** Each message of a container. */
export const containerMessageMax = 256
/** How the message of a container begins that waits for the limit of its node. */
export const limitPrefix = "waits for the limit"

const containerName = () =>
  z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .meta({ hint: "write the name of a container of the pod" })

const seconds = (maximum: number, minimum = 0) =>
  z
    .int()
    .min(minimum)
    .max(maximum)
    .meta({ format: "int32", hint: `write seconds, from ${minimum} to ${maximum}` })

const strategy = z.object({
  failurePolicy: z
    .enum(["Fail", "Ignore"])
    .describe("Fail: the request ends as soon as one container fails. Ignore: the others are recreated all the same.")
    .default("Fail"),
  orderedRecreate: z
    .boolean()
    .describe("Whether a container must be ready again before the next one is stopped.")
    .default(false),
  forceRecreate: z
    .boolean()
    .describe("Whether to stop a container even if it was restarted after the request was made.")
    .default(false),
  terminationGracePeriodSeconds: seconds(daySeconds)
    .describe("How long a container has to end, preStop included; at least 2 s. Without it: as the pod says.")
    .optional(),
  unreadyGracePeriodSeconds: seconds(daySeconds)
    .describe(
      "Set the pod to not ready before its containers are stopped, and wait so long. Needs the readiness gate autoimagemanager.io/InPlaceUpdateReady in the pod.",
    )
    .optional(),
  minStartedSeconds: seconds(daySeconds)
    .describe("How long a new container must run before it counts as recreated.")
    .default(0),
})

/** Absent fields count as 0: the pod's own grace period is not known here. */
const waits = ["terminationGracePeriodSeconds", "unreadyGracePeriodSeconds", "minStartedSeconds"]
  .map(field => `(has(self.strategy.${field}) ? self.strategy.${field} : 0)`)
  .join(" + ")

const spec = z
  .object({
    podName: z
      .string()
      .max(253)
      .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
      .meta({ hint: "write the name of a pod in the same namespace" })
      .describe("The pod whose containers are recreated."),
    containers: z
      .array(z.object({ name: containerName().describe("The name of the container in the pod.") }))
      .min(1)
      .max(maxContainers)
      .meta({ ...listMap("name"), hint: "write at least one container: containers: [{name: …}]" })
      .describe("Which containers, in the order in which they are stopped."),
    strategy: strategy.describe("How containers are stopped, and when they count as recreated.").prefault({}),
    activeDeadlineSeconds: seconds(7 * daySeconds, 3)
      .describe("How long the request may take. After that, unfinished containers are Failed. Without it: no limit.")
      .optional(),
    ttlSecondsAfterFinished: seconds(maxTtlSeconds)
      .describe("How long the request is kept once it is complete. Without it: until it is deleted.")
      .optional(),
  })
  .meta(
    rules(
      {
        rule: "self == oldSelf",
        message: "a request cannot be changed: delete it and create another",
      },
      {
        rule: `!has(self.activeDeadlineSeconds) || ${waits} < self.activeDeadlineSeconds`,
        message:
          "terminationGracePeriodSeconds, unreadyGracePeriodSeconds and minStartedSeconds together must be less than activeDeadlineSeconds",
        fieldPath: ".activeDeadlineSeconds",
      },
    ),
  )

const containerId = () =>
  z
    .string()
    .max(256)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)

const uid = () =>
  z
    .string()
    .max(64)
    .regex(/^[A-Za-z0-9-]*$/)

const restarts = () => count(2_147_483_647)

const state = z.object({
  name: containerName().describe("The container."),
  phase: word<ContainerPhase>(16).describe("Pending, Recreating, Succeeded or Failed."),
  message: text(containerMessageMax).describe("What it waits for, or why it failed.").optional(),
  isKilled: z.boolean().describe("Whether the agent has stopped it.").optional(),
  containerID: containerId().describe("The container that is to be replaced; the agent never stops another one."),
  restartCount: restarts().describe("How often it had been restarted before."),
  stopTime: timestamp().describe("When the agent began to stop it, by the clock of the node.").optional(),
})

const snapshot = z.object({
  name: containerName().describe("The container."),
  ready: z.boolean().describe("Whether it is ready."),
  restartCount: restarts().describe("How often it has been restarted."),
  containerID: containerId().describe("The new container."),
})

const status = z.object({
  observedGeneration: generation().describe("The metadata.generation this status is about.").default(0),
  phase: word<Phase>(16).describe("Pending, Recreating or Completed. Completed does not mean success.").optional(),
  nodeName: z
    .string()
    .max(253)
    .regex(/^[a-z0-9.-]*$/)
    .describe("The node whose agent carries the request out. Set when the request is handed over to it.")
    .optional(),
  podUID: uid().describe("Which pod: another pod of the same name is not touched.").optional(),
  startTime: timestamp().describe("When the request was accepted; activeDeadlineSeconds count from here.").optional(),
  handOverTime: timestamp().describe("When it was handed over to the agent of the node.").optional(),
  completionTime: timestamp().describe("When it was complete.").optional(),
  message: text(512).describe("The state in a sentence.").optional(),
  containerRecreateStates: z
    .array(state)
    .max(maxContainers)
    .meta(listMap("name"))
    .describe("Each container, in the order of the spec.")
    .default([]),
  containerStatusSnapshot: z
    .array(snapshot)
    .max(maxContainers)
    .meta(listMap("name"))
    .describe("The new containers, as the kubelet reports them.")
    .default([]),
  conditions: z
    .array(condition<ConditionType, Reason>(text(512)))
    .max(2)
    .meta(listMap("type"))
    .describe("The answers to the questions below.")
    .default([]),
})

export const ContainerRecreateRequest = defineKind({
  ...namesOf("ContainerRecreateRequest"),
  description:
    "A ContainerRecreateRequest restarts containers of a running pod. The pod, its address, its volumes and its other containers stay as they are.",
  printerColumns: [
    { name: "Phase", type: "string", jsonPath: ".status.phase" },
    { name: "Pod", type: "string", jsonPath: ".spec.podName" },
    { name: "Node", type: "string", jsonPath: ".status.nodeName" },
    readyColumn,
    reasonColumn,
    ageColumn,
    { name: "Message", type: "string", jsonPath: ".status.message", priority: 1 },
  ],
  // The agent of a node watches only its own requests, and only until they are complete.
  selectableFields: [".status.nodeName", ".status.phase"],
  spec,
  status,
})

export type Phase = "Pending" | "Recreating" | "Completed"
export type ContainerPhase = "Pending" | "Recreating" | "Succeeded" | "Failed"
export type ContainerRecreateRequest = ObjectOf<typeof ContainerRecreateRequest>
export type ContainerRecreateRequestSpec = ContainerRecreateRequest["spec"]
export type ContainerRecreateRequestStatus = NonNullable<ContainerRecreateRequest["status"]>
export type ContainerState = ContainerRecreateRequestStatus["containerRecreateStates"][number]
export type ContainerSnapshot = ContainerRecreateRequestStatus["containerStatusSnapshot"][number]
export type Condition = ContainerRecreateRequestStatus["conditions"][number]
